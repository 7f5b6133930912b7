// Test images, and what the model says about the chosen image. All answers come with the data,
// so a click sends nothing. The newest drawing is sent once the one before is answered.
const COLUMNS = 10, INK = 56, BRUSH = 0.1 // pixels that are sent; share of the pad
const BETWEEN = 250, PATIENCE = 6000 // milliseconds between drawings, and to wait for an answer
const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -COLUMNS, ArrowDown: COLUMNS }
const base64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))

export default function ({ data, parentElement, setStateValue }) {
  const find = (selector) => parentElement.querySelector(selector)
  const [wall, pad, seen] = [".wall", ".pad", ".seen"].map(find)
  const tiles = [...find(".images").children], rows = [...find(".bars").children]
  const memo = (wall.memo ??= { sent: 0 })
  const { words, classes, labels, said } = data
  // An answer to a drawing that has been cleared since is ignored.
  const sketch = data.sketch?.n && data.sketch.n <= memo.cleared ? {} : data.sketch
  const percent = base64(data.percent)
  // Before its first test, a model can only guess among the classes.
  const isUntrained = labels.length > 0 && !said.length && !data.ended
  const guesses = classes.map(() => Math.round(100 / classes.length))
  const isWrong = (place) => said.length > 0 && said[place] !== labels[place]
  const fill = (text, fields) => text.replace(/{(\w+)}/g, (_, name) => fields[name])
  if (memo.run !== data.run) Object.assign(memo, { run: data.run, chosen: null, own: false })
  if (!memo.own && said.length && (memo.chosen === null || (data.ended && !isWrong(memo.chosen))))
    memo.chosen = Math.max(0, labels.findIndex((_, place) => isWrong(place)))
  if (!sketch) memo.drawing = false

  function draw() {
    const { drawing } = memo, chosen = memo.chosen ?? (isUntrained ? 0 : null)
    for (const [place, tile] of tiles.entries()) {
      const [x, y] = [place % COLUMNS, Math.floor(place / COLUMNS)]
      tile.style.backgroundPosition = `${(x * 100) / 9}% ${y * 25}%`
      tile.classList.toggle("wrong", isWrong(place))
      tile.ariaPressed = String(!drawing && place === chosen)
      tile.tabIndex = place === (chosen ?? 0) ? 0 : -1
      tile.ariaLabel = `${place + 1}: ${classes[labels[place]] ?? ""}`
    }
    wall.classList.toggle("drawing", Boolean(drawing))
    wall.classList.toggle("beside", data.beside)
    const picture = tiles[chosen]?.style.backgroundPosition
    find(".picture").hidden = !picture || drawing
    if (picture) find(".picture").style.backgroundPosition = picture
    const known = percent.slice(chosen * 10, chosen * 10 + 10)
    const shares = isUntrained ? guesses : drawing ? sketch.percent ?? [] : known
    const best = isUntrained ? -1 : shares.length ? shares.indexOf(Math.max(...shares)) : drawing ? -1 : said[chosen] ?? -1
    const label = drawing ? -1 : labels[chosen]
    for (const [kind, row] of rows.entries()) {
      const [name, bar, share] = row.children
      const isLabel = kind === label && said.length > 0
      row.className = isLabel ? "right" : kind === best && !drawing ? "wrong" : ""
      name.textContent = classes[kind]
      bar.style.setProperty("--share", `${shares[kind] ?? 0}%`)
      share.textContent = shares.length ? `${shares[kind]}%` : ""
    }
    let text = drawing ? words.how : said.length ? words.old : words.nothing
    if (isUntrained && !data.run) text = fill(words.untrained, { share: guesses[0] })
    if (drawing && sketch.problem) text = sketch.problem
    else if (best >= 0 && shares.length) {
      const fields = { said: classes[best], label: classes[label], share: shares[best] }
      text = fill(drawing ? words.drawn : best === label ? words.right : words.wrong, fields)
    }
    if (find(".says").textContent !== text) find(".says").textContent = text
    find(".draw").hidden = !sketch
    find(".draw").textContent = drawing ? words.back : words.draw
    find(".clear").hidden = !drawing
    find(".clear").textContent = words.clear
    seen.hidden = !drawing || !sketch.pixels
    if (!seen.hidden) show(base64(sketch.pixels))
  }

  function show(pixels) {
    const context = seen.getContext("2d"), image = context.createImageData(28, 28)
    const ink = data.colors.text.match(/\w\w/g).map((part) => parseInt(part, 16))
    for (const [at, value] of pixels.entries()) image.data.set([...ink, value], 4 * at)
    context.putImageData(image, 0, 0)
  }

  function choose(place) {
    Object.assign(memo, { chosen: place, own: true, drawing: false })
    draw()
  }

  // The pad

  const context = pad.getContext("2d")
  function send() {
    const wait = memo.sent + (memo.asked === sketch?.n ? BETWEEN : PATIENCE) - Date.now()
    clearTimeout(memo.timer)
    if (!memo.changed) return
    if (wait > 0) return void (memo.timer = setTimeout(memo.send, wait))
    const small = new OffscreenCanvas(INK, INK).getContext("2d")
    small.drawImage(pad, 0, 0, INK, INK)
    const ink = small.getImageData(0, 0, INK, INK).data.filter((_, at) => at % 4 === 3)
    Object.assign(memo, { changed: false, sent: Date.now(), asked: Date.now() })
    setStateValue("drawing", { n: memo.asked, ink: btoa(String.fromCharCode(...ink)) })
  }
  function place(event) {
    const box = pad.getBoundingClientRect(), scale = pad.width / box.width
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale]
  }
  function stroke(event) {
    if (!memo.at) return
    const to = place(event)
    Object.assign(context, { lineWidth: BRUSH * pad.width, lineCap: "round" })
    context.strokeStyle = data.colors.text
    context.beginPath()
    context.moveTo(...memo.at)
    context.lineTo(...to)
    context.stroke()
    Object.assign(memo, { at: to, changed: true })
    memo.send()
  }
  function clear() {
    context.clearRect(0, 0, pad.width, pad.height)
    Object.assign(memo, { changed: false, cleared: Date.now(), asked: undefined })
    Object.assign(sketch, { n: undefined, percent: null, pixels: "", problem: "" })
    draw()
  }

  wall.style.setProperty("--images", data.images ? `url("${data.images}")` : "none")
  for (const name of ["right", "wrong", "quiet"])
    wall.style.setProperty(`--${name}`, data.colors[name])
  for (const [place, tile] of tiles.entries()) tile.onclick = () => choose(place)
  find(".images").onkeydown = (event) => {
    const place = (memo.chosen ?? 0) + (STEPS[event.key] ?? NaN)
    if (!tiles[place]) return
    event.preventDefault()
    choose(place)
    tiles[place].focus()
  }
  find(".draw").onclick = () => {
    memo.drawing = !memo.drawing
    draw()
  }
  find(".clear").onclick = clear
  pad.ariaLabel = words.how
  pad.onpointerdown = (event) => {
    pad.setPointerCapture(event.pointerId)
    memo.at = place(event)
    stroke(event) // a dot
  }
  pad.onpointermove = stroke
  pad.onpointerup = pad.onpointercancel = () => (memo.at = null)
  memo.send = send
  draw()
  if (memo.changed) send()
}
