// Computes on the visitor's own GPU, checks each result against PyTorch's, and times what
// is right. Python sends the words and, for each run, `go` with the addresses of the work.
const READING = 0.04 // seconds of a reading: browsers round their clocks
const QUEUED = 0.25 // seconds of work that the stopwatch waits for, or doesn't
const LONGEST = 1, LONGEST_HERE = 0.25 // seconds of a call on the GPU, in this thread
const HANGS = 60_000 // milliseconds after which the GPU's answer is no longer waited for
const ROUNDS = 7, BUSY_SECONDS = 15
const CLOSE = 1e-4, SAME_CLASSES = 0.999, SAME_LOSS = 1e-3
const GROWTH = 8 // times as long as a call, one of the next size takes at least

const BATCH = 64 // images of a training step
const LAYERS = [ // of the ANN, and where their parameters begin among all of them
  { inputs: 784, outputs: 128, weight: 0, bias: 100_352 },
  { inputs: 128, outputs: 64, weight: 100_480, bias: 108_672 },
  { inputs: 64, outputs: 10, weight: 108_736, bias: 109_376 },
]

// The numbers that core/lessons/compare/your_gpu.py draws.
function random(count, factor) {
  return Float32Array.from({ length: count }, (_, i) =>
    (Math.imul(Math.imul(i, i), factor) >>> 0) / 2 ** 32 - 0.5)
}

async function bytes(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}
const floats = async (text) => new Float32Array((await bytes(text)).buffer)
const pixels = async (text) => Float32Array.from(await bytes(text), (x) => x / 255)

// No number is further away than that, relative to the largest. NaN never agrees.
function agree(values, right) {
  const largest = right.reduce((most, x) => Math.max(most, Math.abs(x)), 0)
  return right.every((x, i) => Math.abs(values[i] - x) <= CLOSE * largest)
}

function classes(logits) {
  return Array.from({ length: logits.length / 10 }, (_, i) => {
    const own = logits.subarray(i * 10, i * 10 + 10)
    return own.indexOf(Math.max(...own))
  })
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

function forwardHere(x, batch, parameters) {
  for (const { inputs, outputs, weight, bias } of LAYERS) {
    x = multiplyHere(x, parameters.subarray(weight, bias), batch, outputs, inputs)
    x = x.map((sum, i) => sum + parameters[bias + (i % outputs)])
    if (outputs > 10) x = x.map((sum) => Math.max(sum, 0))
  }
  return x
}

// Seconds of one of `count` calls. `done` waits for the work that they have queued.
async function time(call, count = 1, done = () => {}) {
  await done()
  const start = performance.now()
  for (let i = 0; i < count; i++) await call()
  await done()
  return Math.max((performance.now() - start) / 1000 / count, 1e-9)
}

let hides = 0 // how often the tab went to the background
document.addEventListener("visibilitychange", () => { hides += document.hidden })

class Problem extends Error {} // its message is a key of the words

class Gpu {
  constructor(device) {
    Object.assign(this, { device, queue: device.queue })
    this.stopped = new Promise((_, reject) => {
      this.stop = (key, cause) => {
        reject(new Problem(key, { cause }))
        device.destroy()
      }
    })
    this.stopped.catch(() => {}) // whoever waits for the GPU hears of the problem
    device.lost.then(() => this.stop("lost"))
    device.onuncapturederror = ({ error }) =>
      this.stop(error instanceof GPUOutOfMemoryError ? "memory" : "failed", error)
  }

  // Waits for the promise, or fails when the device is lost or the page is left.
  unlessStopped(promise) {
    return Promise.race([promise, this.stopped])
  }

  // The same for what the GPU has to do, which may hang.
  async reply(promise) {
    const timer = setTimeout(() => this.stop("hangs"), HANGS)
    return this.unlessStopped(promise).finally(() => clearTimeout(timer))
  }

  async compile(code) {
    this.device.pushErrorScope("validation") // else an error of the code is one of the device
    const module = this.device.createShaderModule({ code })
    const cause = await this.reply(this.device.popErrorScope())
    if (cause) throw new Problem("shader", { cause })
    this.pipelines = {}
    for (const entryPoint of ["multiply", "cross_entropy", "adam"]) {
      const compute = { module, entryPoint }
      this.pipelines[entryPoint] = await this.reply(
        this.device.createComputePipelineAsync({ layout: "auto", compute }))
    }
  }

  // Numbers on the GPU: these, or so many zeros.
  numbers(values, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC) {
    const size = values.byteLength ?? 4 * values
    const buffer = this.device.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_DST })
    if (values.byteLength) this.queue.writeBuffer(buffer, 0, values)
    return { buffer, size }
  }

  slice({ buffer }, begin, end) {
    return { buffer, offset: 4 * begin, size: 4 * (end - begin) }
  }

  op(name, resources, groups) {
    const entries = resources.map((resource, binding) => ({ binding, resource }))
    const pipeline = this.pipelines[name], layout = pipeline.getBindGroupLayout(0)
    return { pipeline, group: this.device.createBindGroup({ layout, entries }), groups }
  }

  // c = a @ b for m×k and k×n; the strides say how each is stored.
  multiply(a, b, c, [m, n, k], { more = 0, extra = a, aStrides = [k, 1], bStrides = [n, 1] } = {}) {
    const numbers = Uint32Array.of(m, n, k, more, ...aStrides, ...bStrides)
    const shape = this.numbers(numbers, GPUBufferUsage.UNIFORM)
    return this.op("multiply", [shape, a, b, extra, c], [Math.ceil(n / 16), Math.ceil(m / 16)])
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
    return this.reply(this.queue.onSubmittedWorkDone())
  }

  time(call, count) {
    return time(call, count, () => this.done())
  }

  async fetch({ buffer, size }) {
    const { buffer: copy } = this.numbers(size / 4, GPUBufferUsage.MAP_READ)
    const encoder = this.device.createCommandEncoder()
    encoder.copyBufferToBuffer(buffer, 0, copy, 0, size)
    this.queue.submit([encoder.finish()])
    await this.reply(copy.mapAsync(GPUMapMode.READ))
    const values = new Float32Array(copy.getMappedRange().slice(0))
    copy.destroy()
    return values
  }

  // The operations of a forward pass, and what goes into and comes out of the layers.
  forward(images, batch, parameters) {
    const activations = [images]
    const ops = LAYERS.map(({ inputs, outputs, weight, bias }) => {
      activations.push(this.numbers(batch * outputs))
      return this.multiply(
        activations.at(-2), this.slice(parameters, weight, bias), activations.at(-1),
        [batch, outputs, inputs],
        { more: outputs > 10 ? 2 : 1, extra: this.slice(parameters, bias, bias + outputs) })
    })
    return { ops, activations, logits: activations.at(-1) }
  }

  // The operations of a training step: forward, backward, Adam.
  step(images, labels, { now, parameters, slopes, mean, square, losses, one }) {
    const { ops, activations, logits } = this.forward(images, BATCH, parameters)
    let slope = this.numbers(BATCH * 10)
    ops.push(this.op("cross_entropy", [now, logits, labels, slope, losses], [1]))
    for (const layer of [2, 1, 0]) {
      const { inputs, outputs, weight, bias } = LAYERS[layer], x = activations[layer]
      const ofWeight = this.slice(slopes, weight, bias), ofX = this.numbers(BATCH * inputs)
      const ofBias = this.slice(slopes, bias, bias + outputs)
      ops.push(this.multiply(
        x, slope, ofWeight, [inputs, outputs, BATCH], { aStrides: [1, inputs] }))
      ops.push(this.multiply(one, slope, ofBias, [1, outputs, BATCH], { aStrides: [0, 0] }))
      if (layer) {
        ops.push(this.multiply(
          slope, this.slice(parameters, weight, bias), ofX, [BATCH, inputs, outputs],
          { bStrides: [1, outputs], more: 3, extra: x }))
      }
      slope = ofX
    }
    const groups = [Math.ceil(parameters.size / 4 / 64)]
    return [...ops, this.op("adam", [now, slopes, parameters, mean, square], groups)]
  }

  // A model that learns: a function that makes the step of a number, and the losses.
  training(images, labels, start, rate, steps) {
    const now = this.numbers(3, GPUBufferUsage.UNIFORM)
    const [slopes, mean, square] = [0, 0, 0].map(() => this.numbers(start.length))
    const parameters = this.numbers(start), one = this.numbers(Float32Array.of(1))
    const losses = this.numbers(steps), x = this.numbers(images), y = this.numbers(labels)
    const batches = Array.from({ length: labels.length / BATCH }, (_, i) => this.step(
      this.slice(x, i * BATCH * 784, (i + 1) * BATCH * 784),
      this.slice(y, i * BATCH, (i + 1) * BATCH),
      { now, parameters, slopes, mean, square, losses, one }))
    const step = (number) => {
      const corrected = rate / (1 - 0.9 ** (number + 1))
      const root = Math.sqrt(1 - 0.999 ** (number + 1))
      this.queue.writeBuffer(now.buffer, 0, Float32Array.of(corrected, root, number % steps))
      this.submit(batches[number % batches.length])
    }
    return { step, losses }
  }
}

async function fetched(addresses) {
  const parts = addresses.map(async (address) => {
    const answer = await fetch(address).catch(() => ({}))
    if (!answer.ok) throw new Problem("gone")
    return answer.json()
  })
  return Object.assign({}, ...(await Promise.all(parts))) // what comes later counts
}

class Run {
  constructor(page, go, work, gpu) {
    Object.assign(this, { page, go, work, gpu, works: [], leftOut: [], next: {} })
  }

  // Work is kept to be timed if it is right: `call` queues it, `here` is for this thread.
  async add(kind, size, make) {
    this.page.say("checking", { kind, size })
    if (this.next[kind] > LONGEST) return this.leftOut.push([kind, size, "slow"])
    const work = { kind, size, gpu: [], cpu: [], ...make() }
    work.call()
    this.next[kind] = GROWTH * (await this.gpu.time(work.call)) // after a warm-up
    const isRight = await work.isRight()
    isRight ? this.works.push(work) : this.leftOut.push([kind, size, "wrong"])
  }

  product({ n, ...right }) {
    return this.add("product", n, () => {
      const [a, b] = this.work.factors.map((factor) => random(n * n, factor))
      const c = this.gpu.numbers(n * n)
      const ops = [this.gpu.multiply(this.gpu.numbers(a), this.gpu.numbers(b), c, [n, n, n])]
      const isRight = async () => {
        const values = await this.gpu.fetch(c)
        const rows = [0, n / 2 + 1, n - 1].flatMap((i) => [...values.subarray(i * n, i * n + n)])
        const sums = multiplyHere(values, b.subarray(0, n), n, 1, n)
        return agree(rows, await floats(right.rows)) && agree(sums, await floats(right.sums))
      }
      return { call: () => this.gpu.submit(ops), here: () => multiplyHere(a, b, n, n, n), isRight }
    })
  }

  async forward() {
    const images = await pixels(this.work.images), right = await floats(this.work.logits)
    const parameters = await floats(this.work.parameters), there = this.gpu.numbers(parameters)
    for (const size of this.work.batches) {
      await this.add("forward", size, () => {
        const own = images.subarray(0, size * 784), x = this.gpu.numbers(own)
        const { ops, logits } = this.gpu.forward(x, size, there)
        const isRight = async () => {
          const values = await this.gpu.fetch(logits), expected = right.subarray(0, size * 10)
          const best = classes(values)
          const same = classes(expected).filter((name, i) => name === best[i]).length
          return agree(values, expected) && same >= SAME_CLASSES * size
        }
        const here = () => forwardHere(own, size, parameters)
        return { call: () => this.gpu.submit(ops), here, isRight, x, own, logits }
      })
    }
  }

  async train() {
    const images = await pixels(this.work.training), right = this.work.losses
    const labels = Uint32Array.from(await bytes(this.work.labels))
    const start = await floats(this.work.start), steps = right.length
    const { step, losses } = this.gpu.training(images, labels, start, this.work.rate, steps)
    let number = 0
    while (number < steps) {
      this.page.say("training", { step: number })
      for (let i = 0; i < 5; i++) step(number++)
      await this.gpu.done()
    }
    const values = [...(await this.gpu.fetch(losses))]
    const isRight = () => Math.abs(values.at(-1) - right.at(-1)) <= SAME_LOSS
    await this.add("step", BATCH, () => ({ call: () => step(number++), isRight }))
    return isRight() ? values : []
  }

  // A measurement; again if the tab was in the background meanwhile.
  async inFront(measure) {
    for (;;) {
      while (document.hidden) await this.pause()
      const before = hides, result = await measure()
      if (hides === before) return result
    }
  }

  async pause() {
    const sentence = this.page.text.textContent
    this.page.say("background")
    await this.gpu.unlessStopped(new Promise((resolve) =>
      document.addEventListener("visibilitychange", resolve, { once: true })))
    this.page.text.textContent = sentence
  }

  // A clock of one side, with as many calls as a reading needs.
  async clock(time) {
    let count = 1
    for (const share of [4, 1]) { // the first call also pays for the wait
      const seconds = await this.inFront(() => time(count))
      count = Math.ceil(Math.min(2000, Math.max(1, READING / share / seconds)))
    }
    return () => time(count)
  }

  // Reads every clock once in each round. The first round is a warm-up.
  async rounds(product, forward) {
    const withTorch = this.go.against === "torch"
    const times = { unwaited: [], waited: [], there: [], back: [] }
    const clocks = [] // where the readings go, and the clock
    const next = {} // seconds that a call will take in this thread
    for (const work of this.works) {
      work.onGpu = await this.clock((count) => this.gpu.time(work.call, count))
      clocks.push([work.gpu, work.onGpu])
      if (withTorch || !work.here || next[work.kind] > LONGEST_HERE) continue
      const onCpu = await this.clock((count) => time(work.here, count))
      clocks.push([work.cpu, onCpu])
      next[work.kind] = GROWTH * (await this.inFront(onCpu))
    }
    const count = Math.ceil(QUEUED / (await this.inFront(product.onGpu)))
    const write = () => this.gpu.queue.writeBuffer(forward.x.buffer, 0, forward.own)
    clocks.push([times.unwaited, () => time(product.call, count)])
    clocks.push([times.waited, () => this.gpu.time(product.call, count)])
    clocks.push([times.there, () => this.gpu.time(write)])
    clocks.push([times.back, () => time(() => this.gpu.fetch(forward.logits))])
    for (let round = 0; round <= ROUNDS; round++) {
      this.page.say(round ? "round" : "warm_up", { round, rounds: ROUNDS })
      for (const [readings, clock] of clocks) {
        await this.gpu.done()
        const seconds = await this.inFront(clock)
        if (round) readings.push(seconds)
      }
      const answers = withTorch ? await this.page.ask(round, this.works) : []
      if (round) answers.forEach((seconds, i) => this.works[i].cpu.push(seconds))
    }
    const works = this.works.map(({ kind, size, gpu, cpu }) => ({ kind, size, gpu, cpu }))
    return { works, ...times }
  }

  // How many products the GPU makes in a second, in each second of steady work.
  async paces(product) {
    const paces = []
    for (let second = 0; this.go.busy && second < BUSY_SECONDS; second++) {
      this.page.say("busy", { left: BUSY_SECONDS - second })
      const readings = [], began = performance.now()
      while (performance.now() < began + 1000) readings.push(await this.inFront(product.onGpu))
      paces.push(readings.length / readings.reduce((sum, seconds) => sum + seconds))
    }
    return paces
  }

  async all() {
    await this.gpu.compile(this.go.wgsl)
    for (const answer of this.work.products) await this.product(answer)
    await this.forward()
    const [product, forward] = ["product", "forward"].map((kind) =>
      this.works.findLast((work) => work.kind === kind))
    if (!product || !forward) throw new Problem("wrong")
    const losses = await this.train()
    const times = await this.rounds(product, forward)
    const paces = await this.paces(product)
    return { ...times, paces, losses, left_out: this.leftOut, clocked: product.size }
  }
}

class Page {
  say(key, fields = {}) {
    const fill = (_, name) => fields[name] ?? ""
    this.text.textContent = this.data.words[key].replace(/\{(\w+)\}/g, fill)
  }

  // Tells Python which GPU answers, and what is new in the run.
  tell(news = {}) {
    this.set("report", { ...this.about, id: this.going, ...news })
  }

  fail(error) {
    const key = error instanceof Problem ? error.message : "failed"
    this.say(key, { detail: String((error.cause ?? error).message).slice(0, 200) })
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
    const isPhone = matchMedia("(pointer: coarse)").matches
    this.about = { name, kind: isSoftware ? "software" : isPhone ? "phone or tablet" : "computer" }
    this.tell()
    this.say(isSoftware ? "software" : second === name ? "found" : "two", { name, second })
  }

  // What Python says now. A run that Python no longer knows ends.
  take(data, text, set) {
    Object.assign(this, { data, text, set })
    this.looked ??= this.look().catch((error) => this.fail(error))
    if (data.go?.id === this.going) this.hear?.(data.go?.answer)
    else {
      this.leave()
      if (data.go) this.start(data.go)
    }
  }

  // Has Python do a round on its side; resolves to its seconds for each work.
  async ask(round, works) {
    this.tell({ round, works: works.map(({ kind, size }) => [kind, size]) })
    const { problem, seconds } = await this.gpu.unlessStopped(new Promise((resolve) => {
      this.hear = (answer) => { if (answer?.round === round) resolve(answer) }
    }))
    if (problem) throw new Problem("cpu", { cause: { message: problem } })
    return seconds
  }

  async start(go) {
    this.going = go.id
    let gpu
    try {
      const adapter = await this.adapter(), work = await fetched(go.works)
      gpu = this.gpu = new Gpu(await adapter.requestDevice())
      if (this.going !== go.id) return // the page was left meanwhile
      const result = await new Run(this, go, work, gpu).all()
      this.say("done")
      this.tell({ result: { ...this.about, ...result } })
    } catch (error) {
      if (this.going !== go.id) return
      this.fail(error)
      this.tell({ problem: true })
    } finally {
      gpu?.stop("left")
    }
  }

  leave() {
    this.going = undefined
    this.gpu?.stop("left")
  }
}

export default function ({ data, parentElement, setStateValue }) {
  const text = parentElement.querySelector("p")
  text.page ??= new Page()
  text.page.take(data, text, setStateValue)
  // Streamlit also calls this when newer data comes before the function has returned.
  return () => { if (!text.isConnected) text.page.leave() }
}
