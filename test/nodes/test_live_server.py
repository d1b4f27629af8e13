"""The live page's server: what it answers, to whom, and what it refuses."""

from __future__ import annotations

import http.client
import json
import re
import threading

import pytest

from semiparam_dynamics.base.errors import ConfigurationError, RefusedError
from semiparam_dynamics.base.nodes.live_server import HOST, MAX_STREAMS, Feed, LiveServer, html_page
from semiparam_dynamics.learner.curves import LOOKS, MEASURED


@pytest.fixture
def served():
    feed = Feed()
    with LiveServer(feed, 0) as server:
        yield feed, int(server.url.rstrip("/").rpartition(":")[2])


def ask(port: int, path: str, method: str = "GET", **headers: str):
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def events(response, count: int) -> list[tuple[str, object]]:
    found = []
    while len(found) < count:
        line = response.readline().decode().strip()
        if line.startswith("event: "):
            data = response.readline().decode().removeprefix("data: ")
            found.append((line.removeprefix("event: "), json.loads(data)))
    return found


def test_who_comes_gets_what_is_newest_and_then_what_changes(served) -> None:
    feed, port = served
    feed.publish({"status": {"n": 1}, "sample": [1.0, float("nan"), float("inf")]})
    feed.publish({"status": {"n": 2}})
    stream = ask(port, "/stream")
    assert stream.headers["Content-Type"] == "text/event-stream"
    assert events(stream, 2) == [("sample", [1.0, None, None]), ("status", {"n": 2})]
    feed.publish({"sample": "</script>\n\ndata: x"})
    assert events(stream, 1) == [("sample", "</script>\n\ndata: x")]


def test_only_this_machine_reads_and_nothing_writes(served) -> None:
    _, port = served
    page = ask(port, "/")
    assert page.status == 200 and page.headers["X-Frame-Options"] == "DENY"
    assert ask(port, "/", Host=f"rebound.example:{port}").status == 403
    assert ask(port, "/stream", Host="rebound.example").status == 403
    assert ask(port, "/../../etc/passwd").status == 404
    assert ask(port, "/", "POST").status == 501


def test_more_readers_than_there_may_be_are_told_so(served) -> None:
    feed, port = served
    feed.publish({"status": 1})
    streams = [ask(port, "/stream") for _ in range(MAX_STREAMS)]
    assert [events(one, 1) for one in streams] == [[("status", 1)]] * MAX_STREAMS
    assert ask(port, "/stream").status == 503


def test_a_port_that_is_taken_is_named(served) -> None:
    _, port = served
    with pytest.raises(ConfigurationError, match=str(port)):
        LiveServer(Feed(), port)


def test_closing_lets_readers_go() -> None:
    feed = Feed()
    server = LiveServer(feed, 0)
    port = int(server.url.rstrip("/").rpartition(":")[2])
    feed.publish({"status": 1})
    stream = ask(port, "/stream")
    events(stream, 1)
    closing = threading.Thread(target=server.close)
    closing.start()
    assert b"event" not in stream.read()
    closing.join(10.0)
    assert not closing.is_alive()


class Orders:
    """A server that takes orders, and one who gives them."""

    def __init__(self) -> None:
        self.taken: list[dict[str, str]] = []
        self.server = LiveServer(Feed(), 0, "objects.html", self._act)
        self.host = self.server.url.removeprefix("http://").rstrip("/")
        self.port = int(self.host.rpartition(":")[2])
        self.token = re.search(r'TOKEN = "([\w-]{20,})"', ask(self.port, "/").read().decode())[1]

    def _act(self, order) -> None:
        if order.get("do") == "nothing":
            raise RefusedError("nothing can't be done", reason="order")
        self.taken.append(order)

    def give(self, body: str, path: str = "/order", **headers: str):
        given = {"Host": self.host, "Origin": f"http://{self.host}", "X-Token": self.token}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=10)
        connection.request("POST", path, body, given)
        return connection.getresponse()


@pytest.fixture
def orders():
    made = Orders()
    yield made
    made.server.close()


def test_an_order_of_the_page_is_taken_and_a_refusal_has_its_sentence(orders) -> None:
    assert orders.give('{"do": "teach", "label": "mug \\u00e9"}').status == 204
    refused = orders.give('{"do": "nothing"}')
    assert (refused.status, refused.read()) == (422, b"nothing can't be done")
    assert orders.taken == [{"do": "teach", "label": "mug é"}]


def test_who_is_not_the_page_orders_nothing(orders) -> None:
    order = '{"do": "forget", "label": "mug"}'
    elsewhere = (
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": f"http://{HOST}:1"},  # another server of this machine
        {"X_Token": ""},
        {"X_Token": orders.token[:-1]},
        {"X_Token": "é" * 22},
        {
            "Host": f"rebound.example:{orders.port}",
            "Origin": f"http://rebound.example:{orders.port}",
        },
    )
    for headers in elsewhere:
        assert orders.give(order, **headers).status == 403, headers
    assert orders.give(order, "/stream").status == 404
    forwarded = {"Host": "localhost:9000", "Origin": "http://localhost:9000"}  # by SSH
    assert orders.give(order, **forwarded).status == 204
    assert len(orders.taken) == 1
    with LiveServer(Feed(), 0) as reads:
        port = int(reads.url.rstrip("/").rpartition(":")[2])
        assert ask(port, "/order", "POST", Origin=reads.url.rstrip("/")).status == 501


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        '"do"',
        '{"do": 3}',
        '{"do": {"a": "b"}}',
        "[" * 4000,
        f'{{"do": "{"x" * 9000}"}}',
    ],
)
def test_what_is_no_object_of_texts_is_no_order(orders, body: str) -> None:
    assert orders.give(body).status == 400
    assert orders.taken == []


@pytest.mark.parametrize("length", ["-1", "x", "9999999999", "\u0663"])
def test_a_length_that_cannot_be_is_not_waited_for(orders, length: str) -> None:
    assert orders.give("{}", Content_Length=length.encode().decode("latin-1")).status == 400


@pytest.mark.parametrize("name", ["live.html", "objects.html"])
def test_a_page_loads_nothing_and_makes_no_markup_of_names(name: str) -> None:
    text = html_page(name)
    assert (
        "http://" not in text and "https://" not in text and "@" not in re.sub("@media", "", text)
    )
    assert "innerHTML" not in text and "default-src 'none'" in text
    nonces = re.findall(r"nonce[-=]\"?([\w-]+)", text)
    assert len(nonces) == 2 and len(set(nonces)) == 1 and html_page(name) != text


def test_the_live_page_has_the_colours_of_the_report() -> None:
    text = html_page()
    for look in (LOOKS["rigid_body"], LOOKS["semiparametric"], MEASURED):
        assert look.color in text
