"""The setup of a repository has its agent's network; git in the agent's isolation has none."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from pathlib import Path

import pytest

from app.children.network.access import NetworkRules
from app.children.network.dialing import Dialer
from app.children.network.link import NetworkPlan
from app.children.sandbox import Bubblewrap
from tests.support import inside
from tests.support.outside import PUBLIC, Staged
from tests.support.yard import FOUND, open_yard

APP = "acme/app"
TOOL = f"{os.path.realpath(sys.executable)} tool.py"

pytestmark = pytest.mark.skipif(
    not (isinstance(FOUND, Bubblewrap) and FOUND.own_network),
    reason="bubblewrap gives no network of its own here",
)


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    writer.close()


async def test_a_setup_fetches_from_the_internet_and_says_what_was_refused(tmp_path: Path) -> None:
    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    routes = {PUBLIC: server.sockets[0].getsockname()[1]}
    outside = Staged({"public.example": [PUBLIC]}, routes)
    plan = NetworkPlan(NetworkRules("open"), Dialer(outside, {1}))
    async with open_yard(tmp_path, network=plan) as yard:
        script = f"#!/bin/sh\n{TOOL} get http://public.example/\n{TOOL} connect 10.0.0.1:80\n"
        files = {".agent-bridge/setup": script, "tool.py": inspect.getsource(inside)}
        yard.server.commit(APP, files, "Setup")
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

    server.close()
    assert said == (
        "`.agent-bridge/setup` ended with status 0.\n"
        "Network: refused 10.0.0.1:80, not an address on the internet.\n"
        "status 200\nHTTP/1.1 403 Forbidden"
    )
