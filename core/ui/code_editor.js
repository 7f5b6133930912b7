// A number stands beside each line, and is marked if a hint names the line. A new value is
// sent to the server only with the field's form, so typing runs nothing there.
const drafts = new Map() // unsent texts of fields that went away, for when they come back

export default function ({ data, parentElement, setStateValue }) {
  const code = parentElement.querySelector("textarea")
  const numbers = parentElement.querySelector("ol")

  const fit = (marked) => {
    const lines = (code.value || code.placeholder).split("\n")
    while (numbers.childElementCount > lines.length) numbers.lastChild.remove()
    while (numbers.childElementCount < lines.length) {
      numbers.append(document.createElement("li"))
    }
    for (const [index, number] of [...numbers.children].entries()) {
      number.dataset.line = lines[index]
      number.className = marked.includes(index + 1) ? "marked" : ""
    }
  }

  const write = (value) => {
    drafts.set(data.key, { given: data.value, value })
    setStateValue("value", value)
  }

  code.ariaLabel = data.label
  code.placeholder = data.placeholder
  if (data.most) code.maxLength = data.most
  code.rows = data.rows
  // A redraw of the page doesn't replace a text that somebody is typing.
  if (code.dataset.given !== data.value && !code.matches(":focus")) {
    const draft = drafts.get(data.key)
    const isNew = !("given" in code.dataset) && draft?.given === data.value
    code.dataset.given = data.value
    code.value = isNew ? draft.value : data.value
    if (isNew) setStateValue("value", code.value)
  }
  fit(data.marked)
  if (code.dataset.marked !== `${data.marked}`) {
    code.dataset.marked = data.marked
    const first = numbers.querySelector(".marked")
    const field = code.parentElement
    if (first) field.scrollTop = first.offsetTop - field.clientHeight / 2
  }

  code.oninput = () => {
    write(code.value)
    fit([])
  }
  code.onkeydown = (event) => {
    event.stopPropagation() // otherwise, the letter r would rerun Streamlit's page
    const line = code.value.slice(0, code.selectionStart).split("\n").pop()
    const isIndent = line && !line.trim() && code.selectionStart === code.selectionEnd
    if (event.key === "Backspace" && isIndent) { // takes back a level of four spaces
      event.preventDefault()
      const more = (line.length - 1) % 4
      for (let i = 0; i <= more; i++) document.execCommand("delete")
    }
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey) return
    const indent = line.match(/^\s*/)[0] + (line.trimEnd().endsWith(":") ? "    " : "")
    event.preventDefault()
    document.execCommand("insertText", false, "\n" + indent) // so that it can be undone
  }
}
