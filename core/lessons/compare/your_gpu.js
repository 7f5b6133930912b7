// Computes on the visitor's own GPU, checks each result against PyTorch's, and times what
// is right. Python sends the words and, for each run, `go` with the work and its answers.
const READING = 0.04 // seconds of a reading: browsers round their clocks
const QUEUED = 0.25 // seconds of work that the stopwatch doesn't wait for
const LONGEST = 1, LONGEST_HERE = 0.25 // seconds of a call on the GPU, in this thread
const GROWTH = 8 // times as long as a call, one of the next size takes at least
const HANGS = 60_000 // milliseconds after which the GPU's answer is no longer waited for
const ROUNDS = 7, BUSY_SECONDS = 15
const CLOSE = 1e-4, CLOSE_LOSSES = 1e-3
const BATCH = 64 // images of a training step
const LAYERS = [[784, 128], [128, 64], [64, 10]] // inputs and outputs of the ANN's layers
const BIAS = 1, BIAS_AND_RELU = 2, RELU_BACKWARD = 3, UPDATE = 4 // what `multiply` adds

// The numbers that core/lessons/compare/your_gpu.py draws.
function random(count, factor) {
  return Float32Array.from({ length: count }, (_, i) =>
    (Math.imul(Math.imul(i, i), factor) >>> 0) / 2 ** 32 - 0.5)
}

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
const floats = (text) => new Float32Array(bytes(text).buffer)
const pixels = (text) => Float32Array.from(bytes(text), (x) => x / 255)
const repeat = (values, length) =>
  Float32Array.from({ length }, (_, i) => values[i % values.length])
const mean = (values) => values.reduce((sum, x) => sum + x) / values.length

// a @ b of m×k and k×n in this thread: what the GPU is compared with.
function multiplyHere(a, b, [m, n, k]) {
  const c = new Float32Array(m * n)
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < k; j++) {
      const factor = a[i * k + j]
      for (let l = 0; l < n; l++) c[i * n + l] += factor * b[j * n + l]
    }
  }
  return c
}

function forwardHere(images, batch, parameters) {
  return LAYERS.reduce((x, [inputs, outputs], layer) => {
    const [weight, bias] = parameters.slice(2 * layer)
    const sums = multiplyHere(x, weight, [batch, outputs, inputs])
    const least = layer < 2 ? 0 : -Infinity
    return sums.map((sum, i) => Math.max(sum + bias[i % outputs], least))
  }, images)
}

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

// Seconds of one of `count` calls. `done` waits for the work that they have queued.
async function time(call, count, done = () => {}) {
  await done()
  const start = performance.now()
  for (let i = 0; i < count; i++) await call()
  await done()
  return Math.max((performance.now() - start) / 1000 / count, 1e-9)
}

class Problem extends Error {} // its message is a key of the words

class Gpu {
  constructor(device) {
    Object.assign(this, { device, queue: device.queue, pipelines: {} })
    this.stopped = new Promise((_, reject) => {
      this.stop = (key, cause) => {
        reject(new Problem(key, { cause }))
        device.destroy()
      }
    })
    this.stopped.catch(() => {}) // the next reply fails with this problem
    device.lost.then(() => this.stop("lost"))
    device.onuncapturederror = ({ error }) =>
      this.stop(error instanceof GPUOutOfMemoryError ? "memory" : "failed", error)
  }

  // Waits for the promise, or fails when the GPU hangs or has stopped.
  async reply(promise) {
    const timer = setTimeout(() => this.stop("hangs"), HANGS)
    return Promise.race([this.stopped, promise]).finally(() => clearTimeout(timer))
  }

  async compile(code) {
    this.device.pushErrorScope("validation") // else an error of the code is one of the device
    const module = this.device.createShaderModule({ code })
    for (const entryPoint of ["multiply", "cross_entropy"]) {
      const compute = { module, entryPoint }
      this.pipelines[entryPoint] = this.device.createComputePipeline({ layout: "auto", compute })
    }
    const cause = await this.reply(this.device.popErrorScope())
    if (cause) throw new Problem("shader", { cause })
  }

  // Numbers on the GPU: these, or so many zeros.
  numbers(values, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC) {
    const size = values.byteLength ?? 4 * values
    const buffer = this.device.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_DST })
    if (values.byteLength) this.queue.writeBuffer(buffer, 0, values)
    return buffer
  }

  async fetch(buffer) {
    const copy = this.numbers(buffer.size / 4, GPUBufferUsage.MAP_READ)
    const encoder = this.device.createCommandEncoder()
    encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size)
    this.queue.submit([encoder.finish()])
    await this.reply(copy.mapAsync(GPUMapMode.READ))
    const values = new Float32Array(copy.getMappedRange().slice(0))
    copy.destroy()
    return values
  }

  // An operation, which `submit` queues on the GPU.
  op(name, buffers, groups) {
    const pipeline = this.pipelines[name], layout = pipeline.getBindGroupLayout(0)
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }))
    const group = this.device.createBindGroup({ layout, entries })
    return (pass) => {
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, group)
      pass.dispatchWorkgroups(...groups)
    }
  }

  // c = a @ b for m×k and k×n; the strides say how a and b are stored.
  multiply(a, b, c, [m, n, k], more = 0, extra = a, strides = [k, 1, n, 1]) {
    const shape = this.numbers(Uint32Array.of(m, n, k, more, ...strides), GPUBufferUsage.UNIFORM)
    return this.op("multiply", [shape, a, b, extra, c], [Math.ceil(n / 16), Math.ceil(m / 16)])
  }

  submit(ops) {
    const encoder = this.device.createCommandEncoder(), pass = encoder.beginComputePass()
    for (const op of ops) op(pass)
    pass.end()
    this.queue.submit([encoder.finish()])
  }

  time(call, count) {
    return time(call, count, () => this.reply(this.queue.onSubmittedWorkDone()))
  }

  // The operations of a forward pass, and what goes into and comes out of the layers.
  forward(images, batch, parameters) {
    const activations = [images]
    const ops = LAYERS.map(([inputs, outputs], layer) => {
      const [weight, bias] = parameters.slice(2 * layer), more = layer < 2 ? BIAS_AND_RELU : BIAS
      const x = activations[layer], y = activations[layer + 1] = this.numbers(batch * outputs)
      return this.multiply(x, weight, y, [batch, outputs, inputs], more, bias)
    })
    return { ops, activations, logits: activations.at(-1) }
  }

  // The operations of a training step: forward, backward, and the update.
  step(images, labels, parameters, losses) {
    const { ops, activations, logits } = this.forward(images, BATCH, parameters)
    const one = this.numbers(Float32Array.of(1))
    const multiply = (...operands) => ops.push(this.multiply(...operands))
    let slope = this.numbers(BATCH * 10)
    ops.push(this.op("cross_entropy", [logits, labels, slope, losses], [1]))
    for (const layer of [2, 1, 0]) {
      const [m, n] = LAYERS[layer], [weight, bias] = parameters.slice(2 * layer)
      const x = activations[layer], ofX = this.numbers(BATCH * m)
      // First, since it needs the weights from before the update
      if (layer) multiply(slope, weight, ofX, [BATCH, m, n], RELU_BACKWARD, x, [n, 1, 1, n])
      multiply(x, slope, weight, [m, n, BATCH], UPDATE, x, [1, m, n, 1])
      multiply(one, slope, bias, [1, n, BATCH], UPDATE, one, [0, 0, n, 1])
      slope = ofX
    }
    return ops
  }
}

class Run {
  constructor(page, go, gpu) {
    Object.assign(this, { page, go, work: go.work, gpu, works: [], leftOut: [], next: {} })
  }

  // Work is timed if it is right: `call` queues it, `here` does the same in this thread.
  async add(kind, size, make) {
    this.page.say("checking", { kind, size })
    const leaveOut = (why) => { this.leftOut.push({ kind, size, left_out: why }) }
    if (this.next[kind] > LONGEST) return leaveOut("slow")
    const { values, right, close = CLOSE, ...work } = make()
    work.call()
    this.next[kind] = GROWTH * (await this.gpu.time(work.call, 1)) // after a warm-up
    const largest = right.reduce((most, x) => Math.max(most, Math.abs(x)), 0)
    const result = await values()
    // NaN is never close.
    if (!right.every((x, i) => Math.abs(result[i] - x) <= close * largest)) return leaveOut("wrong")
    this.works.push({ kind, size, ...work })
    return this.works.at(-1)
  }

  async products() {
    for (const [n, right] of this.work.products) {
      await this.add("product", n, () => {
        const [a, b] = this.work.factors.map((factor) => random(n * n, factor))
        const c = this.gpu.numbers(n * n), vector = b.subarray(0, n)
        const ops = [this.gpu.multiply(this.gpu.numbers(a), this.gpu.numbers(b), c, [n, n, n])]
        return {
          call: () => this.gpu.submit(ops),
          here: () => multiplyHere(a, b, [n, n, n]),
          values: async () => multiplyHere(await this.gpu.fetch(c), vector, [n, 1, n]),
          right: floats(right),
        }
      })
    }
  }

  async forward() {
    const images = pixels(this.work.images), logits = floats(this.work.logits)
    const parameters = this.work.parameters.map(floats)
    const there = parameters.map((values) => this.gpu.numbers(values))
    for (const size of this.work.batches) {
      await this.add("forward", size, () => {
        const x = repeat(images, size * 784), from = this.gpu.numbers(x)
        const { ops, logits: to } = this.gpu.forward(from, size, there)
        return {
          call: () => this.gpu.submit(ops),
          here: () => forwardHere(x, size, parameters),
          there: () => this.gpu.queue.writeBuffer(from, 0, x),
          back: () => this.gpu.fetch(to),
          values: () => this.gpu.fetch(to),
          right: repeat(logits, size * 10),
        }
      })
    }
  }

  // The loss of each training step; none if they are wrong.
  async train() {
    const images = pixels(this.work.training), labels = bytes(this.work.labels)
    const parameters = this.work.start.map((text) => this.gpu.numbers(floats(text)))
    const ofImages = this.gpu.numbers(BATCH), steps = [], losses = []
    for (let i = 0; i < labels.length; i += BATCH) {
      const x = this.gpu.numbers(images.subarray(i * 784, (i + BATCH) * 784))
      const y = this.gpu.numbers(Uint32Array.from(labels.subarray(i, i + BATCH)))
      steps.push(this.gpu.step(x, y, parameters, ofImages))
    }
    let step = 0
    const call = () => this.gpu.submit(steps[step++ % steps.length])
    while (step < this.work.losses.length) {
      this.page.say("training", { step })
      call()
      losses.push(mean(await this.gpu.fetch(ofImages)))
    }
    const right = this.work.losses, values = () => losses
    const work = await this.add("step", BATCH, () => ({ call, values, right, close: CLOSE_LOSSES }))
    return work ? losses : []
  }

  // A measurement; again if the tab is in the background.
  async inFront(measure) {
    const sentence = this.page.text.textContent
    for (;;) {
      const result = await measure()
      if (!document.hidden) return result
      this.page.say("background")
      while (document.hidden) await this.gpu.reply(sleep(200))
      this.page.text.textContent = sentence
    }
  }

  // A clock with as many calls as a reading needs, and its last reading.
  async clock(time) {
    let count = 1, seconds
    do seconds = await this.inFront(() => time(count))
    while (seconds * count < READING && (count *= 2) < 4000)
    return { read: () => time(count), seconds }
  }

  // Reads every clock once in each round. The first round is a warm-up.
  async rounds(product, forward) {
    const compared = [...this.works], clocks = [], next = {}
    for (const kind of ["there", "back"]) {
      this.works.push({ kind, size: forward.size, call: forward[kind] })
    }
    for (const work of this.works) {
      Object.assign(work, await this.clock((count) => this.gpu.time(work.call, count)))
      clocks.push([work.gpu = [], work.read])
      if (this.go.torch || !work.here || next[work.kind] > LONGEST_HERE) continue
      const here = await this.clock((count) => time(work.here, count))
      clocks.push([work.cpu = [], here.read])
      next[work.kind] = GROWTH * here.seconds
    }
    const count = Math.ceil(QUEUED / product.seconds)
    const unwaited = { kind: "unwaited", size: product.size, gpu: [] }
    this.works.push(unwaited)
    // First in a round, since the next clock waits for what this one has queued.
    clocks.unshift([unwaited.gpu, () => time(product.call, count)])
    for (let round = 0; round <= ROUNDS; round++) {
      this.page.say(round ? "round" : "warm_up", { round, rounds: ROUNDS })
      for (const [readings, read] of clocks) {
        const seconds = await this.inFront(read)
        if (round) readings.push(seconds)
      }
      const answers = this.go.torch ? await this.page.ask(round, compared) : []
      if (round) answers.forEach((seconds, i) => (compared[i].cpu ??= []).push(seconds))
    }
    return this.works.map(({ kind, size, gpu, cpu }) => ({ kind, size, gpu, cpu }))
  }

  // How many products the GPU makes in a second, in each second of steady work.
  async paces({ read }) {
    const paces = []
    for (let left = this.go.busy ? BUSY_SECONDS : 0; left > 0; left--) {
      this.page.say("busy", { left })
      const readings = [], began = performance.now()
      while (performance.now() < began + 1000) readings.push(await this.inFront(read))
      paces.push(1 / mean(readings))
    }
    return paces
  }

  async all() {
    await this.gpu.compile(this.go.wgsl)
    await this.products()
    await this.forward()
    const [product, forward] = ["product", "forward"].map((kind) =>
      this.works.findLast((work) => work.kind === kind))
    if (!product || !forward) throw new Problem("wrong")
    const losses = await this.train()
    const works = [...(await this.rounds(product, forward)), ...this.leftOut]
    return { works, losses, paces: await this.paces(product) }
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
    const { info } = await this.adapter(), other = await this.adapter("low-power")
    const [name, second] = [info, other.info].map(({ description, vendor, architecture, device }) =>
      description || `${vendor} ${architecture} ${device}`.trim())
    const isSoftware = info.isFallbackAdapter || /swiftshader|llvmpipe|basic render/i.test(name)
    const isPhone = matchMedia("(pointer: coarse)").matches
    this.about = { name, kind: isSoftware ? "software" : isPhone ? "phone or tablet" : "computer" }
    this.tell()
    this.say(isSoftware ? "software" : second === name ? "found" : "two", { name, second })
  }

  // What Python says now. A run that Python no longer knows ends.
  take(data, text, set) {
    Object.assign(this, { data, text, set })
    this.looked ??= this.look().catch((error) => this.fail(error))
    if (data.go?.id === this.going) return
    this.leave()
    if (data.go) this.start(data.go)
  }

  // Has Python do a round on its side; resolves to its seconds for each work.
  async ask(round, works) {
    this.tell({ round, works: works.map(({ kind, size }) => [kind, size]) })
    while (this.data.go?.answer.round !== round) await this.gpu.reply(sleep(20))
    const { problem, seconds } = this.data.go.answer
    if (problem) throw new Problem("cpu", { cause: { message: problem } })
    return seconds
  }

  async start(go) {
    this.going = go.id
    let gpu
    try {
      const adapter = await this.adapter()
      gpu = this.gpu = new Gpu(await adapter.requestDevice())
      if (this.going !== go.id) return // the page was left meanwhile
      const result = await new Run(this, go, gpu).all()
      this.say("done")
      this.tell({ result })
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
