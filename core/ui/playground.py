"""Try it: change a page's code, and run it on the simulated accelerator.

The editor shows a function with what it needs to run: the imports that it uses, and
lines that call it. core/examples has these lines: `try_score` in core/examples/loops.py
calls `score` of core/loops.py. Where the lines name a generator and don't loop over it,
as `try_walk` does, the editor shows the generator's lines instead, without its yields.
"""

import ast
import textwrap
from functools import cache
from typing import Any, TypeGuard

import streamlit as st

from core.folders import ROOT
from core.halves import read
from core.jobs import code
from core.runs.export import definitions, names_in
from core.serving.execution_policy import mode
from core.ui import clicks, code_editor, figures, format
from core.ui.server import engine, explained, run_code
from to_device.dryrun.report import Request
from to_device.errors import drawable
from to_device.words import Words

EXAMPLES = "core.examples"
# Calls a function whose only parameter is a device.
ON_DEVICE = """\
device = torch.device("cuda")
print({name}(device))"""
NAME = "your code"
MOST_CHARACTERS = 10_000  # longer code is cut, and longer output scrolls
MOST_LINES = 8  # output with more lines scrolls
words = Words(__file__)


def button(address: str, key: str = "", **machine: Any) -> None:
    """Draw a button that opens a function in the editor.

    There is no button if visitors' code may not run here, or if `program` can't call
    the function. `machine` has fields for the Request that starts the dry run.
    """
    if not program(address) or engine().machine() is None:
        return  # without workers, it takes long to find out whether code may run
    if mode(engine().ask).kind != "off":
        key = f"try_{key or address}"
        if st.button("Try it", icon=":material/edit:", key=key, type="tertiary"):
            open_editor(address, machine)


@cache
def program(address: str) -> str:
    """Return a program: a function's imports and helpers, the function, and its call.

    The call is from core/examples. All other functions whose first parameter is
    `device` are called with a device. For functions without a call, returns "".
    """
    module, _, name = address.partition(":")
    text, example = read(module), _example(module)
    body, of_example = ast.parse(text).body, ast.parse(example).body
    function = next((e for e in body if getattr(e, "name", None) == name), None)
    names = {name}
    if call := definitions(example, {f"try_{name}"}):
        call = textwrap.dedent(call.partition("-> None:\n")[2]).strip()
        *before, last = call.splitlines()
        if last.startswith(f"{name}(") and _yields(function):
            steps = _without_yields(text, function)
            call, names = "\n".join([*before, steps]), set()
    else:
        arguments = function.args.args if isinstance(function, ast.FunctionDef) else []
        if [a.arg for a in arguments[:1]] != ["device"]:
            return ""
        call = ON_DEVICE.format(name=name)
    inside = definitions(text, names | names_in(ast.parse(call))).strip()
    needed = names_in(ast.parse(f"{inside}\n{call}"))
    lines = []
    for node in [*body, *of_example]:
        # What the example imports from the function's own module is in `inside`.
        if isinstance(node, ast.Import) or (
            isinstance(node, ast.ImportFrom) and node.module != module
        ):
            node.names = [alias for alias in node.names if alias.name in needed]
            needed -= {alias.name for alias in node.names}
            if node.names:
                lines.append(ast.unparse(node))
    parts = "\n".join(lines), inside, call
    return "\n\n\n".join(filter(None, parts))


def _yields(node: ast.AST | None) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(inner, ast.Yield) for inner in ast.walk(node)
    )


def _without_yields(text: str, function: ast.FunctionDef) -> str:
    """The body of a generator in a module's text, without the lines that yield."""
    first = function.body[1 if ast.get_docstring(function) else 0]
    lines = text.splitlines()[first.lineno - 1 : function.end_lineno]
    kept = (line for line in lines if not line.strip().startswith("yield"))
    return textwrap.dedent("\n".join(kept)).strip()


def _example(module: str) -> str:
    """The text of the examples that call a module's functions; "" if there are none."""
    path = ROOT.joinpath(*EXAMPLES.split("."), module.rpartition(".")[2])
    path = path.with_suffix(".py")
    return path.read_text("utf-8") if path.exists() else ""


@st.dialog("Try it", width="large")
def open_editor(address: str, machine: dict[str, Any]) -> None:
    state, key, code_mode = st.session_state, f"tried_{address}", mode(engine().ask)

    def reset() -> None:
        state.pop(f"{key}_ran", None)
        state[key] = {"value": program(address)}

    if code_mode.kind == "off":  # it was on when the dialog opened
        st.info(code_mode.why, icon=":material/block:")
        return
    st.markdown(words("playground.about"))
    left, right = st.columns([6, 5], gap="medium")
    with left, st.form(f"form_{key}", border=False):
        field = st.container()
        buttons = st.container(horizontal=True)
        pressed = buttons.form_submit_button("Run it", icon=":material/play_arrow:")
        icon = ":material/replay:"
        buttons.form_submit_button(
            "Start again", icon=icon, type="tertiary", on_click=reset
        )
        text = code_editor.text(key)[:MOST_CHARACTERS]
        is_same = text == state.get(f"{key}_ran", ("",))[0]
        if pressed and not (is_same and clicks.waited_for(key)):
            with explained("The code was not run"), clicks.taken(key):
                request = Request(
                    NAME, text, seconds=code.SECONDS - 1, names=True, **machine
                )
                run, how = "core.jobs.code:run", code_mode.kind
                report, printed = run_code("Running it", run, request, how)
                # A page draws no facts, and those of a hostile script may be many.
                state[f"{key}_ran"] = text, report | {"facts": {}}, printed
    text, report, printed = state.get(f"{key}_ran", (program(address), None, ""))
    error = ""
    if report and (failure := report["failure"]):
        told = code.failed(failure, NAME) or code.raised(failure)
        error = "\n\n".join(filter(None, (told, code.hint(failure, NAME))))
    with field:
        lines = code_editor.lines_in(error)
        code_editor.draw("The code", key, text, most=MOST_CHARACTERS, marked=lines)
    with right:
        if report:
            _draw_outcome(report, error, printed)
        else:
            st.markdown(words("playground.start"))


def _draw_outcome(report: dict[str, Any], error: str, printed: str) -> None:
    if error:
        st.error(error, icon=":material/error:")
    for note in report["notes"]:
        st.info(note, icon=":material/info:")
    if printed:
        st.markdown("**What the code printed**")
        output(printed)
    _table(
        "**Tensors and models**, as they were after each line",
        ("Line", "Name", "Shape", "dtype", "Device"),
        [
            (
                value["line"],
                value["name"],
                _shape(value),
                value["dtype"],
                value["device"],
            )
            for value in report["values"]
        ],
    )
    if not (error or report["notes"] or printed or report["values"]):
        st.markdown(
            "The code ran to the end, but it printed nothing and made no tensors."
        )
    uses = [(wait, "the CPU waits", wait["cause"]) for wait in report["waits"]]
    for copy in report["copies"]:
        size = format.size(copy["bytes"]) + " in all" * (copy["times"] > 1)
        uses.append((copy, f"copied {copy['way']}", size))
    _table(
        "**Waits and copies** during the whole run",
        ("Line", "What", "How", "Times"),
        sorted(
            (use["line"]["line"], kind, detail, use["times"])
            for use, kind, detail in uses
            if use["line"]["file"] == NAME
        ),
    )


def output(printed: str) -> None:
    """Draw what code printed; long output scrolls."""
    is_long = printed.count("\n") > MOST_LINES or len(printed) > MOST_CHARACTERS
    height: Any = 200 if is_long else "content"
    st.code(drawable(printed), language=None, wrap_lines=True, height=height)


def _shape(value: dict[str, Any]) -> str:
    """A tensor's shape as text, "()" for a single number; for a model, its class."""
    if value["shape"] is None:
        return value["kind"]
    return format.shape(value["shape"]) if value["shape"] else "()"


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    if rows:
        st.markdown(title)
        figures.table(rows, columns, title.replace("*", ""), row_height=28)
