"""Connections to agents on other machines: what is sent, and what is said when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from pydantic import SecretStr

from app.acp.launch import AgentLaunch, RemoteAddress
from app.acp.reach import reach
from app.acp.remote import RemoteAgent
from app.acp.streamable import Events, HttpAgent
from app.children.stop import StopSteps
from app.errors import AgentCutOff, AgentMisbehaved, AgentNotStarted
from app.model.workspaces import Workspace
from tests.agents.rig import eventually
from tests.support.certificates import certified
from tests.support.relays import TOKEN, CuttingProxy, relay

SECONDS = 10.0
STEPS = StopSteps()
ECHO = ["cat"]
Serve = Callable[[web.WebSocketResponse], Awaitable[None]]


def launch_at(
    url: str, token: str = TOKEN, folder: str = "", installation: str = "us"
) -> AgentLaunch:
    """Make the launch of an agent at an address."""
    remote = RemoteAddress(
        url,
        SecretStr(token),
        setting="AGENT_TOKEN__AFAR",
        folder=folder,
        installation=installation,
    )
    return AgentLaunch("afar", (url,), Path("/"), lambda _: {}, remote=remote)


async def connect(
    url: str, token: str = TOKEN, *, session: int = 0, folder: str = "", installation: str = "us"
) -> RemoteAgent:
    """Connect as the bridge does."""
    launch = launch_at(url, token, folder, installation)
    agent = await reach(launch, Workspace(Path("/")), "m.1", session=session)
    assert isinstance(agent, RemoteAgent)
    return agent


async def exchange(agent: RemoteAgent, line: bytes) -> bytes:
    """Send a line and read the next one."""
    agent.write(line + b"\n")
    await agent.drain()
    (answer,) = await read_lines(agent, 1)
    return answer


async def read_lines(agent: RemoteAgent, count: int) -> list[bytes]:
    """Read so many lines."""
    read = b""
    async with asyncio.timeout(SECONDS):
        while read.count(b"\n") < count:
            block = await agent.stdout.read(65536)
            assert block, "it ended"
            read += block
    return read.split(b"\n")[:-1]


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[int]:
    """Serve a WebSocket that is no relay."""

    async def handle(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("acp",))
        await socket.prepare(request)
        await serve(socket)
        return socket

    application = web.Application()
    application.router.add_get("/acp", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def echo(socket: web.WebSocketResponse) -> None:
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            await socket.send_str(message.data.replace(",", ",\n"))


async def test_lines_pass_through_a_relay_unread(tmp_path: Path) -> None:
    async with relay(ECHO, tmp_path) as there:
        agent = await connect(there.url)
        answered = await exchange(agent, b'{"not": read} \xf0\x9f\x8c\x8d')
        large = await exchange(agent, b"x" * (3 * 1024 * 1024))
        report = await agent.stop(STEPS)
        left = there.processes()

    assert answered == b'{"not": read} \xf0\x9f\x8c\x8d'
    assert len(large) == 3 * 1024 * 1024
    assert (report.step, left) == ("closed", [])
    assert agent.folder == str(tmp_path)


async def test_an_agent_that_serves_acp_itself_gets_plain_messages() -> None:
    async with serving(echo) as port:
        agent = await connect(f"ws://127.0.0.1:{port}/acp", folder="/srv/work")
        answered = await exchange(agent, b'{"a": 1,"b": 2}')
        await agent.stop(STEPS)

    assert answered == b'{"a": 1, "b": 2}'
    assert agent.folder == "/srv/work"


async def test_an_agent_that_serves_acp_itself_ends_with_its_connection() -> None:
    async with serving(echo) as port, CuttingProxy(port) as proxy:
        agent = await connect(f"ws://127.0.0.1:{proxy.port}/acp")
        await exchange(agent, b"{}")
        proxy.cut()
        async with asyncio.timeout(SECONDS):
            rest = await agent.stdout.read()
        await agent.stop(STEPS)

    assert (rest, proxy.connections) == (b"", 1)
    assert isinstance(agent.failure, AgentCutOff)


async def test_what_is_written_during_a_cut_arrives_after_it(tmp_path: Path) -> None:
    async with relay(ECHO, tmp_path) as there, CuttingProxy(there.port) as proxy:
        agent = await connect(f"ws://127.0.0.1:{proxy.port}")
        first = await exchange(agent, b"before")
        proxy.cut(for_good=True)
        for number in range(100):
            agent.write(b"during %d\n" % number)
            await agent.drain()
        proxy.is_open = True
        during = await read_lines(agent, 100)
        await agent.stop(STEPS)
        left = there.processes()

    assert first == b"before"
    assert during == [b"during %d" % each for each in range(100)]
    assert left == []


async def test_a_process_without_its_bridge_ends_with_all_that_it_started(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 1000 & setsid sleep 1000 & cat"]
    async with (
        relay(command, tmp_path, hold_seconds=0.3) as there,
        CuttingProxy(there.port) as proxy,
    ):
        agent = await connect(f"ws://127.0.0.1:{proxy.port}")
        await exchange(agent, b"hello")
        before = there.processes()
        proxy.cut(for_good=True)
        async with asyncio.timeout(SECONDS):
            await agent.stdout.read()
        await eventually(lambda: there.processes() == [])
        await agent.stop(STEPS)

    assert len(before) >= 3
    assert isinstance(agent.failure, AgentCutOff)


async def test_a_session_that_connects_anew_ends_the_process_that_it_had(tmp_path: Path) -> None:
    async with relay(ECHO, tmp_path) as there:
        first = await connect(there.url, session=1)
        other = await connect(there.url, session=2)
        foreign = await connect(there.url, session=1, installation="others")
        second = await connect(there.url, session=1)
        async with asyncio.timeout(SECONDS):
            assert await first.stdout.read() == b""
        answers = [await exchange(each, b"hello") for each in (other, foreign, second)]
        for each in (first, other, foreign, second):
            await each.stop(STEPS)

    assert answers == [b"hello"] * 3


async def test_a_relay_runs_so_many_processes_and_no_more(tmp_path: Path) -> None:
    async with relay(ECHO, tmp_path, connections=1) as there:
        first = await connect(there.url)
        with pytest.raises(AgentNotStarted, match="no room for another conversation"):
            await connect(there.url)
        await first.stop(STEPS)
        second = await connect(there.url)
        await second.stop(STEPS)


async def test_a_wrong_token_is_named_by_its_setting_and_never_shown(tmp_path: Path) -> None:
    async with relay(ECHO, tmp_path) as there:
        with pytest.raises(AgentNotStarted) as refused:
            await connect(there.url, "a-wrong-token-of-someone")
        left = there.processes()

    assert "127.0.0.1 refused the token. Set AGENT_TOKEN__AFAR" in str(refused.value)
    assert "a-wrong-token" not in str(refused.value)
    assert left == []


async def test_a_certificate_that_is_not_trusted_is_refused(tmp_path: Path) -> None:
    context, _ = certified(tmp_path, "localhost")
    async with relay(ECHO, tmp_path, tls=context) as there:
        with pytest.raises(AgentNotStarted, match=r"is not trusted \(.*\)\. Use a certificate"):
            await connect(f"wss://localhost:{there.port}")
        left = there.processes()

    assert left == []


async def test_a_path_without_an_agent_is_told() -> None:
    async with serving(echo) as port:
        with pytest.raises(AgentNotStarted, match=r"no agent at that path \(HTTP 404\)"):
            await connect(f"ws://127.0.0.1:{port}/elsewhere")


async def test_a_machine_that_is_not_there_is_told() -> None:
    with pytest.raises(AgentNotStarted, match=r"cannot be reached .* Check url"):
        await connect("ws://127.0.0.1:9")


async def test_a_message_above_the_limit_ends_the_connection(tmp_path: Path) -> None:
    async with relay(ECHO, tmp_path) as there:
        agent = await connect(there.url)
        agent.write(b"x" * (9 * 1024 * 1024) + b"\n")
        await agent.drain()
        async with asyncio.timeout(SECONDS):
            while await agent.stdout.read(65536):
                pass
        await agent.stop(STEPS)

    assert isinstance(agent.failure, AgentMisbehaved)
    assert "more than 8 MiB" in str(agent.failure)


async def test_a_command_that_cannot_start_is_told(tmp_path: Path) -> None:
    async with relay(["/no/such/agent"], tmp_path) as there:
        with pytest.raises(AgentNotStarted, match="could not start the agent"):
            await connect(there.url)


async def test_a_process_that_ends_tells_its_status_and_last_words(tmp_path: Path) -> None:
    async with relay(["sh", "-c", "echo out of luck >&2; exit 3"], tmp_path) as there:
        agent = await connect(there.url)
        async with asyncio.timeout(SECONDS):
            assert await agent.stdout.read() == b""
        await agent.stop(STEPS)

    assert agent.status == 3
    assert "out of luck" in str(agent.failure)


async def test_what_serves_no_acp_over_http_is_told() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"hello": "world"})

    application = web.Application()
    application.router.add_post("/", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        launch = launch_at(f"http://127.0.0.1:{port}/")
        agent = await reach(launch, Workspace(Path("/")), "m.1")
        assert isinstance(agent, HttpAgent)
        agent.write(b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\n')
        with pytest.raises(ConnectionError):
            await agent.drain()
        await agent.stop(STEPS)
    finally:
        await runner.cleanup()

    assert "127.0.0.1 does not speak ACP over HTTP" in str(agent.failure)


def test_events_are_read_in_any_pieces() -> None:
    whole = b': alive\r\n\r\ndata: {"a":\ndata: 1}\n\nevent: x\nid: 7\ndata:{"b": 2}\r\n\r\ndata: {'

    for size in range(1, len(whole)):
        events = Events()
        blocks = [whole[start : start + size] for start in range(0, len(whole), size)]
        found = [each for block in blocks for each in events.feed(block)]
        assert found == [b'{"a": 1}', b'{"b": 2}']
