"""A visitor's data, which the visitor can download or use in another browser.

The form for another browser's code posts to a route, since only a route's
response can set a cookie.
"""

import asyncio
from functools import partial
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.jobs.job import Job
from core.runs.delete_my_data_page import confirm
from core.serving import forms
from core.serving import visitor_cookie as cookie
from core.serving.forms import Failures, Sentence
from core.store import export
from core.store.codec import StoreError
from core.store.space import OWN
from core.store.tables import RunSummary, Visitor
from core.ui import controls, guess, runs
from core.ui.server import explained, store, visitor_of_cookie
from to_device.errors import ExplainedError
from to_device.words import Words

words = Words(__file__)

CODE = "visitor/code"  # a route, relative to a page's address
BACK = Sentence(
    "success", "Welcome back. Everything that you did under this code is here."
)
WRONG = Sentence("warning", words("my_data.wrong"))
CODE_FIELD = """<label>A code from another browser
  <input name="code" required maxlength="100" autocomplete="off"
         autocapitalize="none" spellcheck="false"></label>"""
code_form = controls.form("code_form", CODE, CODE_FIELD, "Use this code")
failures = Failures()


def draw() -> None:
    st.header("Your data")
    who = visitor_of_cookie()
    if not who:
        st.info(controls.NO_COOKIE, icon=":material/cookie_off:")
        return
    # At import, Streamlit's caches would be made, before there is a runtime for them.
    from core.serving.full_database import is_limited

    full = words("my_data.full", own=OWN) if is_limited() else ""
    st.markdown(f"{words('my_data.what')} {full}")
    with explained("Your data can't be read right now"):
        me = _row(who)
        with st.container(horizontal=True):
            with st.popover("Continue in another browser", icon=":material/devices:"):
                st.markdown(
                    "To see your runs in another browser, open this page there "
                    "and enter your personal code:"
                )
                st.code(me.code, language=None)
                st.markdown(
                    "Anyone who has your code can see and delete your runs, so "
                    "keep it to yourself."
                )
                st.divider()
                code_form(key="code_form")
                st.markdown(words("my_data.before"))
            table, name = lambda: export.runs_csv(_runs(who)), "my-runs.csv"
            controls.download("Runs (CSV)", table, name, "my_runs_csv")
            everything = partial(export.everything, store(), who, partial(may_see, who))
            name = "my-data.json"
            controls.download("Everything (JSON)", everything, name, "my_data_json")
            icon = ":material/delete:"
            if st.button("Delete my data", icon=icon, key="delete_my_data"):
                confirm(len(_runs(who)))


def _runs(who: str) -> list[RunSummary]:
    return store().runs.find(who, hidden=True, address=runs.RUN)


def may_see(
    who: str, given: guess.Given, name: str, value: Any, arguments: tuple
) -> bool:
    """Whether the page of a result, which is kept by this name, shows it to `who`."""
    return guess.may_see(Job("", name, arguments, "train", value=value), who, given)


def _row(who: str) -> Visitor:
    """The visitor's row in the database, made if necessary.

    Raises ExplainedError if the row can't be made.
    """
    visitors = store().visitors
    if visitors.get(who) is None:
        visitors.touch(who)
        store().writer.flush()
    if (row := visitors.get(who)) is None:
        raise ExplainedError(
            "The database can't save anything right now. Try again in a minute."
        )
    return row


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


ROUTES = [Route(f"/{CODE}", come_back, methods=["POST"])]
