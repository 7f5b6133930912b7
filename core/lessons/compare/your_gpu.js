// Computes on the visitor's own GPU, checks each result against torch's, and times what
// is right. Python sends `go` to start a run, and the words and answers that it needs.
const READING = 0.04 // seconds of a reading: browsers round their clocks
const LONGEST = 1 // seconds of a call on the GPU; larger work is left out
const LONGEST_HERE = 0.25 // likewise in this thread, which also draws the page
const HANGS = 60_000 // milliseconds after which an answer is no longer waited for
const ROUNDS = 7
const CLOSE = 1e-4, SAME_CLASSES = 0.999, SAME_LOSS = 1e-3
const WIDTHS = [784, 128, 64, 10]
const BATCH = 64, BATCHES = 20, STEPS = 100, BUSY_SECONDS = 15

// The numbers that core/lessons/compare/your_gpu.py draws.
function random(count, seed) {
  const values = new Float32Array(count)
  for (let i = 0; i < count; i++) {
    let bits = (i + Math.imul(seed, 0x9e3779b9)) >>> 0
    bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d) >>> 0
    bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b) >>> 0
    values[i] = ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32 - 0.5
  }
  return values
}

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  const stream = new Blob([packed]).stream()
  return new Response(stream.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
}

const floats = async (text) => new Float32Array(await unpack(text))
const pixels = async (text) => Float32Array.from(new Uint8Array(await unpack(text)), (x) => x / 255)

// The largest difference, relative to the largest number; NaN is never close.
function apart(found, right) {
  let most = 0, largest = 0
  for (let i = 0; i < right.length; i++) {
    const difference = Math.abs(found[i] - right[i])
    if (!(difference <= most)) most = difference
    largest = Math.max(largest, Math.abs(right[i]))
  }
  return most / largest
}

function best(logits, image) {
  const own = logits.subarray(image * 10, image * 10 + 10)
  return own.indexOf(Math.max(...own))
}

// a @ b of m×k and k×n in this thread: what the GPU is compared with.
function multiplyHere(a, b, m, n, k) {
  const c = new Float32Array(m * n)
  for (let i = 0; i < m; i++) {
    const row = c.subarray(i * n, i * n + n)
    for (let j = 0; j < k; j++) {
      const factor = a[i * k + j]
      const other = b.subarray(j * n, j * n + n)
      for (let l = 0; l < n; l++) row[l] += factor * other[l]
    }
  }
  return c
}

function transposed(matrix, rows, columns) {
  return matrix.map((_, i) => matrix[(i % rows) * columns + Math.floor(i / rows)])
}

// The ANN's parameters follow each other: weight and bias of each layer.
function layers() {
  const found = []
  for (let i = 0, at = 0; i < 3; i++) {
    const [inputs, outputs] = WIDTHS.slice(i, i + 2)
    found.push({ inputs, outputs, weight: at, bias: at + inputs * outputs, last: i === 2 })
    at += (inputs + 1) * outputs
  }
  return found
}
const LAYERS = layers()
const PARAMETERS = LAYERS[2].bias + 10

function forwardHere(images, batch, weights) {
  let x = images
  LAYERS.forEach(({ inputs, outputs, bias, last }, layer) => {
    x = multiplyHere(x, weights.turned[layer], batch, outputs, inputs)
    x = x.map((sum, i) => {
      const value = sum + weights.flat[bias + (i % outputs)]
      return last ? value : Math.max(value, 0)
    })
  })
  return x
}

function newWeights() {
  const drawn = LAYERS.flatMap(({ inputs, outputs }, layer) =>
    [inputs * outputs, outputs].map((count, part) =>
      random(count, 10 + 2 * layer + part).map((x) => (x * 2) / Math.sqrt(inputs))))
  const all = new Float32Array(PARAMETERS)
  drawn.reduce((at, values) => (all.set(values, at), at + values.length), 0)
  return all
}

class Problem extends Error {} // its message is a key of the words

class Gpu {
  constructor(device, limit) {
    Object.assign(this, { device, limit })
    this.broken = new Promise((_, reject) => {
      device.lost.then(() => reject(new Problem("lost")))
      device.onuncapturederror = ({ error }) => reject(new Problem(
        error instanceof GPUOutOfMemoryError ? "memory" : "failed", { cause: error }))
      this.stop = () => reject(new Problem("left"))
    })
    this.broken.catch(() => {})
  }

  // What is waited for, unless the device is lost, hangs, or the page is left.
  wait(promise) {
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Problem("hangs")), HANGS)
    })
    return Promise.race([promise, this.broken, late]).finally(() => clearTimeout(timer))
  }

  async compile(code) {
    const module = this.device.createShaderModule({ code })
    const { messages } = await this.wait(module.getCompilationInfo())
    const error = messages.find(({ type }) => type === "error")
    if (error) throw new Problem("shader", { cause: error })
    this.pipelines = {}
    for (const [entryPoint, first] of Object.entries({ multiply: 0, cross_entropy: 5, adam: 10 })) {
      const made = this.device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint } })
      const pipeline = await this.wait(made).catch((error) => {
        throw error instanceof Problem ? error : new Problem("shader", { cause: error })
      })
      this.pipelines[entryPoint] = { pipeline, first }
    }
    this.nothing = this.numbers(4)
  }

  buffer(size, usage) {
    return this.device.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_DST })
  }

  // Numbers on the GPU: given ones, or so many zeros.
  numbers(values) {
    const size = values.byteLength ?? 4 * values
    const buffer = this.buffer(size, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC)
    if (values.byteLength) this.device.queue.writeBuffer(buffer, 0, values)
    return { buffer, size }
  }

  part({ buffer }, first, count) {
    return { buffer, offset: 4 * first, size: 4 * count }
  }

  op(name, resources, groups) {
    const { pipeline, first } = this.pipelines[name]
    const entries = resources.map((resource, i) => ({ binding: first + i, resource }))
    const layout = pipeline.getBindGroupLayout(0)
    return { pipeline, group: this.device.createBindGroup({ layout, entries }), groups }
  }

  // c = a @ b for m×k and k×n; the strides say how each is stored.
  multiply(a, b, c, [m, n, k], aStrides = [k, 1], bStrides = [n, 1], more = 0, extra = this.nothing) {
    const shape = new Uint32Array([m, n, k, more, ...aStrides, ...bStrides])
    const buffer = this.buffer(shape.byteLength, GPUBufferUsage.UNIFORM)
    this.device.queue.writeBuffer(buffer, 0, shape)
    return this.op("multiply", [{ buffer }, a, b, extra, c], [Math.ceil(n / 16), Math.ceil(m / 16)])
  }

  submit(ops) {
    const encoder = this.device.createCommandEncoder()
    const pass = encoder.beginComputePass()
    for (const { pipeline, group, groups } of ops) {
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(...groups)
    }
    pass.end()
    this.device.queue.submit([encoder.finish()])
  }

  done() {
    return this.wait(this.device.queue.onSubmittedWorkDone())
  }

  // Seconds of one of `count` calls; without `waits` they are only queued.
  async time(call, count = 1, waits = true) {
    await this.done()
    const start = performance.now()
    for (let i = 0; i < count; i++) call()
    if (waits) await this.done()
    return Math.max((performance.now() - start) / 1000 / count, 1e-9)
  }

  async fetch({ buffer, size }) {
    const { device } = this
    const copy = this.buffer(size, GPUBufferUsage.MAP_READ)
    const encoder = device.createCommandEncoder()
    encoder.copyBufferToBuffer(buffer, 0, copy, 0, size)
    device.queue.submit([encoder.finish()])
    await this.wait(copy.mapAsync(GPUMapMode.READ))
    const values = new Float32Array(copy.getMappedRange().slice(0))
    copy.destroy()
    return values
  }

  // The operations of a forward pass, and the numbers that each layer makes.
  forward(images, batch, weights) {
    const made = [images], ops = []
    for (const { inputs, outputs, weight, bias, last } of LAYERS) {
      made.push(this.numbers(batch * outputs))
      ops.push(this.multiply(
        made.at(-2), this.part(weights, weight, inputs * outputs), made.at(-1),
        [batch, outputs, inputs], [inputs, 1], [1, inputs],
        last ? 1 : 2, this.part(weights, bias, outputs)))
    }
    return { ops, made, logits: made.at(-1) }
  }

  // Operations of a training step: forward, backward, Adam.
  step(images, labels, { weights, slopes, mean, square, losses, now, one }) {
    const { ops, made, logits } = this.forward(images, BATCH, weights)
    let slope = this.numbers(BATCH * 10)
    ops.push(this.op("cross_entropy", [now, logits, labels, slope, losses], [1]))
    for (const { inputs, outputs, weight, bias } of [...LAYERS].reverse()) {
      const x = made[LAYERS.findIndex((layer) => layer.weight === weight)]
      ops.push(
        this.multiply(slope, x, this.part(slopes, weight, inputs * outputs), [outputs, inputs, BATCH], [1, outputs]),
        this.multiply(one, slope, this.part(slopes, bias, outputs), [1, outputs, BATCH], [0, 0]))
      if (weight === 0) break
      const before = this.numbers(BATCH * inputs)
      ops.push(this.multiply(
        slope, this.part(weights, weight, inputs * outputs), before,
        [BATCH, inputs, outputs], undefined, undefined, 3, x))
      slope = before
    }
    const all = Math.ceil(PARAMETERS / 64)
    return [...ops, this.op("adam", [now, slopes, weights, mean, square], [all])]
  }

  // Prepares training; returns a function that makes the step of a number.
  training(images, labels, rate) {
    const zeros = () => this.numbers(PARAMETERS)
    const now = { buffer: this.buffer(16, GPUBufferUsage.UNIFORM) }
    const own = {
      weights: this.numbers(newWeights()), slopes: zeros(), mean: zeros(), square: zeros(),
      losses: this.numbers(STEPS), one: this.numbers(new Float32Array([1])), now,
    }
    const x = this.numbers(images), y = this.numbers(labels)
    const batches = Array.from({ length: BATCHES }, (_, i) => this.step(
      this.part(x, i * BATCH * 784, BATCH * 784), this.part(y, i * BATCH, BATCH), own))
    const step = (number) => {
      const state = new DataView(new ArrayBuffer(16))
      state.setFloat32(0, rate / (1 - 0.9 ** (number + 1)), true)
      state.setFloat32(4, Math.sqrt(1 - 0.999 ** (number + 1)), true)
      state.setUint32(8, number % STEPS, true)
      this.device.queue.writeBuffer(now.buffer, 0, state)
      this.submit(batches[number % BATCHES])
    }
    return { step, losses: own.losses }
  }
}

class Run {
  constructor(page, go, gpu) {
    Object.assign(this, { page, go, gpu, works: [], leftOut: [] })
  }

  // Work that was checked: `call` queues it, `here` does it in this thread.
  async add(kind, size, call, here, growth, isRight) {
    const { gpu } = this
    call()
    await gpu.done()
    if (!(await isRight())) return this.leftOut.push([kind, size, "wrong"]), 0
    const once = await gpu.time(call)
    this.works.push({ kind, size, call, here, growth, gpu: [], cpu: [] })
    return once
  }

  async products({ sizes }, answers) {
    let next = 0
    for (const size of sizes) {
      this.page.say("checking", { what: `${size} × ${size}` })
      const why = 4 * size ** 2 > this.gpu.limit ? "large" : next > LONGEST ? "slow" : ""
      if (why) { this.leftOut.push(["product", size, why]); continue }
      const a = random(size ** 2, 1), b = random(size ** 2, 2)
      const [there, other, c] = [a, b, size ** 2].map((each) => this.gpu.numbers(each))
      const ops = [this.gpu.multiply(there, other, c, [size, size, size])]
      const call = () => this.gpu.submit(ops)
      const once = await this.add("product", size, call, () => multiplyHere(a, b, size, size, size), 8, async () => {
        const found = await this.gpu.fetch(c)
        const rows = [0, size / 2 + 1, size - 1].map((row) => [...found.subarray(row * size, row * size + size)])
        const signs = random(size, 3).map(Math.sign)
        const sums = multiplyHere(found, signs, size, 1, size)
        return apart(rows.flat(), await floats(answers[size].rows)) <= CLOSE &&
          apart(sums, await floats(answers[size].sums)) <= CLOSE
      })
      if (once) { next = once * 8; this.product = { size, call } }
    }
  }

  async forward({ batches }, work) {
    const images = await pixels(work.images), flat = await floats(work.weights)
    const right = await floats(work.logits), count = right.length / 10
    const turned = LAYERS.map(({ inputs, outputs, weight }) =>
      transposed(flat.slice(weight, weight + inputs * outputs), outputs, inputs))
    const weights = this.gpu.numbers(flat)
    let next = 0
    for (const size of batches.filter((size) => size <= count)) {
      this.page.say("checking", { what: `batch ${size}` })
      const why = 4 * 784 * size > this.gpu.limit ? "large" : next > LONGEST ? "slow" : ""
      if (why) { this.leftOut.push(["forward", size, why]); continue }
      const own = images.subarray(0, size * 784)
      const x = this.gpu.numbers(own)
      const { ops, logits } = this.gpu.forward(x, size, weights)
      const here = () => forwardHere(own, size, { flat, turned })
      const once = await this.add("forward", size, () => this.gpu.submit(ops), here, 10, async () => {
        const found = await this.gpu.fetch(logits), wanted = right.subarray(0, size * 10)
        let same = 0
        for (let i = 0; i < size; i++) same += best(found, i) === best(wanted, i)
        return apart(found, wanted) <= CLOSE && same >= SAME_CLASSES * size
      })
      if (once) { next = once * 10; this.moved = { x, own, logits } }
    }
  }

  async train(work) {
    this.page.say("training")
    const images = await pixels(work.training)
    const labels = Uint32Array.from(new Uint8Array(await unpack(work.labels)))
    const { step, losses } = this.gpu.training(images, labels, work.rate)
    for (let i = 0; i < STEPS; i++) step(i)
    await this.gpu.done()
    this.losses = [...await this.gpu.fetch(losses)]
    let number = STEPS
    await this.add("step", BATCH, () => step(number++), null, 1, () =>
      Math.abs(this.losses.at(-1) - work.losses.at(-1)) <= SAME_LOSS)
  }

  // A measurement again if the tab was in the background meanwhile.
  async inFront(measure) {
    for (;;) {
      while (document.hidden) {
        this.page.say("background")
        await this.gpu.wait(new Promise((seen) =>
          document.addEventListener("visibilitychange", seen, { once: true }))).catch((problem) => {
          if (problem.message !== "hangs") throw problem
        })
      }
      let hidden = false
      const note = () => { hidden = true }
      document.addEventListener("visibilitychange", note)
      const found = await measure().finally(() => document.removeEventListener("visibilitychange", note))
      if (!hidden) return found
    }
  }

  async calibrate(measure) {
    const first = await measure(1)
    const second = await measure(Math.min(1000, Math.ceil(READING / 4 / first)))
    return Math.max(1, Math.min(2000, Math.round(READING / second)))
  }

  async rounds() {
    const last = {} // seconds of the size before, in this thread
    for (const work of this.works) {
      const onGpu = (count) => this.inFront(() => this.gpu.time(work.call, count))
      work.gpuCount = await this.calibrate(onGpu)
      work.onGpu = () => onGpu(work.gpuCount)
      const inTime = (last[work.kind] ?? 0) * work.growth <= LONGEST_HERE
      if (this.go.against !== "browser" || !work.here || !inTime) {
        last[work.kind] = LONGEST
        continue
      }
      const here = (count) => this.inFront(async () => {
        const start = performance.now()
        for (let i = 0; i < count; i++) work.here()
        return Math.max((performance.now() - start) / 1000 / count, 1e-9)
      })
      const count = await this.calibrate(here)
      last[work.kind] = await here(1)
      work.onCpu = () => here(count)
    }
    for (let round = 0; round <= ROUNDS; round++) {
      this.page.say(round ? "round" : "warm_up", { round, rounds: ROUNDS }, round / ROUNDS)
      for (const work of this.works) {
        const seconds = await work.onGpu(), other = await work.onCpu?.()
        if (round) work.gpu.push(seconds)
        if (round && other) work.cpu.push(other)
        await new Promise((drawn) => setTimeout(drawn)) // the page stays alive
      }
      if (this.go.against === "torch") await this.gpu.wait(this.page.ask(round, this.works))
    }
  }

  async lessons() {
    const found = { unwaited: [], waited: [], there: [], back: [], paces: [] }
    const { call } = this.product, { x, own, logits } = this.moved
    for (let i = 0; i < ROUNDS; i++) {
      found.unwaited.push(await this.inFront(() => this.gpu.time(call, 1, false)))
      found.waited.push(await this.inFront(() => this.gpu.time(call, 1, true)))
      const write = () => this.gpu.device.queue.writeBuffer(x.buffer, 0, own)
      found.there.push(await this.inFront(() => this.gpu.time(write)))
      found.back.push(await this.inFront(async () => {
        await this.gpu.done()
        const start = performance.now()
        await this.gpu.fetch(logits)
        return Math.max((performance.now() - start) / 1000, 1e-9)
      }))
    }
    const { gpuCount } = this.works.find(({ kind, size }) => kind === "product" && size === this.product.size)
    for (let i = 0; this.go.busy && i < BUSY_SECONDS; i++) {
      this.page.say("busy", { left: BUSY_SECONDS - i }, i / BUSY_SECONDS)
      const began = performance.now()
      let calls = 0
      while (performance.now() < began + 1000) {
        await this.inFront(() => this.gpu.time(call, gpuCount))
        calls += gpuCount
      }
      found.paces.push((calls * 1000) / (performance.now() - began))
    }
    return found
  }

  async all(data, work) {
    if (this.gpu.limit < 4 * 784 * BATCH * BATCHES) throw new Problem("small")
    await this.gpu.compile(data.wgsl)
    await this.products(data, work.products)
    await this.forward(data, work)
    await this.train(work)
    if (!this.product || !this.moved) throw new Problem("wrong")
    await this.rounds()
    const works = this.works.map(({ kind, size, gpu, cpu }) => ({ kind, size, gpu, cpu }))
    return {
      works, left_out: this.leftOut, losses: this.losses, clocked: this.product.size,
      ...await this.lessons(),
    }
  }
}

class Page {
  constructor(element) {
    this.text = element.querySelector("p")
    this.bar = element.querySelector("progress")
  }

  say(key, fields = {}, share = null) {
    this.text.textContent = this.words[key].replace(/\{(\w+)\}/g, (_, name) => fields[name] ?? "")
    this.bar.hidden = share === null
    this.bar.value = share ?? 0
  }

  fail(error) {
    const key = error instanceof Problem ? error.message : "failed"
    const detail = String(error.cause?.message ?? (key === "failed" ? error.message : "")).slice(0, 200)
    console.info("Your GPU:", key, detail)
    if (key === "left") return
    this.say(key, { detail })
    this.set("problem", { id: this.going ?? "", key })
  }

  async adapter() {
    if (!window.isSecureContext) throw new Problem("insecure")
    if (!navigator.gpu) throw new Problem("no_webgpu")
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" })
    if (!adapter) throw new Problem("no_adapter")
    return adapter
  }

  // What the browser says of the GPU that answers first, and of another one.
  async look() {
    const adapter = await this.adapter()
    const name = ({ info = {} }) =>
      info.description || [info.vendor, info.architecture, info.device].filter(Boolean).join(" ")
    const other = await navigator.gpu.requestAdapter({ powerPreference: "low-power" })
    const isSoftware = adapter.info?.isFallbackAdapter || adapter.isFallbackAdapter ||
      /swiftshader|llvmpipe|basic render/i.test(name(adapter))
    const isPhone = navigator.userAgentData?.mobile ?? /Mobi|Android|iPad/.test(navigator.userAgent)
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits
    this.limit = Math.min(maxBufferSize, maxStorageBufferBindingSize)
    this.about = {
      name: name(adapter), kind: isSoftware ? "software" : isPhone ? "phone or tablet" : "computer",
      limit: this.limit, other: other && name(other) !== name(adapter) ? name(other) : "",
    }
    this.set("gpu", this.about)
    this.say(isSoftware ? "software" : "found", { name: this.about.name })
  }

  take(data, set) {
    this.set = set
    this.data = data
    this.words = data.words
    this.work = data.work ?? this.work
    if (data.cpu && data.cpu.round === this.asked) this.answered?.(data.cpu)
    if (!this.looked) this.looked = this.look().catch((error) => this.fail(error))
    if (data.go && data.go.id !== this.going) this.start(data.go)
  }

  // One round on the other side; resolves when Python has its seconds.
  ask(round, works) {
    this.asked = `${this.going} ${round}`
    const answer = new Promise((answered) => { this.answered = answered })
    this.set("round", { id: this.going, round: this.asked, works: works.map(({ kind, size }) => [kind, size]) })
    return answer.then(({ problem }) => { if (problem) throw new Problem("cpu", { cause: { message: problem } }) })
  }

  async start(go) {
    this.going = go.id
    this.set("have", go.id)
    let gpu
    try {
      await this.looked
      const device = await (await this.adapter()).requestDevice()
      this.gpu = gpu = new Gpu(device, this.limit)
      if (this.gone) gpu.stop()
      const result = await new Run(this, go, gpu).all(this.data, this.work)
      this.say("done")
      this.set("result", { id: go.id, ...this.about, ...result })
    } catch (error) {
      this.fail(error)
    } finally {
      gpu?.device.destroy()
    }
  }

  leave() {
    this.gone = true
    this.gpu?.stop()
    this.gpu?.device.destroy()
  }
}

const pages = new WeakMap()

export default function ({ data, parentElement, setStateValue }) {
  if (!pages.has(parentElement)) pages.set(parentElement, new Page(parentElement))
  const page = pages.get(parentElement)
  page.take(data, setStateValue)
  return () => page.leave()
}
