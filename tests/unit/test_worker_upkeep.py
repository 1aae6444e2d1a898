"""What a member does for its own machine, although another one has the leader."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.agents.catalog import known_agents
from app.config import load
from app.core.repositories.folders import UnusedWorkspaces
from app.main import Bridge, open_resources
from tests.support import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_a_worker_removes_the_unused_workspaces_of_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.need_server()
    reaped = asyncio.Event()

    async def reap(_unused: UnusedWorkspaces, *, before: float) -> Sequence[str]:
        reaped.set()
        return ()

    monkeypatch.setattr(UnusedWorkspaces, "reap", reap)
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "DATABASE_URL": postgres.server().provide(tmp_path),
        "PATH": os.environ["PATH"],
        "ROLE": "worker",
    }
    configuration = load(settings, known=known_agents(), home=tmp_path)

    with open_resources(configuration) as base:
        bridge = Bridge(base, [])
        await bridge.start()
        async with asyncio.timeout(30):
            await reaped.wait()
        bridge.hurry()
        await bridge.stop()
