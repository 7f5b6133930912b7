// A text counts as soon as it is pasted or the field is left; while somebody types, once
// they pause. `whole` is false then: half a sentence that says nothing is no question yet.
const PAUSE = 700 // milliseconds

export default function ({ data, parentElement, setStateValue }) {
  const field = parentElement.querySelector("textarea")
  field.ariaLabel = data.label
  field.placeholder = data.placeholder
  field.maxLength = data.most

  const send = (whole) => {
    clearTimeout(field.pause)
    const sent = JSON.stringify([field.value, whole])
    if (sent === field.sent || (!field.value && !field.sent)) return
    field.sent = sent
    setStateValue("value", { text: field.value, whole })
  }
  field.oninput = (event) => {
    clearTimeout(field.pause)
    const isWhole = event.inputType?.startsWith("insertFromPaste") || !field.value
    field.pause = setTimeout(() => send(isWhole), isWhole ? 0 : PAUSE)
  }
  field.onblur = () => send(true)
  field.onkeydown = (event) => {
    event.stopPropagation() // else Streamlit takes an r for its shortcut
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(true)
  }
}
