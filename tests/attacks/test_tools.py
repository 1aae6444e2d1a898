"""Attacks on the tools: a hostile agent as an MCP client, with the official SDK and raw bytes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from app.children.sandbox import Bubblewrap, find_bubblewrap
from app.mcp_server.endpoints import CALLS, GUESTS
from tests.support.bridge import ADMIN_TOKEN, ROOT
from tests.support.observe import PATIENCE, demo
from tests.support.platform import Platform
from tests.support.tools import Tooled

ECHO = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
APART = "bubblewrap" if isinstance(find_bubblewrap(os.environ["PATH"]), Bubblewrap) else ""
needs_bubblewrap = pytest.mark.skipif(not APART, reason="it is about agents that are isolated")
RESTLESS = [sys.executable, str(ROOT / "tests" / "support" / "restless_agent.py")]
FREE: dict[str, Any] = {"mode": "free", "command": RESTLESS}


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tooled]:
    agents = {
        "attacker": demo(**FREE),
        "victim": demo(**FREE),
        "ended": demo(**FREE),
        "idle": demo(**FREE),
        "apart": demo(**FREE | {"sandbox": APART or "none", "tool_exposure": "mixed"}),
    }
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("hostile")
        with Tooled(folder, platform, agents=agents) as bridge:
            yield bridge


@pytest.fixture(scope="module")
def token(bridge: Tooled) -> Iterator[str]:
    """Take the token of the attacker, whose turn goes on for as long as the attacks."""
    bridge.begin("attack", "servers\ntell here\nhold over", "attacker")
    bridge.held("attack", "here", "attacker")
    yield read_token(bridge, "attack", "attacker")
    bridge.release("attack", "over", "attacker")


def read_token(bridge: Tooled, place: str, agent: str) -> str:
    """Read the token of an agent, which it wrote into its workspace: nothing is redacted there."""
    file = bridge.workspace(agent, bridge.session(place, agent)) / "servers.json"
    (server,) = json.loads(file.read_text())
    return str(server["headers"][0]["value"].removeprefix("Bearer "))


def post(bridge: Tooled, token: str, content: Any = None, **headers: str) -> httpx.Response:
    """Send a raw request."""
    given = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        **headers,
    }
    body = content if isinstance(content, (bytes, str)) else json.dumps(content or echo("hello"))
    url = f"http://127.0.0.1:{bridge.port}/mcp"
    return httpx.post(url, content=body, headers=given, timeout=PATIENCE, trust_env=False)


def echo(text: str, **more: Any) -> dict[str, Any]:
    """Write a call of the tool `echo`."""
    return {**ECHO, "params": {"name": "echo", "arguments": {"text": text, **more}}}


@asynccontextmanager
async def client(bridge: Tooled, token: str, **more: Any) -> AsyncIterator[Client]:
    """Connect as the official SDK does."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{bridge.port}/mcp", http_client=http)
        async with Client(transport, **more) as made:
            yield made


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_lists_and_calls_the_tools_of_its_own_session(
    bridge: Tooled, token: str, mode: str
) -> None:
    async with client(bridge, token, mode=mode) as own:
        names = {tool.name for tool in (await own.list_tools()).tools}
        result = await own.call_tool("echo", {"text": "hello"})

    assert {"echo", "wait"} <= names
    found = json.loads(result.content[0].text)  # type: ignore[union-attr] # it is text
    assert found["session"] == bridge.session("attack", "attacker")


@pytest.mark.parametrize(
    "guess",
    ["x", "Bearer", ADMIN_TOKEN, "A" * 43, "é", "null"],
    ids=["short", "word", "admin", "guess", "accent", "null"],
)
def test_a_guessed_token_opens_nothing(bridge: Tooled, token: str, guess: str) -> None:
    answer = httpx.post(
        f"http://127.0.0.1:{bridge.port}/mcp",
        headers={b"Authorization": b"Bearer " + guess.encode()},
        json=echo("hello"),
        trust_env=False,
    )

    assert answer.status_code == 401
    assert token not in answer.text


async def test_a_token_dies_with_its_process(bridge: Tooled) -> None:
    bridge.begin("life", "servers\ntell here\nhold over\ncrash", "ended")
    bridge.held("life", "here", "ended")
    old = read_token(bridge, "life", "ended")
    assert post(bridge, old).status_code == 200

    bridge.release("life", "over", "ended")
    bridge.end("life", 0, "ended")

    bridge.wait(lambda: post(bridge, old).status_code == 401, "the token outlives its process")
    with pytest.raises((MCPError, ExceptionGroup)):
        async with client(bridge, old) as late:
            await late.call_tool("echo", {"text": "hello"})


def test_a_token_is_worth_nothing_between_turns(bridge: Tooled) -> None:
    bridge.ask("idle", "servers", "idle")

    answer = post(bridge, read_token(bridge, "idle", "idle"))

    assert "Tools work only during your turn" in answer.text


def test_the_id_of_another_session_leads_nowhere(bridge: Tooled, token: str) -> None:
    bridge.ask("secret place", "say hello", "victim")
    other = bridge.session("secret place", "victim")
    own = bridge.session("attack", "attacker")

    argument = post(bridge, token, echo("x", session=other))
    header = post(bridge, token, None, **{"Mcp-Session-Id": str(other)})
    message = {"name": "agents_message", "arguments": {"to": "victim", "text": "x"}}
    message["arguments"] |= {"session": str(other)}  # type: ignore[operator] # it is a table
    asked = post(bridge, token, {**ECHO, "params": message})

    assert "Additional properties are not allowed" in argument.text
    assert f'\\"session\\": {own}' in header.text
    assert '"isError":true' in asked.text
    assert bridge.rows("select count(*) from turn where session = ?", other) == [(1,)]


def test_a_token_that_its_agent_says_is_shown_and_stored_nowhere(bridge: Tooled) -> None:
    bridge.ask("betrayal", "servers\nbetray", "victim")
    token = read_token(bridge, "betrayal", "victim")

    said = bridge.turns("betrayal", "victim")[0].content["text"]
    read = bridge.http.get(f"/api/v1/sessions/{bridge.session('betrayal', 'victim')}/transcript")
    stored = [path.read_bytes() for path in bridge.data_dir.glob("*.db*")]

    secret = token.partition(".")[0]
    assert said.startswith("It is [secret]")
    assert secret not in read.text
    assert not any(secret.encode() in each for each in stored)


@needs_bubblewrap
async def test_nothing_that_an_isolated_agent_knows_opens_the_tools_at_the_port(
    bridge: Tooled,
) -> None:
    number = bridge.begin("apart", "servers\nrun env -0 > known\ntell here\nhold over", "apart")
    bridge.held("apart", "here", "apart")
    workspace = bridge.workspace("apart", bridge.session("apart", "apart"))
    variables = (workspace / "known").read_text().split("\0")
    values = {each.partition("=")[2] for each in variables}
    (server,) = json.loads((workspace / "servers.json").read_text())
    told = {*values, *server["args"], *(Path(word).parent.name for word in server["args"])}

    answers = [post(bridge, each) for each in told if each.strip() and each.isascii()]
    bridge.release("apart", "over", "apart")
    bridge.end("apart", number, "apart")

    assert (server.get("headers"), server["env"]) == (None, [])
    assert not any(each.startswith("AGENT_BRIDGE_TOOLS=") for each in variables)
    assert len(answers) > 5
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.json()["title"] for answer in answers} == {"unknown or expired token"}


DEEP = "[" * 100_000 + "]" * 100_000
MALFORMED = {
    "nothing": b"",
    "no JSON": b"{",
    "not UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "a number": b"7",
    "a batch": json.dumps([echo("x")] * 100).encode(),
    "deep": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":'
    b'{"text":' + DEEP.encode() + b"}}}",
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "an unknown method": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/delete"}',
    "wrong parameters": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}',
    "no name": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": {}}}',
    "a text as arguments": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": '
    b'{"name": "echo", "arguments": "x"}}',
    "a wrong type": json.dumps(echo("x", times="many")).encode(),
    "beyond the limits": json.dumps(echo("x", times=10**400)).encode(),
    "nested arguments": json.dumps(echo("x", list=[{"a": [[[[[[[[{}]]]]]]]]}, 7])).encode(),
    "too much for a tool": json.dumps(echo("x" * 100_000)).encode(),
    "far too much": b'{"a": "' + b"x" * 3_000_000 + b'"}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_input_is_refused_and_hurts_no_other_call(
    bridge: Tooled, token: str, body: bytes
) -> None:
    answer = post(bridge, token, body)

    assert answer.status_code >= 400 or '"error"' in answer.text or '"isError":true' in answer.text
    assert answer.status_code != 500
    assert len(answer.text) < 10_000
    assert "Traceback" not in answer.text
    assert '"isError":false' in post(bridge, token).text


def test_a_request_for_another_host_or_from_another_site_is_refused_first(
    bridge: Tooled, token: str
) -> None:
    host = post(bridge, token, None, Host="attacker.example")
    origin = post(bridge, token, None, Origin="https://attacker.example")
    both = post(bridge, "guess", None, Host="attacker.example")

    assert (host.status_code, origin.status_code, both.status_code) == (403, 403, 403)


@pytest.mark.long
async def test_a_flood_of_calls_is_bounded_and_does_not_reach_others(
    bridge: Tooled, token: str
) -> None:
    waits = [bridge.folder / f"wait-{number}" for number in range(CALLS)]
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(
        headers=headers, timeout=PATIENCE, trust_env=False, limits=httpx.Limits()
    ) as http:
        url = f"http://127.0.0.1:{bridge.port}/mcp"
        calls = [{**ECHO, "params": {"name": "wait", "arguments": {"text": str(w)}}} for w in waits]
        async with asyncio.TaskGroup() as group:
            held = [group.create_task(http.post(url, json=call)) for call in calls]
            await asyncio.to_thread(
                bridge.wait, lambda: all(w.exists() for w in waits), "not all wait", PATIENCE
            )
            flood = await asyncio.gather(*(http.post(url, json=echo("x")) for _ in range(200)))
            bridge.begin("other place", 'tool echo {"text": "served"}', "victim")
            other = await asyncio.to_thread(bridge.end, "other place", 0, "victim")
            for wait in waits:
                wait.unlink()

    assert {answer.status_code for answer in flood} == {429}
    assert '"text": "served"' in other["text"]
    assert all('"isError":false' in task.result().text for task in held)


def test_a_call_ends_when_its_caller_goes_away(bridge: Tooled, token: str) -> None:
    wait = bridge.folder / "left"
    call = {**ECHO, "params": {"name": "wait", "arguments": {"text": str(wait)}}}

    hang_up(bridge, token, call, wait)

    bridge.wait(Path(f"{wait}.cancelled").exists, "the call goes on", PATIENCE)


def hang_up(bridge: Tooled, token: str, call: dict[str, Any], wait: Path) -> None:
    """Send a call, and close the connection once it runs."""
    body = json.dumps(call).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{bridge.port}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with closing(socket.create_connection(("127.0.0.1", bridge.port))) as connection:
        connection.sendall(head.encode() + body)
        bridge.wait(wait.exists, "the call does not run", PATIENCE)


def door(bridge: Tooled) -> Path:
    """Find the socket of the attacker's door: it answers as the attacker's session."""
    own = f'\\"session\\": {bridge.session("attack", "attacker")},'.encode()
    paths = (bridge.data_dir / "tools").glob("*/tools")
    return next(path for path in paths if own in ask(path, "POST", "/mcp"))


def ask(path: Path, method: str, where: str, token: str = "") -> bytes:
    """Send a request over a socket, and return the whole answer."""
    body = json.dumps(echo("x")).encode()
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(path))
        connection.sendall(
            f"{method} {where} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer


@asynccontextmanager
async def relayed(bridge: Tooled) -> AsyncIterator[Client]:
    """Connect over the relay of the attacker's door, as an agent does that takes no HTTP."""
    relay = door(bridge).with_name("tool_relay.py")
    server = StdioServerParameters(command=sys.executable, args=[str(relay), "serve"], env={})
    async with Client(stdio_client(server)) as made:
        yield made


async def test_the_official_client_calls_tools_over_the_relay_and_sees_their_progress(
    bridge: Tooled, token: str
) -> None:
    wait = bridge.folder / "progress"
    seen: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        wait.unlink(missing_ok=True)

    async with relayed(bridge) as own:
        many = await asyncio.gather(*(own.call_tool("echo", {"text": str(n)}) for n in range(8)))
        waited = await own.call_tool("wait", {"text": str(wait)}, progress_callback=note)

    assert [json.loads(each.content[0].text)["text"] for each in many] == [*map(str, range(8))]  # type: ignore[union-attr] # it is text
    assert not waited.is_error
    assert seen[0] == 1


async def test_a_call_over_the_relay_ends_when_its_client_gives_up(
    bridge: Tooled, token: str
) -> None:
    wait = bridge.folder / "gives up"

    async with relayed(bridge) as own:
        with pytest.raises(MCPError):
            await own.call_tool("wait", {"text": str(wait)}, read_timeout_seconds=1.0)
        await asyncio.to_thread(
            bridge.wait, Path(f"{wait}.cancelled").exists, "the call goes on", PATIENCE
        )
        after = await own.call_tool("echo", {"text": "still here"})

    assert not after.is_error


@pytest.mark.parametrize("where", ["/", "/api/v1/sessions", "/webhooks/hook/victim", "/metrics"])
def test_the_socket_of_an_agent_serves_the_tools_alone(
    bridge: Tooled, token: str, where: str
) -> None:
    path = door(bridge)

    assert ask(path, "GET", where, ADMIN_TOKEN).startswith(b"HTTP/1.1 405 ")
    assert b"sessions" not in ask(path, "POST", where, token)


def test_connections_to_a_socket_are_bounded(bridge: Tooled, token: str) -> None:
    path = door(bridge)
    opened = []
    try:
        for _ in range(GUESTS):
            opened.append(socket.socket(socket.AF_UNIX))
            opened[-1].connect(str(path))
        with closing(socket.socket(socket.AF_UNIX)) as late:
            late.settimeout(PATIENCE)
            late.connect(str(path))
            assert late.recv(1) == b""
    finally:
        for connection in opened:
            connection.close()
    assert '"isError":false' in post(bridge, token).text


def test_a_head_without_end_is_cut_off(bridge: Tooled, token: str) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(door(bridge)))
        connection.sendall(b"POST /mcp HTTP/1.1\r\nX: ")
        with pytest.raises(OSError):  # noqa: PT011 - refused or closed, by the kernel's choice
            send_for_ever(connection)


def send_for_ever(connection: socket.socket) -> None:
    """Send more than any memory holds."""
    for _ in range(100_000):
        connection.sendall(b"x" * 65536)
