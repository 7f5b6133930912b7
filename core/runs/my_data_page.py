"""A visitor's data: visitors can download it, use it in another browser, or delete it.

The forms post to their own routes, since only a route's answer can set a cookie.
"""

import asyncio
from functools import partial

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.errors import ExplainedError
from core.serving import forms
from core.serving import visitor_cookie as cookie
from core.serving.forms import Failures, Sentence
from core.store import export
from core.store.codec import StoreError
from core.store.tables import RunSummary, Visitor
from core.ui import controls, format, runs
from core.ui import last_measurement as measured
from core.ui.server import engine, explained, room, store, visitor_of_cookie
from core.words import Words

words = Words(__file__)

CODE, DELETE = "visitor/code", "visitor/delete"  # routes, relative to a page's address
BACK = Sentence("success", words("my_data.back"))
WRONG = Sentence("warning", words("my_data.wrong"))
DELETED = Sentence("success", words("my_data.deleted"))
CODE_FIELD = """<label>A code from another browser
  <input name="code" required maxlength="100" autocomplete="off"
         autocapitalize="none" spellcheck="false"></label>"""
code_form = controls.form("code_form", CODE, CODE_FIELD, "Use this code")
delete_form = controls.form("delete_form", DELETE, "", "Delete everything")
failures = Failures()


def draw() -> None:
    st.subheader("Your data")
    who = visitor_of_cookie()
    if not who:
        st.info(controls.NO_COOKIE, icon=":material/cookie_off:")
        return
    st.markdown(words("my_data.what"))
    with explained("Your data can't be read right now"):
        me = _row(who)
        with st.container(horizontal=True):
            with st.popover("Continue in another browser", icon=":material/devices:"):
                st.markdown(words("my_data.code"))
                st.code(me.code, language=None)
                st.markdown(words("my_data.secret"))
                st.divider()
                code_form(key="code_form")
                st.markdown(words("my_data.before"))
            table, name = lambda: export.runs_csv(_runs(who)), "my-runs.csv"
            controls.download("Runs (CSV)", table, name, "my_runs_csv")
            everything = partial(export.everything, store(), who)
            name = "my-data.json"
            controls.download("Everything (JSON)", everything, name, "my_data_json")
            icon = ":material/delete:"
            if st.button("Delete my data", icon=icon, key="delete_my_data"):
                _confirm(len(_runs(who)))


def _runs(who: str) -> list[RunSummary]:
    return store().runs.find(who, hidden=True, address=runs.RUN)


def _row(who: str) -> Visitor:
    """The visitor's row in the database, made if necessary.

    Raises ExplainedError if the row can't be made.
    """
    visitors = store().visitors
    if visitors.get(who) is None:
        visitors.touch(who)
        store().writer.flush()
    if (row := visitors.get(who)) is None:
        raise ExplainedError(words("my_data.not_saved"))
    return row


@st.dialog("Delete my data?")
def _confirm(count: int) -> None:
    st.markdown(words("my_data.sure", runs=format.counted(count, "run")))
    delete_form(key="delete_form")


async def come_back(request: Request) -> Response:
    """If the posted code is a visitor's, give the browser this visitor's cookie."""
    fields, who = await forms.posted(request), cookie.visitor(request)
    await asyncio.sleep(failures.delay(forms.sender(request)))
    try:
        code = fields.get("code", "")
        owner = await run_in_threadpool(store().visitors.by_code, code)
    except StoreError as error:
        return forms.to_page(who, Sentence("warning", str(error)), "Runs")
    if owner is None:
        failures.add(forms.sender(request))
        return forms.to_page(who, WRONG, "Runs")
    answer = forms.to_page(owner.id, BACK, "Runs")
    cookie.give(answer, owner.id, request.scope)
    return answer


async def delete(request: Request) -> Response:
    """Delete all data of the browser's visitor, and give the browser a new visitor."""
    await forms.posted(request)
    who = cookie.visitor(request)
    if not who:
        return forms.to_page(who, DELETED, "Runs")
    try:
        await run_in_threadpool(delete_all_of, who)
    except StoreError as error:
        text = f"Some of your data has not been deleted yet. {error}"
        return forms.to_page(who, Sentence("warning", text), "Runs")
    cookie.retire(who)
    answer = forms.to_page(fresh := cookie.new(), DELETED, "Runs")
    cookie.give(answer, fresh, request.scope)
    return answer


def delete_all_of(who: str) -> None:
    """End the visitor's jobs, and delete the visitor's data. Raises StoreError."""
    engine().forget(who)
    room().forget(who)
    store().visitors.delete(who)
    engine().forget(who)  # again, since a page may have loaded jobs meanwhile
    runs.forget()
    measured.forget()
    st.cache_data.clear()  # has answers about the visitor's models


ROUTES = [
    Route(f"/{CODE}", come_back, methods=["POST"]),
    Route(f"/{DELETE}", delete, methods=["POST"]),
]
