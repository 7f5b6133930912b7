"""Signing in as a teacher: by TEACHER_PASSWORD, or by an account in TEACHER_EMAILS.

The browser keeps a token in a cookie. The token is invalid once the teacher signs out
in any tab, or the server restarts. Nobody can try many passwords quickly: each attempt
makes later attempts wait, those from the same network address much longer than others.
"""

import asyncio
import hmac
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import scrypt
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from core.classroom.room import Teacher
from core.serving import forms, visitor_cookie
from core.serving.forms import Failures, Sentence, TooBusyError, Turns
from core.ui import clicks
from core.ui.controls import NO_COOKIE, form
from core.ui.server import noticed, room, visitor, visitor_of_cookie
from to_device.errors import ExplainedError
from to_device.words import Words

logger = logging.getLogger(__name__)
words = Words(__file__)

COOKIE = "teacher"
LASTS_SECONDS = 12 * 3600
ENTER = "teacher/enter"  # the form's route, relative to a page's address
PASSWORD, EMAILS = "TEACHER_PASSWORD", "TEACHER_EMAILS"
SHORTEST, LONGEST = 8, 200  # characters of a password
ADVISED = 12  # characters of a password that nobody guesses by trying for a year
MOST_WAITING = 20  # attempts to sign in that wait for their turn
LONGEST_NAME = 40  # characters
WRONG = Sentence("warning", "That is not the password. Try again.")
FIELDS = f"""<label>Password
  <input name="password" type="password" required maxlength="{LONGEST}"
         autocomplete="current-password"></label>
<label>Your name, for the log
  <input name="name" maxlength="{LONGEST_NAME}" placeholder="Teacher"
         autocomplete="name"></label>"""
sign_in_form = form("sign_in_form", ENTER, FIELDS, "Sign in")
# By token: who has signed in, and the time (as time.time) when the sign-in expires
_sign_ins: dict[str, tuple[Teacher, float]] = {}
_signed_out: set[str] = set()  # tokens of those who signed out themselves
failures = Failures()
turns = Turns(MOST_WAITING)
# A thread of its own, since files wait for those that all routes share. Each digest
# takes 16 MiB, and a core for 0.05 s.
_thread = ThreadPoolExecutor(1, "password")


@cache
def password() -> tuple[bytes, bytes] | None:
    """The password's salt and digest; None if it isn't set.

    Raises ExplainedError if it is too short or too long.
    """
    text = os.environ.get(PASSWORD, "")
    if not text:
        return None
    if not SHORTEST <= len(text) <= LONGEST:
        span = f"{SHORTEST} to {LONGEST}"
        raise ExplainedError(
            f"`{PASSWORD}` has {len(text)} characters, but a password "
            f"must have {span}. Restart the app with a different password."
        )
    salt = secrets.token_bytes(16)
    return salt, _digest(text, salt)


def warn_of_password() -> None:
    """Log a warning about a password that is too short, or could be guessed."""
    text = os.environ.get(PASSWORD, "")
    if text and len(text) < ADVISED:
        advice = (
            f"{PASSWORD} has {len(text)} characters, so somebody may "
            f"guess it. Restart the app with a password of {ADVISED} "
            "characters or more."
        )
        logger.warning(advice)


def fits(typed: str) -> bool:
    """Whether the password is right. Checking a wrong password takes just as long."""
    salt, digest = password() or (b"", b"")
    return hmac.compare_digest(_digest(typed[: LONGEST + 1], salt), digest)


def _digest(text: str, salt: bytes) -> bytes:
    return scrypt(text.encode("utf-8", "replace"), salt=salt, n=2**14, r=8, p=1)


def teacher() -> Teacher | None:
    """The teacher who is signed in on this browser; None if nobody is."""
    if sign_in := _sign_ins.get(st.context.cookies.get(COOKIE, "")):
        who, until = sign_in
        return who if until > time.time() else None
    if may_teach(st.user.to_dict(), os.environ.get(EMAILS, "")):
        account = Teacher(visitor(), str(st.user["email"]))
        room().welcome(account, time.time() + LASTS_SECONDS)
        return account
    return None


def is_cut_off() -> bool:
    """Whether this browser's sign-in ended without a click on "Sign out"."""
    token = st.context.cookies.get(COOKIE, "")
    return bool(token) and token not in _signed_out and teacher() is None


def may_teach(user: Mapping[str, object], emails: str) -> bool:
    """Whether an OIDC account's email is in `emails`, separated by commas."""
    addresses = {address.strip().casefold() for address in emails.split(",")} - {""}
    return (
        user.get("is_logged_in") is True
        and user.get("email_verified") is True
        and str(user.get("email", "")).casefold() in addresses
    )


def button(
    label: str,
    key: str,
    icon: str,
    do: Callable[..., object],
    *arguments: object,
    at: str = "notice",
    **more: Any,
) -> bool:
    """Draw a button that calls `do`, see `act`. Returns whether it was clicked.

    A button whose meaning changes has a key for each meaning.
    """
    more |= {"icon": f":material/{icon}:" if icon else None, "on_click": act}
    return st.button(label, key=key, args=(do, *arguments), kwargs={"at": at}, **more)


def act(do: Callable[..., object], *arguments: object, at: str = "notice") -> None:
    """Call `do` with the signed-in teacher: the callback of teachers' widgets.

    Where another widget may take the place of the clicked one, a double click would
    press both, so the second click doesn't count. If `do` refuses, the reason is shown
    `at` a field, see core.ui.server.noticed.
    """
    clicks.once(_act, at, do, *arguments)


def _act(at: str, do: Callable[..., object], *arguments: object) -> None:
    if (who := teacher()) is None:
        st.session_state.notice = (
            "You were signed out, so nothing was changed. Sign in again."
        )
        return
    with noticed(at=at):
        do(who, *arguments)


def draw() -> None:
    """Draw this server's ways to sign in; if there is none, say how to set one up."""
    try:
        by_password = password()
    except ExplainedError as error:
        st.error(str(error), title="Nobody can sign in")
        return
    if not visitor_of_cookie():
        st.info(NO_COOKIE, icon=":material/cookie_off:")
    elif by_password:
        if is_cut_off():
            st.info(words("sign_in.again"), icon=":material/restart_alt:")
        with st.container(border=True, width=560):
            sign_in_form(key="sign_in_form")
    # Accounts need an OIDC provider, which .streamlit/secrets.toml names under "auth".
    if (
        os.environ.get(EMAILS)
        and st.secrets.load_if_toml_exists()
        and "auth" in st.secrets
    ):
        if st.user.get("is_logged_in"):
            st.warning(
                "You are signed in, but your email address is not on this server's "
                "list of teachers, or your account's provider doesn't say that it has "
                "verified the address.",
                icon=":material/block:",
            )
            st.button("Sign out", on_click=st.logout, key="sign_out_account")
        elif st.button("Sign in with your account", key="sign_in_account"):
            try:
                st.login()
            except st.errors.StreamlitAPIException as error:
                st.error(str(error), title="This server can't sign you in")
    elif by_password is None:
        st.markdown(
            f"This page is turned off. Set `{PASSWORD}` to a password of "
            "at least 12 characters and restart the app. Then you can "
            "sign in here with that password."
        )


def sign_out() -> None:
    if who := teacher():
        room().dismiss(who)
    token = st.context.cookies.get(COOKIE, "")
    if _sign_ins.pop(token, None) is None:
        st.logout()
    else:
        _signed_out.add(token)


async def enter(request: Request) -> Response:
    """Sign in if the password is right; each further attempt has to wait longer."""
    fields = await forms.posted(request)
    who, address = visitor_cookie.visitor(request), forms.sender(request)
    age = visitor_cookie.age(request.cookies.get(visitor_cookie.COOKIE, ""))
    delay = failures.delay(address)
    failures.add(address)  # before the wait, so that simultaneous attempts wait too
    await asyncio.sleep(delay)
    typed, loop = fields.get("password", ""), asyncio.get_running_loop()
    try:
        async with turns.turn(address, who, age):
            is_right = await loop.run_in_executor(_thread, fits, typed)
    except TooBusyError:
        return PlainTextResponse(words("sign_in.busy"), 503, {"Retry-After": "10"})
    if not (who and is_right):
        return forms.to_page(who, WRONG, "Teacher")
    failures.take_back(address)
    name = " ".join(fields.get("name", "")[:LONGEST_NAME].split()) or "Teacher"
    now, token = time.time(), secrets.token_urlsafe(32)
    for old in [old for old, (_, until) in _sign_ins.items() if until < now]:
        del _sign_ins[old]
    _sign_ins[token] = Teacher(who, name), now + LASTS_SECONDS
    room().welcome(Teacher(who, name), now + LASTS_SECONDS)
    answer = forms.to_page(who, None, "Teacher")
    visitor_cookie.set_cookie(answer, COOKIE, token, LASTS_SECONDS, request.scope)
    return answer


ROUTES = [Route(f"/{ENTER}", enter, methods=["POST"])]
