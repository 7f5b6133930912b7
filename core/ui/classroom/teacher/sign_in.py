"""Who is a teacher: whoever knows TEACHER_PASSWORD, or whom TEACHER_EMAILS names.

A browser holds a token that means something only while this server knows it: signing
out, or another start of the server, ends it in all tabs. The password comes by a form
that posts, since a websocket can't set cookies, and from an address, so that whoever
guesses is slowed down there and the teacher elsewhere is not.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from core.classroom.password import VARIABLE, Password
from core.classroom.room import Teacher
from core.errors import ExplainedError
from core.ui import visitor_routes
from core.ui.server import room, visitor, visitor_of_cookie
from core.ui.visitor import COOKIE as VISITOR
from core.ui.visitor import read
from core.ui.visitor_routes import NOT_FROM_HERE, Failures, Said
from core.ui.your_data import NO_COOKIE, STYLE

COOKIE = "teacher"
LASTS_SECONDS = 12 * 3600
ENTER = "teacher/enter"  # relative to a page's address
EMAILS = "TEACHER_EMAILS"
LONGEST_NAME = 40  # characters
WELCOME = Said("success", "You are signed in. Sign out before you leave this browser.")
WRONG = Said("warning", "That is not the password. Try again.")
HOW = (
    f"This page is switched off. Start the app with `{VARIABLE}` set, a password of 8 "
    "characters or more, and it asks for that."
)


class SignIn(NamedTuple):
    """Somebody who knew the password."""

    name: str
    visitor: str
    until: float


_signed_in: dict[str, SignIn] = {}  # by token
failures = Failures()
sign_in_form = st.components.v2.component(
    "sign_in_form",
    html=f"""<form method="post" action="{ENTER}">
      <label>Password
        <input name="password" type="password" required maxlength="200"
               autocomplete="current-password">
      </label>
      <label>Your name, for the log
        <input name="name" maxlength="{LONGEST_NAME}" placeholder="Teacher"
               autocomplete="name">
      </label>
      <button>Sign in</button>
    </form>""",
    css=STYLE,
)


@cache
def password() -> Password | None:
    """The one of this server. ExplainedError where it is too short."""
    return Password.from_environment()


def teacher() -> Teacher | None:
    """The teacher whose browser this is; None for everybody else."""
    if known := _signed_in.get(st.context.cookies.get(COOKIE, "")):
        return Teacher(known.visitor, known.name) if known.until > time.time() else None
    if may_teach(st.user.to_dict(), os.environ.get(EMAILS, "")):
        found = Teacher(visitor(), str(st.user["email"]))
        room().welcome(found)
        return found
    return None


def may_teach(user: Mapping[str, object], emails: str) -> bool:
    """Whether somebody who signed in with OIDC is named among these addresses."""
    named = {each.strip().casefold() for each in emails.split(",")} - {""}
    return (
        user.get("is_logged_in") is True
        and user.get("email_verified", True) is True
        and str(user.get("email", "")).casefold() in named
    )


def draw() -> None:
    """The ways to sign in that this server has; without one, how to have one."""
    try:
        by_password = password()
    except ExplainedError as error:
        st.error(str(error), title="Nobody can sign in")
        return
    by_account = bool(os.environ.get(EMAILS)) and _has_accounts()
    if not visitor_of_cookie():
        st.info(NO_COOKIE, icon=":material/cookie_off:")
    elif by_password:
        with st.container(border=True, width=560):
            sign_in_form(key="sign_in_form")
    if by_account:
        _account()
    elif by_password is None:
        st.markdown(HOW)


def _has_accounts() -> bool:
    """Whether .streamlit/secrets.toml says who signs people in."""
    try:
        return "auth" in st.secrets
    except FileNotFoundError:
        return False


def _account() -> None:
    if st.user.get("is_logged_in"):
        st.warning(
            "You are signed in, but your address is not one of this server's teachers.",
            icon=":material/block:",
        )
        st.button("Sign out", on_click=st.logout, key="sign_out_account")
    elif st.button("Sign in with your account", key="sign_in_account"):
        try:
            st.login()
        except st.errors.StreamlitAPIException as error:
            st.error(str(error), title="This server can't sign you in")


def sign_out() -> None:
    """The rules hold for this browser again."""
    if found := teacher():
        room().dismiss(found)
    if _signed_in.pop(st.context.cookies.get(COOKIE, ""), None) is None:
        st.logout()


async def enter(request: Request) -> Response:
    """Sign in whoever knows the password; others are told, and wait ever longer."""
    form = await visitor_routes.posted(request)
    if form is None:
        return PlainTextResponse(NOT_FROM_HERE, 403)
    who = read(request.cookies.get(VISITOR, ""))
    address = request.client.host if request.client else ""
    delay = failures.delay(address)
    failures.add(address)  # before it is known: a hundred at once wait as well
    await asyncio.sleep(delay)
    kept = password()
    typed = form.get("password", [""])[0]
    right = kept is not None and await run_in_threadpool(kept.fits, typed)
    if not (who and right):
        return visitor_routes.to_page(who, WRONG, "Teacher")
    name = " ".join(form.get("name", [""])[0][:LONGEST_NAME].split()) or "Teacher"
    answer = visitor_routes.to_page(who, WELCOME, "Teacher")
    _remember(answer, SignIn(name, who, time.time() + LASTS_SECONDS), request)
    room().welcome(Teacher(who, name))
    return answer


def _remember(answer: Response, known: SignIn, request: Request) -> None:
    now, token = time.time(), secrets.token_urlsafe(32)
    for old in [each for each, its in _signed_in.items() if its.until < now]:
        room().dismiss(Teacher(_signed_in[old].visitor, _signed_in.pop(old).name))
    _signed_in[token] = known
    answer.set_cookie(
        COOKIE,
        token,
        max_age=LASTS_SECONDS,
        httponly=True,
        samesite="lax",
        secure=request.scope["scheme"] == "https",
    )


ROUTES = [Route(f"/{ENTER}", enter, methods=["POST"])]
