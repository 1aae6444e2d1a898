"""Both event loops, an agent's home and workspace, and a launcher that leaves no process behind."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.acp.peer import AgentTimeouts
from tests.unit.acp.helpers import DEMO, Bench, Workbench
from tests.unit.children.helpers import carriers


@pytest.fixture(
    params=[
        pytest.param(True, id="uvloop"),
        pytest.param(False, id="asyncio", marks=pytest.mark.slow),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """Run on the loop that `serve` uses, and in `make test-all` on asyncio's own too."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """Make workbenches; afterwards every process must be gone and forgotten."""
    made: list[Workbench] = []

    def make(
        argv: tuple[str, ...] = (sys.executable, str(DEMO)),
        *,
        faults: str = "1",
        timeouts: AgentTimeouts | None = None,
        **changes: Any,
    ) -> Workbench:
        home, workspace = tmp_path / "home", tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        own = {"AGENT_BRIDGE_DEMO_FAULTS": faults}
        made.append(Workbench(home, workspace, argv, own, timeouts or AgentTimeouts(), changes))
        return made[-1]

    yield make
    for workbench in made:
        await workbench.launcher.close()
        diary = workbench.processes.diary
        for record in workbench.processes.records:
            assert ("ended", record.marker) in diary
            assert carriers(record.marker) == []
