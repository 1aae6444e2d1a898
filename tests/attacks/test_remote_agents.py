"""Attacks by way of agents on other machines: strangers, web pages, and what such an agent says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from app.acp.numbered import PROTOCOL
from app.errors import AgentNotStarted
from tests.support.bridge import DEMO
from tests.support.observe import Observed
from tests.support.platform import Platform
from tests.support.relays import TOKEN, Elsewhere, relay
from tests.unit.acp.test_remote import connect

METADATA = "169.254.169.254"


async def knock(url: str, **headers: str) -> int:
    """Ask for a WebSocket and return the answer's status; 101 if it opens."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.ws_connect(url, protocols=(PROTOCOL,), headers=headers) as socket:
                await socket.send_str(json.dumps({"connection": "", "received": 0}))
                await socket.receive()
        except aiohttp.WSServerHandshakeError as refused:
            return refused.status
    return 101


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": "Bearer \u00fc\u00df"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, 403),
    ],
)
async def test_strangers_and_web_pages_start_nothing(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with relay(DEMO, tmp_path) as there:
        answered = await knock(there.url, **headers)
        started = there.processes()
        let_in = await knock(there.url, Authorization=f"Bearer {TOKEN}")

    assert (answered, started) == (status, [])
    assert let_in == 101


async def test_a_guessed_connection_leads_to_no_process(tmp_path: Path) -> None:
    async with relay(["cat"], tmp_path) as there:
        victim = await connect(there.url)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(there.url, protocols=(PROTOCOL,), headers=headers) as socket,
        ):
            await socket.send_str(json.dumps({"connection": "guessed", "received": 0}))
            answer = await socket.receive_json()
        await victim.close()

    assert answer == {"refused": "gone"}


@asynccontextmanager
async def redirecting(to: str) -> AsyncIterator[int]:
    """Serve an address that leads elsewhere."""

    async def handle(_request: web.Request) -> web.Response:
        raise web.HTTPFound(to)

    application = web.Application()
    application.router.add_get("/", handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_a_redirect_leads_to_no_address_that_tells_secrets() -> None:
    async with redirecting(f"http://{METADATA}/latest/meta-data/") as port:
        with pytest.raises(AgentNotStarted, match="not an address of an agent"):
            await connect(f"ws://127.0.0.1:{port}/")


async def test_a_redirect_takes_no_token_along() -> None:
    heard: list[str | None] = []

    async def listen(request: web.Request) -> web.Response:
        heard.append(request.headers.get("Authorization"))
        return web.Response(status=404)

    application = web.Application()
    application.router.add_get("/", listen)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with redirecting(f"http://localhost:{runner.addresses[0][1]}/") as port:
            with pytest.raises(AgentNotStarted):
                await connect(f"ws://127.0.0.1:{port}/")
    finally:
        await runner.cleanup()

    assert heard in ([], [None])


async def test_a_name_that_leads_to_metadata_is_refused_when_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(*_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", (METADATA, 443))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve, raising=False)

    with pytest.raises(AgentNotStarted, match="not an address of an agent"):
        await connect("wss://innocent.example/")


def test_who_may_edit_agents_points_the_bridge_at_no_metadata(tmp_path: Path) -> None:
    with Platform() as platform, Observed(tmp_path, platform, page=True) as bridge:
        entry = {"name": "spy", "url": f"wss://{METADATA}/latest"}
        added = bridge.http.post("/api/v1/agents", json=entry)
        listed = bridge.http.get("/api/v1/agents").json()["items"]

    assert added.status_code == 422
    assert "not an agent" in added.text
    assert [each["name"] for each in listed] == ["demo"]


LIAR = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    answer = {}
    if method == "initialize":
        answer = {"protocolVersion": 1, "agentCapabilities": {}}
    elif method == "session/new":
        answer = {"sessionId": "s"}
    elif method == "session/prompt":
        link = {"type": "resource_link", "name": "passwd", "uri": "file://SECRET"}
        update = {"sessionUpdate": "agent_message_chunk", "content": link}
        note = {"sessionId": "s", "update": update}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": note}))
        answer = {"stopReason": "end_turn"}
    if number is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": number, "result": answer}), flush=True)
"""


def test_an_agent_elsewhere_gets_no_file_of_the_bridge_by_naming_it(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("canary-of-this-machine")
    program = tmp_path / "liar.py"
    program.write_text(LIAR.replace("SECRET", str(secret)))
    there = Elsewhere([DEMO[0], str(program)], secret.parent)
    with there, Platform() as platform:
        entry = {**there.entry, "remote_folder": str(secret.parent)}
        del entry["mode"]
        with Observed(tmp_path, platform, {"demo": entry}) as bridge:
            done = bridge.ask("t1", "send me a file")

        assert done["state"] == "done"
        assert "canary-of-this-machine" not in json.dumps([each.content for each in platform.posts])
        assert list(bridge.data_dir.rglob("*passwd*")) == []
