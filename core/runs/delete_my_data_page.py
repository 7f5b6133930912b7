"""The dialog that deletes a visitor's data. The visitor then gets a new cookie."""

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.serving import forms
from core.serving import visitor_cookie as cookie
from core.serving.forms import Sentence
from core.store.codec import StoreError
from core.ui import controls, format, runs
from core.ui import last_measurement as measured
from core.ui.server import FORGET, engine, room, store
from to_device.words import Words

words = Words(__file__)

DELETE = "visitor/delete"  # a route, relative to a page's address
DELETED = Sentence("success", words("my_data.deleted"))
delete_form = controls.form("delete_form", DELETE, "", "Delete everything")


@st.dialog("Delete my data?")
def confirm(count: int) -> None:
    st.markdown(words("my_data.sure", runs=format.counted(count, "run")))
    delete_form(key="delete_form")


async def delete(request: Request) -> Response:
    """Delete the visitor's data, and give the browser a new visitor id."""
    await forms.posted(request)
    who = cookie.visitor(request)
    if not who:
        return forms.to_page(who, DELETED, "Runs")
    cookie.retire(who)  # first: another tab must not write rows meanwhile
    try:
        had_any = await run_in_threadpool(delete_all_of, who)
    except StoreError as error:
        text = f"Some of your data has not been deleted yet. {error}"
        cookie.reinstate(who)  # the visitor has to be able to try again
        return forms.to_page(who, Sentence("warning", text), "Runs")
    if not had_any:
        cookie.reinstate(who)  # it says nothing about anybody
        return forms.to_page(who, DELETED, "Runs")
    answer = forms.to_page(fresh := cookie.new(), DELETED, "Runs")
    cookie.give(answer, fresh, request.scope)
    return answer


def delete_all_of(who: str) -> bool:
    """End the visitor's jobs, and delete the visitor's data; returns if there was any.

    Other visitors' data stays in the caches. Raises StoreError.
    """
    engine().forget(who)
    room().forget(who)
    models = store().runs.models_of(who)
    if not store().visitors.delete(who):
        return False
    engine().forget(who)  # again, since a page may have loaded jobs meanwhile
    runs.forget(who)
    measured.forget(who)
    for forget in FORGET:
        forget(who, models)
    return True


ROUTES = [Route(f"/{DELETE}", delete, methods=["POST"])]
