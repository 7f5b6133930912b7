import pytest
from starlette.requests import HTTPConnection

from core.serving.request_source import is_direct, is_private, network

OWN = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}


def test_a_browser_of_this_machine_is_direct() -> None:
    six = {"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}
    assert all(map(is_direct, (OWN, {"Host": "127.0.0.1:8501"}, six)))


@pytest.mark.parametrize(
    ("client", "headers", "is_ours"),
    [
        ("127.0.0.1", {"host": "127.0.0.1:8501"}, True),
        ("::1", {"host": "localhost:8501"}, True),
        ("127.0.0.1", {"host": "127.0.0.1", "x-forwarded-for": "127.0.0.1"}, False),
        ("127.0.0.1", {"host": "demo.example.org"}, False),
        ("192.168.0.9", {"host": "127.0.0.1:8501"}, False),
        ("10.86.7.9", {"host": "web:8501"}, True),
        ("10.86.7.9", {"host": "web:8501", "x-forwarded-for": "10.86.7.9"}, False),
        ("10.86.8.9", {"host": "web:8501"}, False),
        ("", {"host": "web:8501"}, False),
    ],
)
def test_private_is_who_asks_from_here_or_from_beside_the_proxy(
    client, headers, is_ours, monkeypatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1,10.86.7.0/24")
    pairs = [(name.encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "client": (client, 1), "headers": pairs}
    assert is_private(HTTPConnection(scope)) == is_ours


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": ""},
        {"Host": "[::1"},
        {"Host": "demo.example.org"},
        {"Host": "192.168.0.2:8501"},
        {"Host": "localhost.example.org"},
        {**OWN, "X-Forwarded-For": "127.0.0.1"},
        {**OWN, "x-forwarded-proto": "https"},
        {**OWN, "Forwarded": "for=127.0.0.1"},
        {**OWN, "Via": "1.1 Caddy"},
        {**OWN, "Origin": "https://evil.example.org"},
        {**OWN, "Origin": "null"},
        # Pages that other programs on this machine serve.
        {**OWN, "Origin": "http://localhost:3000"},
        {**OWN, "Origin": "http://127.0.0.1:8501"},
        {**OWN, "Origin": "https://localhost"},
        {**OWN, "Origin": "http://[::1"},
        # A name of somebody else's that leads to this machine.
        {"Host": "evil.example.org:8501", "Origin": "http://evil.example.org:8501"},
    ],
)
def test_what_may_come_from_elsewhere_is_not(headers) -> None:
    assert not is_direct(headers)


@pytest.mark.parametrize(
    ("address", "counts_as"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_all_addresses_of_one_customer_count_as_one(address, counts_as) -> None:
    assert network(address) == counts_as
