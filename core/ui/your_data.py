"""What a visitor can do with all that is theirs: take it along, have it elsewhere, or
have it deleted.
"""

import streamlit as st

from core.errors import ExplainedError
from core.store import export
from core.store.results import RunSummary
from core.store.visitors import Visitor
from core.ui import downloads, format
from core.ui.runs import RUN
from core.ui.server import explained, store, visitor_of_cookie
from core.ui.visitor_routes import CODE, DELETE, what_was_said

NO_COOKIE = (
    "Your browser sent no cookie, so this app can't tell which runs are yours, and you "
    "find one again only by its link. Reload the page; if this message stays, allow "
    "cookies for this address."
)
STYLE = """
form { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: end; }
label { flex: 1 1 14rem; font-size: 0.875rem; }
input, button {
  box-sizing: border-box; height: 2.5rem; padding: 0 0.75rem; font: inherit;
  font-size: 1rem; color: var(--st-text-color); border-radius: var(--st-base-radius);
  border: 1px solid var(--st-border-color); background: var(--st-background-color);
}
input { display: block; width: 100%; margin-top: 0.25rem; }
button { cursor: pointer; }
button:hover { color: var(--st-link-color); border-color: var(--st-link-color); }
:focus-visible { outline: 2px solid var(--st-link-color); outline-offset: 1px; }
"""
# Forms of their own, since only an answer to a form can set a cookie.
code_form = st.components.v2.component(
    "code_form",
    html=f"""<form method="post" action="{CODE}">
      <label>A code from another browser
        <input name="code" required maxlength="100" autocomplete="off"
               autocapitalize="none" spellcheck="false">
      </label>
      <button>Use this code</button>
    </form>""",
    css=STYLE,
)
delete_form = st.components.v2.component(
    "delete_form",
    html=f"""<form method="post" action="{DELETE}">
      <button>Delete everything</button>
    </form>""",
    css=STYLE,
)


def tell(page: str) -> None:
    """How coming back or deleting went, on the page of that title that follows it."""
    if said := what_was_said(visitor_of_cookie()):
        st.session_state["said"] = page, said
    where, said = st.session_state.get("said", ("", None))
    if said and where == page:
        show = {"success": st.success, "warning": st.warning}[said.kind]
        show(said.text, icon=":material/key:")
    elif said:
        del st.session_state["said"]


def draw() -> None:
    """The visitor's code, their files, and the way to delete all of it."""
    st.subheader("Your data")
    who = visitor_of_cookie()
    if not who:
        st.info(NO_COOKIE, icon=":material/cookie_off:")
        return
    st.markdown(
        "This app recognizes your browser by a cookie and never asks your name. Your "
        "runs, measurements and answers are kept until you delete them."
    )
    with explained("Your data can't be read right now"):
        me = _known(who)
        with st.container(horizontal=True):
            with st.popover("Continue in another browser", icon=":material/devices:"):
                _codes(me)
            downloads.button(
                "Runs (CSV)",
                lambda: export.runs_csv(_runs(who)),
                "my-runs.csv",
                "my_runs_csv",
                mime="text/csv",
            )
            downloads.button(
                "Everything (JSON)",
                lambda: export.everything(store(), who),
                "my-data.json",
                "my_data_json",
                mime="application/json",
            )
            if st.button(
                "Delete my data", icon=":material/delete:", key="delete_my_data"
            ):
                _confirm(len(_runs(who)))


def _runs(who: str) -> list[RunSummary]:
    """All that they trained, hidden or not."""
    return store().runs.find(who, hidden=True, address=RUN)


def _known(who: str) -> Visitor:
    """The visitor's row. ExplainedError where it can't be made or read."""
    kept = store().visitors
    if kept.get(who) is None:
        kept.touch(who)
        store().writer.flush()
    found = kept.get(who)
    if found is None:
        raise ExplainedError(
            "The database can't save it right now. Try again in a minute."
        )
    return found


def _codes(me: Visitor) -> None:
    st.markdown(
        "Your code. Enter it on this page in another browser, and your runs are there:"
    )
    st.code(me.code, language=None)
    st.markdown(
        "Whoever has it sees your runs and can delete them: keep it to yourself."
    )
    st.divider()
    code_form(key="code_form")
    st.markdown(
        "What you did in this browser stays under the code above. Keep that to come "
        "back to it."
    )


@st.dialog("Delete my data?")
def _confirm(runs: int) -> None:
    st.markdown(
        "**Everything kept about you** will be deleted for good: "
        f"{format.counted(runs, 'run')}, with curves and models, and all that you "
        "measured. What is still running is cancelled. Your code and the links to your "
        "runs stop working."
    )
    delete_form(key="delete_form")
