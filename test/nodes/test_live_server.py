"""The live page's server: what it answers, to whom, and what it refuses."""

from __future__ import annotations

import http.client
import json
import re
import threading

import pytest

from semiparam_dynamics.errors import ConfigurationError
from semiparam_dynamics.nodes.live_server import HOST, MOST_STREAMS, Feed, LiveServer, html_page
from semiparam_dynamics.page import LOOKS, MEASURED


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
    streams = [ask(port, "/stream") for _ in range(MOST_STREAMS)]
    assert [events(one, 1) for one in streams] == [[("status", 1)]] * MOST_STREAMS
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


def test_the_page_loads_nothing_and_has_the_colours_of_the_report() -> None:
    text = html_page()
    assert (
        "http://" not in text and "https://" not in text and "@" not in re.sub("@media", "", text)
    )
    assert "innerHTML" not in text and "default-src 'none'" in text
    nonces = re.findall(r"nonce[-=]\"?([\w-]+)", text)
    assert len(nonces) == 2 and len(set(nonces)) == 1 and html_page() != text
    for look in (LOOKS["rigid_body"], LOOKS["semiparametric"], MEASURED):
        assert look.color in text
