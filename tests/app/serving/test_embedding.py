import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Route

from core.serving.embedding import FRAMERS, Embedding
from tests.app.ui.client import Client

PAGE = Route("/", lambda _: HTMLResponse("<p>A page</p>"))
APP = Starlette(routes=[PAGE], middleware=[Middleware(Embedding)])


@pytest.mark.parametrize(
    ("headers", "policy"),
    [
        ({}, FRAMERS),
        ({"sec-fetch-dest": "iframe", "sec-fetch-site": "cross-site"}, FRAMERS),
        ({"x-forwarded-proto": "https"}, None),
        ({"x-forwarded-context": "/user/ada"}, None),
    ],
)
def test_without_a_proxy_only_pages_of_the_app_may_frame_it(headers, policy):
    for path, status in (("/", 200), ("/none", 404)):
        answer = Client(APP).get(path, **headers)
        assert answer.status == status
        assert answer.headers.get("content-security-policy") == policy
