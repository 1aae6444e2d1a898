"""The proxy of a child, spoken to as programs do, with an internet on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from app.children.network import access, link
from app.children.network.access import NetworkAccess, NetworkRules, SessionHosts
from app.children.network.dialing import Dialer
from app.children.network.link import HEAD_BYTES, Proxy
from app.config.network import HostPattern
from app.tasks import Tasks
from tests.support.outside import PUBLIC, Staged

pytestmark = pytest.mark.anyio
BOUND = 5.0
OPEN = NetworkRules("open")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Record:
    """Remembers what people were told, and answers for them."""

    notes: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    answer: bool | None = None
    waiting: asyncio.Event | None = None

    async def note(self, words: str) -> None:
        self.notes.append(words)

    async def ask(self, host: str, port: int) -> bool | None:
        self.asked.append(f"{host}:{port}")
        if self.waiting is not None:
            await self.waiting.wait()
        return self.answer


@dataclass
class Station:
    """A proxy that listens, and what is around it."""

    port: int
    outside: Staged
    record: Record

    async def say(self, text: str) -> str:
        """Send something and return all that comes back."""
        async with asyncio.timeout(BOUND):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(text.encode())
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer.decode()

    async def connect(self, target: str) -> str:
        """Ask for a tunnel and return the first line of the answer."""
        answer = await self.say(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
        return answer.partition("\r\n")[0]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say back what comes, to its end."""
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    server = await asyncio.start_server(handler, "127.0.0.1", 0, limit=HEAD_BYTES)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def station(
    rules: NetworkRules = OPEN,
    *,
    own_port: int = 1,
    hosts: SessionHosts | None = None,
    **environment: str,
) -> AsyncIterator[Station]:
    tasks, record = Tasks("test"), Record()
    async with serving(echo) as far:
        outside = Staged({"public.example": [PUBLIC]}, {PUBLIC: far})
        gate = NetworkAccess(rules, hosts or SessionHosts(), tasks)
        gate.witness = record
        proxy = Proxy(gate, Dialer(outside, {own_port}, environment))
        async with serving(proxy.serve) as port:
            try:
                yield Station(port, outside, record)
            finally:
                await tasks.close()


async def test_a_tunnel_carries_bytes_as_they_are() -> None:
    async with station() as here:
        answer = await here.say("CONNECT public.example:443 HTTP/1.1\r\n\r\n\x16\x03bytes")

    assert answer == "HTTP/1.1 200 Connection established\r\n\r\n\x16\x03bytes"


async def test_a_plain_request_goes_on_without_what_was_for_the_proxy() -> None:
    async with station() as here:
        request = (
            "POST http://public.example/a?b=c HTTP/1.1\r\nHost: other.example\r\n"
            "Proxy-Authorization: Basic secret\r\nProxy-Connection: keep-alive\r\n"
            "Content-Length: 4\r\n\r\nbody"
        )
        passed_on = await here.say(request)

    assert passed_on == (
        "POST /a?b=c HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n"
        "Content-Length: 4\r\n\r\nbody"
    )


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("nonsense\r\n\r\n", "400"),
        ("CONNECT public.example HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT public.example:0 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT ex ample:443 HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT user@public.example:443 HTTP/1.1\r\n\r\n", "400"),
        ("GET https://public.example/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http:///x HTTP/1.1\r\n\r\n", "400"),
        (f"GET http://public.example/ HTTP/1.1\r\nX: {'x' * HEAD_BYTES}\r\n\r\n", "431"),
        ("CONNECT unknown.example:443 HTTP/1.1\r\n\r\n", "502"),
        ("CONNECT public.example:25 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n", "403"),
    ],
)
async def test_what_is_wrong_is_answered_in_words(request_: str, status: str) -> None:
    async with station() as here:
        answer = await here.say(request_)

    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert "Agent Bridge: " in answer


async def test_a_name_with_one_private_address_is_refused_as_a_whole() -> None:
    async with station() as here:
        here.outside.names = {"both.example": [PUBLIC, "10.0.0.1"]}

        assert "403" in await here.connect("both.example:443")
        assert here.record.notes == [
            "Network: refused both.example:443, not an address on the internet."
        ]


async def test_a_name_that_is_not_allowed_is_never_looked_up() -> None:
    async with station(NetworkRules("restricted", (HostPattern("public.example"),))) as here:
        assert "403" in await here.connect("secret-in-a-name.example:443")
        assert "200" in await here.connect("public.example:443")

        assert here.outside.resolved == ["public.example"]


async def test_the_same_host_is_noted_once_and_all_of_them_are_bounded() -> None:
    async with station(NetworkRules("restricted")) as here:
        for number in range(access._NOTES + 5):
            await here.connect(f"10.0.0.{number}:80")
            await here.connect(f"10.0.0.{number}:81")

        assert len(here.record.notes) == access._NOTES


async def test_a_refused_host_is_logged_once_per_session(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", access.__name__)
    session = SessionHosts()
    async with station(NetworkRules("restricted"), hosts=session) as here:
        await here.connect("10.0.0.1:80")
        await here.connect("10.0.0.1:80")
    async with station(NetworkRules("restricted"), hosts=session) as here:
        await here.connect("10.0.0.1:80")
        assert len(here.record.notes) == 1
    async with station(NetworkRules("restricted"), hosts=SessionHosts()) as here:
        await here.connect("10.0.0.1:80")

    refused = [line for line in caplog.messages if line.startswith("network: refused 10.0.0.1:80")]
    assert len(refused) == 2


async def test_made_up_names_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", access.__name__)
    monkeypatch.setattr(access, "_LOGGED", 3)
    async with station(NetworkRules("restricted")) as here:
        for number in range(6):
            await here.connect(f"10.0.0.{number}:80")

    assert len(caplog.messages) == 3 + 1
    assert (
        caplog.messages[-1]
        == "network: too many refused hosts; no longer logging them for this session"
    )


async def test_a_private_host_is_reached_where_the_operator_listed_it_with_its_port() -> None:
    async with serving(echo) as port:
        listed = NetworkRules("restricted", (HostPattern("litellm.internal", port),))
        async with station(listed) as here:
            here.outside.names = {"litellm.internal": ["127.0.0.1"]}

            assert "200" in await here.connect(f"litellm.internal:{port}")
            assert "403" in await here.connect(f"litellm.internal:{port - 1}")


async def test_the_bridge_is_never_reached_whatever_is_listed() -> None:
    async with serving(echo) as port:
        listed = NetworkRules("open", (HostPattern("mine.internal", port),))
        async with station(listed, own_port=port) as here:
            here.outside.names = {"mine.internal": ["127.0.0.1"]}

            assert "403" in await here.connect(f"mine.internal:{port}")
            assert here.record.notes == [
                f"Network: refused mine.internal:{port}, the bridge itself is off limits."
            ]


async def test_a_connection_waits_for_a_person_and_the_answer_holds() -> None:
    async with station(NetworkRules("restricted")) as here:
        here.record.answer = True

        assert "200" in await here.connect("public.example:443")
        assert "200" in await here.connect("public.example:8443")
        assert here.record.asked == ["public.example:443"]


async def test_whoever_says_no_is_not_asked_again() -> None:
    async with station(NetworkRules("restricted")) as here:
        here.record.answer = False

        assert "403" in await here.connect("public.example:443")
        assert "403" in await here.connect("public.example:443")
        assert here.record.asked == ["public.example:443"]


async def test_a_late_answer_holds_for_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_HOLD_SECONDS", 0.05)
    async with station(NetworkRules("restricted")) as here:
        here.record.answer, here.record.waiting = True, asyncio.Event()
        assert "403" in await here.connect("public.example:443")

        here.record.waiting.set()
        await asyncio.sleep(0)

        assert "200" in await here.connect("public.example:443")
        assert len(here.record.asked) == 1


async def test_only_so_many_questions_are_open_at_a_time() -> None:
    async with station(NetworkRules("restricted")) as here:
        here.record.waiting = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            tries = [group.create_task(here.connect(f"h{n}.example:443")) for n in range(6)]
            done, _ = await asyncio.wait(tries, return_when=asyncio.FIRST_COMPLETED)
            assert all("403" in each.result() for each in done)
            here.record.waiting.set()

        assert len(here.record.asked) == access._OPEN_ASKS


async def test_a_silent_connection_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "IDLE_SECONDS", 0.05)
    async with station() as here, asyncio.timeout(BOUND):
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(b"CONNECT public.example:443 HTTP/1.1\r\n\r\n")

        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


def upstream(heard: list[str], status: str = "200 OK") -> Handler:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        await echo(reader, writer)

    return handle


async def test_behind_a_proxy_tunnels_and_requests_go_through_it() -> None:
    heard: list[str] = []
    async with serving(upstream(heard)) as port:
        proxy = f"http://me:p%40ss@127.0.0.1:{port}"
        async with station(HTTPS_PROXY=proxy, http_proxy=proxy) as here:
            assert "200" in await here.connect("public.example:443")
            assert "200" in await here.connect("known-to-the-proxy-alone.example:443")
            await here.say("GET http://public.example/x HTTP/1.1\r\n\r\n")
            # What is private by a look-up here stays out of reach there.
            assert "403" in await here.connect("127.0.0.1:443")

    assert heard[0] == (
        "CONNECT public.example:443 HTTP/1.1\r\nHost: public.example:443\r\n"
        "Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
    )
    assert heard[1].startswith("CONNECT known-to-the-proxy-alone.example:443 ")
    assert heard[2].startswith("GET http://public.example/x HTTP/1.1\r\nHost: public.example\r\n")
    assert "Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in heard[2]
    assert len(heard) == 3


async def test_hosts_that_need_no_proxy_are_reached_directly() -> None:
    heard: list[str] = []
    async with serving(upstream(heard)) as port:
        proxy = f"http://127.0.0.1:{port}"
        async with station(HTTPS_PROXY=proxy, NO_PROXY="other.test, .example") as here:
            assert "200" in await here.connect("public.example:443")

    assert heard == []


async def test_a_proxy_that_refuses_is_named() -> None:
    async with (
        serving(upstream([], "407 Proxy Authentication Required")) as port,
        station(ALL_PROXY=f"127.0.0.1:{port}") as here,
    ):
        answer = await here.say("CONNECT public.example:443 HTTP/1.1\r\n\r\n")

    assert answer.startswith("HTTP/1.1 502 ")
    assert "this machine's proxy did not connect: HTTP/1.1 407" in answer


async def test_a_host_that_does_not_answer_is_said_to_be_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with station() as here:
        here.outside.routes = {PUBLIC: port}

        assert "502" in await here.connect("public.example:443")
