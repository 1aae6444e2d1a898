"""When agents are checked: at the start, one after another, when one changes, and on demand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from app.acp.visits import Greeting
from app.agents.catalog import known_agents
from app.agents.files import AgentFiles
from app.agents.registry import Registry
from app.config import AgentConfig, Configuration, load
from app.core.roster import Availabilities
from app.errors import AgentDied
from app.features.agents import checkups
from app.features.agents.checkups import Checkups
from app.services import registered_services
from app.signals import ALONE, Signals
from app.vault import Vault
from tests.support.bridge import DEMO
from tests.support.clock import ManualClock

AGENTS = f'{{"one": {{"command": "{DEMO[0]}"}}, "two": {{"command": "{DEMO[0]}"}}}}'


@dataclass
class Clinic:
    """Two agents, and who was started."""

    agents: Registry
    greeted: list[str] = field(default_factory=list)
    faults: dict[str, Exception] = field(default_factory=dict)
    busy: int = 0
    enter: asyncio.Event = field(default_factory=asyncio.Event)
    clock: ManualClock = field(default_factory=ManualClock)
    signals: Signals = ALONE
    metrics: None = None
    starts_agents: bool = True
    timeouts: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.enter.set()
        self.seen = asyncio.Condition()
        self.availability = self.found = Availabilities(self.clock)
        self.files = AgentFiles(self.configuration.data_dir, Vault())

    @property
    def admission(self) -> Clinic:
        """Stand for what judges isolation, too."""
        return self

    @property
    def configuration(self) -> Configuration:
        return self.agents.configuration

    def change(self, agents: dict[str, AgentConfig]) -> None:
        self.agents.replace(replace(self.configuration, agents=agents), ())

    def open(self, *, starts_agents: bool = True) -> Checkups:
        runtime: Any = self
        self.starts_agents = starts_agents
        return Checkups(runtime)

    async def greet(self, agent: str, *_: object, **__: object) -> Greeting:
        assert not self.busy
        self.busy += 1
        async with self.seen:
            self.greeted.append(agent)
            self.seen.notify_all()
        await self.enter.wait()
        self.busy -= 1
        if agent in self.faults:
            raise self.faults[agent]
        return Greeting("Demo", "1.0", logged_in=True)

    async def saw(self, *agents: str) -> None:
        async with asyncio.timeout(5), self.seen:
            await self.seen.wait_for(lambda: self.greeted == list(agents))

    async def judge(self, _agent: str) -> str:
        return "isolated (bubblewrap)"

    def describe(self, _agent: str) -> str:
        return "isolated (bubblewrap)"

    def closed(self) -> dict[str, str]:
        return {}


@pytest.fixture
async def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    configuration = load(
        {"AGENTS_JSON": AGENTS, "DATA_DIR": str(tmp_path / "data")},
        known=known_agents(),
        services=registered_services(),
        home=tmp_path,
    )
    made = Clinic(Registry(configuration))
    monkeypatch.setattr(checkups, "greet", made.greet)
    monkeypatch.setattr(checkups, "launch_of", lambda agent, *_: agent.id)
    return made


async def test_every_agent_is_started_once_one_after_another(clinic: Clinic) -> None:
    clinic.faults["two"] = AgentDied("two", status=1)
    running = clinic.open()

    running.start()
    await clinic.saw("one", "two")
    await running.probe("two")
    await running.close()

    assert (clinic.found.of("one").state, clinic.found.of("one").version) == ("ready", "1.0")
    assert clinic.found.of("two").reason.startswith("Does not start: two stopped unexpectedly")
    assert "agents probe two" in clinic.found.of("two").remedy


async def test_no_agent_is_started_by_itself_unless_told(clinic: Clinic) -> None:
    running = clinic.open(starts_agents=False)
    running.start()
    running.recheck("one")

    found = await running.probe("two")
    await running.close()

    assert clinic.greeted == ["two"]
    assert [check.name for check in found.checks] == ["command", "isolation", "initialize", "login"]


async def test_an_agent_that_changed_is_checked_again_and_old_findings_are_gone(
    clinic: Clinic,
) -> None:
    running = clinic.open()
    running.start()
    await clinic.saw("one", "two")
    clinic.found.limited("one", None)
    changed = clinic.configuration.agents["one"].model_copy(update={"command": ("no-such",)})
    clinic.change({**clinic.configuration.agents, "one": changed})

    await running.follow()
    await running.close()
    at_once = clinic.found.of("one")

    assert (at_once.state, at_once.reason) == ("unavailable", "'no-such' was not found on PATH.")
    assert clinic.greeted == ["one", "two"]


async def test_a_removed_agent_is_forgotten_also_while_it_is_being_tried(clinic: Clinic) -> None:
    clinic.enter.clear()
    running = clinic.open()
    running.start()
    await clinic.saw("one")
    clinic.change({"two": clinic.configuration.agents["two"]})

    await running.follow()
    clinic.enter.set()
    await clinic.saw("one", "two")
    running.recheck("one")
    await running.close()

    assert not clinic.found.of("one").checks


async def test_what_cannot_be_checked_leaves_the_others(
    clinic: Clinic, caplog: pytest.LogCaptureFixture
) -> None:
    clinic.faults["one"] = RuntimeError("a fault of the bridge itself")
    running = clinic.open()

    running.start()
    await clinic.saw("one", "two")
    await running.close()

    assert "could not check one" in caplog.text
