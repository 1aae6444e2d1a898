"""The agents that the suite is held against: the demo agent always, real ones where installed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.agents.kits import DEMO, PULLING, REAL, RELAYED, ROOT, Kit
from tests.agents.model import Model
from tests.agents.rig import Rig
from tests.support.relays import relay


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hold each test against every agent that it is about, each restart in every way it offers."""
    relayed = (RELAYED,) if hasattr(metafunc.module, "OVER_A_RELAY") else ()
    wanted = {mark.args[0] for mark in metafunc.definition.iter_markers("kits")}
    pulling = (PULLING,) if "pulls" in wanted else ()
    kits = [kit for kit in (DEMO, *relayed, *pulling, *REAL) if _is_about(metafunc, kit)]
    if "how" in metafunc.fixturenames:
        cases = [(kit, how) for kit in kits for how in ("new", *_ways_back(kit))]
        metafunc.parametrize(
            ("kit", "how"),
            [
                pytest.param(kit, how, marks=_marks(kit), id=f"{_name(kit)}-{how}")
                for kit, how in cases
            ],
        )
    elif "kit" in metafunc.fixturenames:
        metafunc.parametrize(
            "kit", [pytest.param(kit, marks=_marks(kit), id=_name(kit)) for kit in kits]
        )


def _name(kit: Kit) -> str:
    return f"{kit.name}-relayed" if kit.is_relayed else kit.name


def _is_about(metafunc: pytest.Metafunc, kit: Kit) -> bool:
    return all(getattr(kit, mark.args[0]) for mark in metafunc.definition.iter_markers("kits"))


def _ways_back(kit: Kit) -> Iterable[str]:
    return ("resumed", "loaded") if kit.resumes else ("loaded",)


def _marks(kit: Kit) -> list[pytest.MarkDecorator]:
    if not kit.asks_a_model:
        return []
    return [pytest.mark.agents, pytest.mark.slow]


@pytest.fixture
def installed(kit: Kit) -> Kit:
    """Pass an agent on that is there; else all its tests are one line in the list of skips."""
    if kit.missing:
        pytest.skip(kit.missing)
    return kit


@pytest.fixture
def site() -> Iterator[Path]:
    """Make a folder where a server would have one: some agents hide /tmp from their commands."""
    base = Path("/srv") if os.geteuid() == 0 else ROOT
    with TemporaryDirectory(prefix=".test-site-", dir=base) as folder:
        site = Path(folder)
        site.chmod(0o755)  # agents have user ids of their own
        yield site


@pytest.fixture
async def rig(
    installed: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Rig]:
    """Set an agent up; afterwards every process that it ever had must be gone."""
    with Model() as model:
        made = Rig(installed, tmp_path, model, monkeypatch)
        async with AsyncExitStack() as stack:
            if installed.is_relayed:
                around = installed.environment(model.url)
                served = relay(installed.command, tmp_path, environment=around)
                made.relay = await stack.enter_async_context(served)
            yield made
            await made.close()
            assert made.processes() == []
        assert made.notes.ended_markers == {record.marker for record in made.notes.records}
