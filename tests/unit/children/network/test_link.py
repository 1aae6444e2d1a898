"""How a child's ports come out of its sandbox, and what happens when they do not."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.children import sandbox as sandboxes
from app.children.network.access import NetworkRules
from app.children.network.dialing import Dialer
from app.children.network.link import NetworkLink, NetworkPlan, PortHandover
from app.children.process import Child
from app.children.sandbox import Bubblewrap, DaemonSockets
from app.children.spawn import ChildCommand, SandboxWrapper
from app.children.stop import spawn_linked, stop
from app.errors import AgentNotStarted
from tests.support.outside import PUBLIC, Staged
from tests.unit.children.conftest import World
from tests.unit.children.helpers import BOUND, rest

PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: a checkout in a hidden folder is hidden with its environment."""
pytestmark = pytest.mark.anyio

GET = "import urllib.request as u; print(u.urlopen('{}', timeout=5).read().decode())"


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
    writer.close()


async def started(
    bubblewrap: Bubblewrap, world: World, plan: NetworkPlan, script: str
) -> tuple[Child, NetworkLink]:
    def wrap(handover: PortHandover | None) -> ChildCommand:
        prefixes = sandboxes.entry_prefixes()
        confinement = world.confinement(handover=handover, prefixes=prefixes)
        return bubblewrap.wrap([PYTHON, "-c", script], confinement)

    child = await spawn_linked(
        wrap,
        lambda: NetworkLink(plan, "test"),
        name="claude",
        env={**world.env, **plan.environment},
        cwd=world.workspace,
    )
    assert child.link is not None
    return child, child.link


def plan_of(names: Staged, *forwards: int) -> NetworkPlan:
    return NetworkPlan(NetworkRules("open"), Dialer(names, {1}), forwards)


async def test_programs_inside_reach_the_internet_by_the_proxy_and_local_ports_as_they_are(
    bubblewrap: Bubblewrap, world: World
) -> None:
    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    plan = plan_of(Staged({"public.example": [PUBLIC]}, {PUBLIC: port}), port)
    lines = [GET.format("http://public.example/"), GET.format(f"http://127.0.0.1:{port}/")]

    child, _ = await started(bubblewrap, world, plan, "\n".join(lines))
    async with asyncio.timeout(BOUND):
        output = await rest(child)
    await stop(child)
    server.close()

    assert output == "hello\nhello\n", child.last_words()


async def test_the_end_of_a_child_is_the_end_of_its_connections(
    bubblewrap: Bubblewrap, world: World
) -> None:
    gone = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x")
        await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    script = (
        f"import socket, time; s = socket.create_connection(('127.0.0.1', {port}))\n"
        "s.recv(1); print('held', flush=True); time.sleep(600)"
    )
    child, _ = await started(bubblewrap, world, plan_of(Staged({}), port), script)
    async with asyncio.timeout(BOUND):
        assert await child.stdout.read(5) == b"held\n"

        await stop(child)
        await gone.wait()
    server.close()


async def test_an_agent_whose_ports_do_not_come_is_not_started(
    bubblewrap: Bubblewrap, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "_PYTHON", ("/missing/python", "-c"))

    with pytest.raises(AgentNotStarted, match="its network could not be set up") as caught:
        await started(bubblewrap, world, plan_of(Staged({})), "pass")

    assert "/missing/python" in str(caught.value)


async def test_a_sandbox_is_built_again_if_a_daemon_ended_while_it_was_built(
    bubblewrap: Bubblewrap, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = frozenset({Path("/var/lib/test-gone.sock")})
    monkeypatch.setattr(DaemonSockets, "find", lambda _self: gone)
    ends = iter([True])

    current = SandboxWrapper.current_options

    def options(guard: SandboxWrapper) -> Iterator[str]:
        return iter(guard.options) if next(ends, False) else current(guard)

    monkeypatch.setattr(SandboxWrapper, "current_options", options)

    child, _ = await started(bubblewrap, world, plan_of(Staged({})), "print('runs')")
    output = await rest(child)
    await stop(child)

    assert output == "runs\n"
    assert next(ends, None) is None


async def test_an_agent_without_a_network_has_nothing_to_hand_over(
    bubblewrap: Bubblewrap, world: World
) -> None:
    plan = replace(plan_of(Staged({})), rules=NetworkRules("none"))

    child, link = await started(bubblewrap, world, plan, "print('runs')")
    output = await rest(child)
    await stop(child)

    assert (output, link.handover, plan.environment) == ("runs\n", None, {})


def test_the_proxy_gives_way_to_a_port_that_the_operator_listed() -> None:
    plan = plan_of(Staged({}), 18118)

    assert plan.ports == (18119, 18118)
    assert plan.environment["HTTPS_PROXY"] == "http://127.0.0.1:18119"
    assert plan.environment["no_proxy"] == "localhost,127.0.0.1,::1"
