// Computes on the visitor's own GPU, checks each result against PyTorch's, and times what
// is right. Python sends words, the answers, and `go` when a run is to begin.
const READING = 0.04 // seconds of a reading: browsers round their clocks
const LONGEST = 1, LONGEST_HERE = 0.25 // seconds of a call on the GPU, in this thread
const HANGS = 60_000 // milliseconds after which an answer is no longer waited for
const ROUNDS = 7, BUSY_SECONDS = 15
const CLOSE = 1e-4, SAME_CLASSES = 0.999, SAME_LOSS = 1e-3
const BATCH = 64, BATCHES = 20, STEPS = 100
const GROWTH = { product: 8, forward: 10, step: 1 } // of the work, from size to size

const LAYERS = [] // of the ANN, whose parameters follow each other
for (const [inputs, outputs] of [[784, 128], [128, 64], [64, 10]]) {
  const weight = LAYERS.length ? LAYERS.at(-1).bias + LAYERS.at(-1).outputs : 0
  LAYERS.push({ inputs, outputs, weight, bias: weight + inputs * outputs })
}
const PARAMETERS = LAYERS[2].bias + 10

// The numbers that core/lessons/compare/your_gpu.py draws.
function random(count, seed) {
  return Float32Array.from({ length: count }, (_, i) => {
    let bits = (i + Math.imul(seed, 0x9e3779b9)) >>> 0
    bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d) >>> 0
    bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b) >>> 0
    return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32 - 0.5
  })
}

function newWeights() {
  return LAYERS.flatMap(({ inputs, outputs }, layer) =>
    [inputs * outputs, outputs].flatMap((count, part) =>
      [...random(count, 10 + 2 * layer + part)].map((x) => (x * 2) / Math.sqrt(inputs))))
}

async function bytes(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
const floats = async (text) => new Float32Array((await bytes(text)).buffer)
const pixels = async (text) => Float32Array.from(await bytes(text), (x) => x / 255)

// No number is further away than that, relative to the largest. NaN never agrees.
function agree(found, right) {
  const largest = right.reduce((most, x) => Math.max(most, Math.abs(x)), 0)
  return right.every((x, i) => Math.abs(found[i] - x) <= CLOSE * largest)
}

// a @ b of m×k and k×n in this thread: what the GPU is compared with.
function multiplyHere(a, b, m, n, k) {
  const c = new Float32Array(m * n)
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < k; j++) {
      const factor = a[i * k + j]
      for (let l = 0; l < n; l++) c[i * n + l] += factor * b[j * n + l]
    }
  }
  return c
}

function forwardHere(x, batch, weights, turned) {
  LAYERS.forEach(({ inputs, outputs, bias }, layer) => {
    x = multiplyHere(x, turned[layer], batch, outputs, inputs)
    x.forEach((sum, i) => {
      x[i] = sum + weights[bias + (i % outputs)]
      if (outputs > 10) x[i] = Math.max(x[i], 0)
    })
  })
  return x
}

async function timeHere(call, count = 1) {
  const start = performance.now()
  for (let i = 0; i < count; i++) await call()
  return Math.max((performance.now() - start) / 1000 / count, 1e-9)
}

class Problem extends Error {} // its message is a key of the words

class Gpu {
  constructor(device, limit) {
    Object.assign(this, { device, limit, queue: device.queue })
    this.broken = new Promise((_, reject) => {
      device.lost.then(() => reject(new Problem("lost")))
      device.onuncapturederror = ({ error: cause }) =>
        reject(new Problem(cause instanceof GPUOutOfMemoryError ? "memory" : "failed", { cause }))
      this.stop = () => reject(new Problem("left"))
    })
    this.broken.catch(() => {})
  }

  // Waits, unless the device is lost, hangs, or the page is left.
  async wait(promise, milliseconds = HANGS) {
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Problem("hangs")), milliseconds)
    })
    return Promise.race([promise, this.broken, late]).finally(() => clearTimeout(timer))
  }

  async compile(code) {
    this.device.pushErrorScope("validation") // else an error of the code is one of the device
    const module = this.device.createShaderModule({ code })
    const { messages } = await this.wait(module.getCompilationInfo())
    await this.device.popErrorScope()
    const cause = messages.find(({ type }) => type === "error")
    if (cause) throw new Problem("shader", { cause })
    this.first = { multiply: 0, cross_entropy: 5, adam: 10 } // numbers of their bindings
    this.pipelines = {}
    for (const entryPoint of Object.keys(this.first)) {
      const compute = { module, entryPoint }
      this.pipelines[entryPoint] = await this.wait(
        this.device.createComputePipelineAsync({ layout: "auto", compute }))
    }
  }

  buffer(size, usage) {
    return this.device.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_DST })
  }

  // Numbers on the GPU: these, or so many zeros.
  numbers(values) {
    const size = values.byteLength ?? 4 * values
    const buffer = this.buffer(size, GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC)
    if (values.byteLength) this.queue.writeBuffer(buffer, 0, values)
    return { buffer, size }
  }

  part({ buffer }, first, count) {
    return { buffer, offset: 4 * first, size: 4 * count }
  }

  op(name, resources, groups) {
    const entries = resources.map((resource, i) => ({ binding: this.first[name] + i, resource }))
    const pipeline = this.pipelines[name], layout = pipeline.getBindGroupLayout(0)
    return { pipeline, group: this.device.createBindGroup({ layout, entries }), groups }
  }

  // c = a @ b for m×k and k×n; the strides say how each is stored.
  multiply(a, b, c, [m, n, k], aStrides = [k, 1], bStrides = [n, 1], more = 0, extra = a) {
    const shape = new Uint32Array([m, n, k, more, ...aStrides, ...bStrides])
    const buffer = this.buffer(shape.byteLength, GPUBufferUsage.UNIFORM)
    this.queue.writeBuffer(buffer, 0, shape)
    return this.op("multiply", [{ buffer }, a, b, extra, c], [Math.ceil(n / 16), Math.ceil(m / 16)])
  }

  submit(ops) {
    const encoder = this.device.createCommandEncoder(), pass = encoder.beginComputePass()
    for (const { pipeline, group, groups } of ops) {
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(...groups)
    }
    pass.end()
    this.queue.submit([encoder.finish()])
  }

  done() {
    return this.wait(this.queue.onSubmittedWorkDone())
  }

  // Seconds of one of `count` calls.
  async time(call, count = 1) {
    await this.done()
    const start = performance.now()
    for (let i = 0; i < count; i++) call()
    await this.done()
    return Math.max((performance.now() - start) / 1000 / count, 1e-9)
  }

  async fetch({ buffer, size }) {
    const copy = this.buffer(size, GPUBufferUsage.MAP_READ)
    const encoder = this.device.createCommandEncoder()
    encoder.copyBufferToBuffer(buffer, 0, copy, 0, size)
    this.queue.submit([encoder.finish()])
    await this.wait(copy.mapAsync(GPUMapMode.READ))
    const values = new Float32Array(copy.getMappedRange().slice(0))
    copy.destroy()
    return values
  }

  // The operations of a forward pass, and what goes into and comes out of the layers.
  forward(images, batch, weights) {
    const made = [images]
    const ops = LAYERS.map(({ inputs, outputs, weight, bias }) => {
      made.push(this.numbers(batch * outputs))
      return this.multiply(
        made.at(-2), this.part(weights, weight, inputs * outputs), made.at(-1),
        [batch, outputs, inputs], [inputs, 1], [1, inputs],
        outputs > 10 ? 2 : 1, this.part(weights, bias, outputs))
    })
    return { ops, made, logits: made.at(-1) }
  }

  // The operations of a training step: forward, backward, Adam.
  step(images, labels, { now, weights, slopes, mean, square, losses, one }) {
    const { ops, made, logits } = this.forward(images, BATCH, weights)
    let slope = this.numbers(BATCH * 10)
    ops.push(this.op("cross_entropy", [now, logits, labels, slope, losses], [1]))
    for (const layer of [2, 1, 0]) {
      const { inputs, outputs, weight, bias } = LAYERS[layer], x = made[layer]
      const ofWeight = this.part(slopes, weight, inputs * outputs)
      const ofBias = this.part(slopes, bias, outputs), ofX = this.numbers(BATCH * inputs)
      ops.push(this.multiply(slope, x, ofWeight, [outputs, inputs, BATCH], [1, outputs]))
      ops.push(this.multiply(one, slope, ofBias, [1, outputs, BATCH], [0, 0]))
      if (layer) {
        ops.push(this.multiply(
          slope, this.part(weights, weight, inputs * outputs), ofX,
          [BATCH, inputs, outputs], undefined, undefined, 3, x))
      }
      slope = ofX
    }
    const groups = [Math.ceil(PARAMETERS / 64)]
    return [...ops, this.op("adam", [now, slopes, weights, mean, square], groups)]
  }

  // A new model: a function that makes the step of a number, and the losses.
  training(images, labels, rate) {
    const now = { buffer: this.buffer(16, GPUBufferUsage.UNIFORM) }
    const [slopes, mean, square] = [0, 0, 0].map(() => this.numbers(PARAMETERS))
    const weights = this.numbers(Float32Array.from(newWeights()))
    const losses = this.numbers(STEPS), one = this.numbers(Float32Array.of(1))
    const x = this.numbers(images), y = this.numbers(labels)
    const batches = Array.from({ length: BATCHES }, (_, i) => this.step(
      this.part(x, i * BATCH * 784, BATCH * 784), this.part(y, i * BATCH, BATCH),
      { now, weights, slopes, mean, square, losses, one }))
    const step = (number) => {
      const state = new DataView(new ArrayBuffer(16))
      state.setFloat32(0, rate / (1 - 0.9 ** (number + 1)), true)
      state.setFloat32(4, Math.sqrt(1 - 0.999 ** (number + 1)), true)
      state.setUint32(8, number % STEPS, true)
      this.queue.writeBuffer(now.buffer, 0, state)
      this.submit(batches[number % BATCHES])
    }
    return { step, losses }
  }
}

class Run {
  constructor(page, { go, work, data }, gpu) {
    Object.assign(this, { page, go, work, data, gpu, works: [], leftOut: [], next: {} })
  }

  // Work is kept to be timed if it is right: `call` queues it, `here` is for this thread.
  async add(kind, size, most, make) {
    this.page.say("checking", { kind, size })
    const why = most > this.gpu.limit ? "large" : this.next[kind] > LONGEST ? "slow" : ""
    if (why) return this.leftOut.push([kind, size, why])
    const work = { kind, size, gpu: [], cpu: [], ...make() }
    work.call()
    this.next[kind] = GROWTH[kind] * (await this.gpu.time(work.call)) // after a warm-up
    const isRight = await work.isRight()
    isRight ? this.works.push(work) : this.leftOut.push([kind, size, "wrong"])
  }

  product(n) {
    return this.add("product", n, 4 * n * n, () => {
      const a = random(n * n, 1), b = random(n * n, 2), c = this.gpu.numbers(n * n)
      const ops = [this.gpu.multiply(this.gpu.numbers(a), this.gpu.numbers(b), c, [n, n, n])]
      const isRight = async () => {
        const found = await this.gpu.fetch(c), right = this.work.products[n]
        const rows = [0, n / 2 + 1, n - 1].flatMap((i) => [...found.subarray(i * n, i * n + n)])
        const sums = multiplyHere(found, random(n, 3).map(Math.sign), n, 1, n)
        return agree(rows, await floats(right.rows)) && agree(sums, await floats(right.sums))
      }
      return { call: () => this.gpu.submit(ops), here: () => multiplyHere(a, b, n, n, n), isRight }
    })
  }

  async forward() {
    const images = await pixels(this.work.images), weights = await floats(this.work.weights)
    const right = await floats(this.work.logits), there = this.gpu.numbers(weights)
    const turned = LAYERS.map(({ inputs, outputs, weight }) =>
      Float32Array.from({ length: inputs * outputs }, (_, i) =>
        weights[weight + (i % outputs) * inputs + Math.floor(i / outputs)]))
    const classes = (logits) => Array.from({ length: logits.length / 10 }, (_, i) => {
      const own = logits.subarray(i * 10, i * 10 + 10)
      return own.indexOf(Math.max(...own))
    })
    for (const size of this.data.batches.filter((size) => size <= right.length / 10)) {
      await this.add("forward", size, 4 * 784 * size, () => {
        const own = images.subarray(0, size * 784), x = this.gpu.numbers(own)
        const { ops, logits } = this.gpu.forward(x, size, there)
        const isRight = async () => {
          const found = await this.gpu.fetch(logits), wanted = right.subarray(0, size * 10)
          const best = classes(found)
          const same = classes(wanted).filter((name, i) => name === best[i]).length
          return agree(found, wanted) && same >= SAME_CLASSES * size
        }
        const here = () => forwardHere(own, size, weights, turned)
        return { call: () => this.gpu.submit(ops), here, isRight, x, own, logits }
      })
    }
  }

  async train() {
    const images = await pixels(this.work.training)
    const labels = Uint32Array.from(await bytes(this.work.labels))
    const { step, losses } = this.gpu.training(images, labels, this.work.rate)
    let number = 0
    while (number < STEPS) {
      this.page.say("training", { step: number })
      for (let i = 0; i < 5; i++) step(number++)
      await this.gpu.done()
    }
    const found = [...(await this.gpu.fetch(losses))], right = this.work.losses.at(-1)
    const isRight = () => Math.abs(found.at(-1) - right) <= SAME_LOSS
    await this.add("step", BATCH, 0, () => ({ call: () => step(number++), isRight }))
    return isRight() ? found : []
  }

  // A measurement; again if the tab was in the background meanwhile.
  async inFront(measure) {
    for (;;) {
      let changed
      const seen = new Promise((resolve) => { changed = resolve })
      document.addEventListener("visibilitychange", changed, { once: true })
      if (document.hidden) this.page.say("background")
      else {
        let hidden = false
        seen.then(() => { hidden = true })
        const seconds = await measure()
        document.removeEventListener("visibilitychange", changed)
        if (!hidden) return seconds
      }
      if (document.hidden) await this.gpu.wait(seen, 2 ** 31 - 1)
    }
  }

  // Times one side with as many calls as a reading needs.
  async timer(time) {
    let count = 1
    for (const share of [4, 1]) { // the first call also pays for the wait
      const seconds = await this.inFront(() => time(count))
      count = Math.ceil(Math.min(2000, Math.max(1, READING / share / seconds)))
    }
    return () => this.inFront(() => time(count))
  }

  async rounds() {
    const next = {} // seconds that a call will take in this thread
    for (const work of this.works) {
      work.onGpu = await this.timer((count) => this.gpu.time(work.call, count))
      if (this.go.against === "torch" || !work.here || next[work.kind] > LONGEST_HERE) continue
      work.onCpu = await this.timer((count) => timeHere(work.here, count))
      next[work.kind] = GROWTH[work.kind] * (await timeHere(work.here))
    }
    for (let round = 0; round <= ROUNDS; round++) {
      this.page.say(round ? "round" : "warm_up", { round, rounds: ROUNDS })
      for (const work of this.works) {
        const seconds = await work.onGpu(), other = await work.onCpu?.()
        if (round) work.gpu.push(seconds)
        if (round && other) work.cpu.push(other)
      }
      const works = this.works.map(({ kind, size }) => [kind, size])
      if (this.go.against === "torch") await this.gpu.wait(this.page.ask(round, works))
    }
  }

  async lessons(product, forward) {
    const found = { clocked: product.size, unwaited: [], waited: [], there: [], back: [], paces: [] }
    const write = () => this.gpu.queue.writeBuffer(forward.x.buffer, 0, forward.own)
    for (let i = 0; i < ROUNDS; i++) {
      await this.gpu.done()
      found.unwaited.push(await this.inFront(() => timeHere(product.call)))
      found.waited.push(await this.inFront(() => this.gpu.time(product.call)))
      found.there.push(await this.inFront(() => this.gpu.time(write)))
      found.back.push(await this.inFront(() => timeHere(() => this.gpu.fetch(forward.logits))))
    }
    for (let second = 0; this.go.busy && second < BUSY_SECONDS; second++) {
      this.page.say("busy", { left: BUSY_SECONDS - second })
      const paces = []
      const began = performance.now()
      while (performance.now() < began + 1000) paces.push(await product.onGpu())
      found.paces.push(paces.length / paces.reduce((sum, seconds) => sum + seconds))
    }
    return found
  }

  async all() {
    if (this.gpu.limit < 4 * 784 * BATCH * BATCHES) throw new Problem("small")
    await this.gpu.compile(this.data.wgsl)
    for (const size of this.data.sizes) await this.product(size)
    await this.forward()
    const last = (kind) => this.works.filter((work) => work.kind === kind).at(-1)
    if (!last("product") || !last("forward")) throw new Problem("wrong")
    const losses = await this.train()
    await this.rounds()
    const works = this.works.map(({ kind, size, gpu, cpu }) => ({ kind, size, gpu, cpu }))
    const lessons = await this.lessons(last("product"), last("forward"))
    return { works, left_out: this.leftOut, losses, ...lessons }
  }
}

class Page {
  say(key, fields = {}) {
    const fill = (_, name) => fields[name] ?? ""
    this.text.textContent = this.data.words[key].replace(/\{(\w+)\}/g, fill)
  }

  fail(error) {
    const key = error instanceof Problem ? error.message : "failed"
    if (key === "left") return
    this.say(key, { detail: String((error.cause ?? error).message).slice(0, 200) })
    this.set("problem", { id: this.going ?? "" })
  }

  async adapter(powerPreference = "high-performance") {
    if (!window.isSecureContext) throw new Problem("insecure")
    if (!navigator.gpu) throw new Problem("no_webgpu")
    const adapter = await navigator.gpu.requestAdapter({ powerPreference })
    if (!adapter) throw new Problem("no_adapter")
    return adapter
  }

  // What the browser says of the GPU that answers, and of another one.
  async look() {
    const adapter = await this.adapter(), other = await this.adapter("low-power")
    const [name, second] = [adapter, other].map(({ info }) =>
      info.description || `${info.vendor} ${info.architecture} ${info.device}`.trim())
    const isSoftware = adapter.info.isFallbackAdapter || adapter.isFallbackAdapter ||
      /swiftshader|llvmpipe|basic render/i.test(name)
    const isPhone = navigator.userAgentData?.mobile ?? /Mobi|Android|iPad/.test(navigator.userAgent)
    this.about = { name, kind: isSoftware ? "software" : isPhone ? "phone or tablet" : "computer" }
    this.set("gpu", this.about)
    this.say(isSoftware ? "software" : second === name ? "found" : "two", { name, second })
  }

  take(data, text, set) {
    Object.assign(this, { data, text, set, work: data.work ?? this.work })
    if (this.asked && data.cpu?.round === this.asked) this.answered(data.cpu)
    this.looked ??= this.look().catch((error) => this.fail(error))
    if (data.go && data.go.id !== this.going) this.start(data.go)
  }

  // Has Python do a round on its side.
  async ask(round, works) {
    this.asked = `${this.going} ${round}`
    const answer = new Promise((resolve) => { this.answered = resolve })
    this.set("round", { round: this.asked, works })
    const { problem } = await answer
    if (problem) throw new Problem("cpu", { cause: { message: problem } })
  }

  async start(go) {
    this.going = go.id
    this.set("have", go.id)
    try {
      await this.looked
      const adapter = await this.adapter()
      const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits
      const limit = Math.min(maxBufferSize, maxStorageBufferBindingSize)
      this.gpu = new Gpu(await adapter.requestDevice(), limit)
      if (this.gone) this.gpu.stop()
      const result = await new Run(this, { ...this, go }, this.gpu).all()
      this.say("done")
      this.set("result", { id: go.id, ...this.about, ...result })
    } catch (error) {
      this.fail(error)
    } finally {
      this.gpu?.device.destroy()
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
  if (!pages.has(parentElement)) pages.set(parentElement, new Page())
  const page = pages.get(parentElement)
  page.take(data, parentElement.querySelector("p"), setStateValue)
  return () => page.leave()
}
