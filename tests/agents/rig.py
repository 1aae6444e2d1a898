"""One agent between a launcher and the scripted model, started as often as a test likes.

It is configured as an operator would and started as the bridge does it: from settings, through the
catalog and the isolation, to the launcher.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from app.acp.handshake import Handshake, Restored
from app.acp.launch import AgentLaunch, launches
from app.acp.launcher import AcpLauncher
from app.acp.peer import AgentTimeouts
from app.agents.catalog import AgentProgram, known_agents
from app.agents.isolation import isolate_all
from app.children.network.dialing import Outside
from app.clock import SystemClock
from app.config import load
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import AgentSession, OpenedSession
from app.model.types import ProcessRecord, Session, SessionState
from app.model.updates import AskRequest, BridgeUpdate, PromptEnd, TextUpdate
from app.model.workspaces import Workspace
from app.services import registered_services
from app.store.sessions import ProcessStore
from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.script import FILLER
from tests.support.bystander import Bystander
from tests.support.relays import TOKEN, Address

BOUND = 300.0
"""A real agent starts within five seconds, and gemini rests a minute before it is brought back; on
a machine that is full of them everything may take many times as long."""
PATIENT = AgentTimeouts(*([BOUND] * len(fields(AgentTimeouts))))

STREAMED = (FILLER, "One word")
"""How a slow answer begins: the scripted model's, and the demo agent's."""
Choice = Literal["allow_once", "reject_once"]


@dataclass
class Listener(Bystander):
    """Hears one turn, remembers it, and answers every ask in the same way."""

    choice: Choice = "reject_once"
    heard: list[BridgeUpdate] = field(default_factory=list)
    asked: list[AskRequest] = field(default_factory=list)
    end: PromptEnd = PromptEnd("not yet")  # noqa: RUF009 - frozen
    _text: asyncio.Event = field(default_factory=asyncio.Event)

    async def on_update(self, update: BridgeUpdate) -> None:
        self.heard.append(update)
        if isinstance(update, TextUpdate):
            self._text.set()

    async def on_ask(self, request: AskRequest) -> str | None:
        self.asked.append(request)
        ids = [option.id for option in request.options if option.kind == self.choice]
        return ids[0] if ids else None

    async def wait_for_text(self) -> None:
        """Wait until the model's own words have begun to arrive."""
        async with asyncio.timeout(BOUND):
            while not any(word in self.text for word in STREAMED):
                self._text.clear()
                await self._text.wait()

    @property
    def text(self) -> str:
        return "".join(update.text for update in self.heard if isinstance(update, TextUpdate))


class Notes:
    """The process store and the counters of a launcher, kept in memory."""

    def __init__(self) -> None:
        self.records: list[ProcessRecord] = []
        self.ended_markers: set[str] = set()
        self.counts: Counter[str] = Counter()

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Keep nothing."""

    def trace(self, stage: str, turn: int, began: float, ended: float, **facts: str) -> None:
        """Keep nothing."""

    async def started(self, process: ProcessRecord) -> None:
        self.records.append(process)

    async def ended(self, marker: str) -> None:
        self.ended_markers.add(marker)

    async def leftovers(self) -> list[ProcessRecord]:
        return []

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        self.counts[labels.get("reason", name)] += amount


class Rig:
    """One agent in one workspace."""

    def __init__(
        self, kit: Kit, folder: Path, model: Model, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.kit = kit
        self.folder = folder
        self.model = model
        self.between = Listener()
        self.notes = Notes()
        self.settings: dict[str, str] = {}
        self.outside: Outside | None = None
        """What its network leads to, if not the internet."""
        self.relay: Address | None = None
        """The relay that it runs behind, if it does."""
        # Below folders that are the test's own: some agents read settings of every parent.
        self.workspace = folder / "data" / "workspaces" / f"1-{kit.name}"
        subprocess.run(["git", "init", "-q", str(self.workspace)], check=True)
        self._monkeypatch = monkeypatch
        self._guarded = True
        self._launchers: list[AcpLauncher] = []

    @property
    def program(self) -> AgentProgram:
        """What is known about the agent."""
        return self.kit.program

    def launcher(self, **entry: Any) -> AcpLauncher:
        """Make a launcher, as a start of the bridge would; keywords go into the agent's entry."""
        agent = {**self._entry(), **entry}
        settings = {
            **self.settings,
            "PATH": self.kit.path,
            "DATA_DIR": str(self.folder / "data"),
            "AGENTS_JSON": json.dumps({self.kit.name: agent}),
        }
        person = self.folder / "person"
        person.mkdir(exist_ok=True)
        configuration = load(
            settings, known=known_agents(), services=registered_services(), home=person
        )
        isolations = isolate_all(configuration, self.outside)
        place_files(self.kit, isolations[self.kit.name].home, self.model)
        agents = launches(configuration, isolations)
        if not self._guarded:
            agents = {name: _unguarded(agents[name], self.program) for name in agents}
        launcher = AcpLauncher(
            agents,
            cast("ProcessStore", self.notes),
            SystemClock(),
            self.notes,
            bridge="rig",
            timeouts=PATIENT,
        )
        self._launchers.append(launcher)
        return launcher

    def _entry(self) -> dict[str, Any]:
        if self.relay is None:
            return self.kit.entry(self.model.url)
        return {
            "driver": self.kit.name,
            "url": self.relay.url,
            "remote_folder": str(self.workspace),
            "env": {"AGENT_TOKEN": TOKEN},
        }

    def kill(self) -> None:
        """Kill the agent that was started last, and all that it started."""
        if self.relay is None:
            os.killpg(self.notes.records[-1].group, signal.SIGKILL)
            return
        for process in self.relay.processes():
            os.kill(process, signal.SIGKILL)

    async def open(
        self,
        known: AgentSession | None = None,
        *,
        mode: str | None = None,
        number: int = 1,
        system: str = "",
        replay: bool = False,
        **entry: Any,
    ) -> OpenedSession:
        """Bring the agent to life, with an earlier conversation if one is given.

        `number` tells sessions apart; each has a workspace and a home of its own.
        """
        workspace = self.workspace.with_name(f"{number}-{self.kit.name}")
        workspace.mkdir(exist_ok=True)
        session = Session(
            id=number,
            key=SessionKey("web", "t1", self.kit.name),
            place=PlaceKey("web", "t1"),
            state=SessionState.IDLE,
            acp_session_id=known.acp_session_id if known else None,
            mode=mode,
            updated_at=SystemClock().now(),
        )
        async with asyncio.timeout(BOUND):
            return await self.launcher(**entry).open(
                session, Workspace(workspace), self.between, system=system, replay=replay
            )

    async def reopen(self, opened: OpenedSession, how: str) -> OpenedSession:
        """End a life and begin another: a new conversation, or the old one."""
        await opened.session.close()
        return await self.open(None if how == "new" else opened.session)

    def allow_only(self, how: str) -> None:
        """Let conversations come back in this way only, whatever else the agent offers."""
        usual = Handshake.ways_back

        def ways(self: Handshake) -> Iterator[Restored]:
            return (way for way in usual(self) if way == how)

        self._monkeypatch.setattr(Handshake, "ways_back", ways)

    def lower_the_guard(self) -> None:
        """Start the agent as if nothing were known that keeps a checkout out."""
        self._guarded = False

    def processes(self) -> list[str]:
        """Return every process that any of its agents started and that is still alive."""
        markers = {
            f"AGENT_BRIDGE_PROCESS={record.marker}".encode() for record in self.notes.records
        }
        found = [each.name for each in Path("/proc").iterdir() if _carries(each, markers)]
        return found + [str(each) for each in (self.relay.processes() if self.relay else ())]

    def commands(self) -> list[bytes]:
        """Return the command of every process of this machine that can be read."""
        found = []
        for each in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                found.append(each.read_bytes())
        return found

    async def close(self) -> None:
        """End everything."""
        for launcher in self._launchers:
            await launcher.close()


async def told(session: AgentSession, words: str, choice: Choice = "reject_once") -> Listener:
    """Say something, follow the turn to its end, answering every ask in one way."""
    listener = Listener(choice)
    async with asyncio.timeout(BOUND):
        listener.end = await session.prompt(words, listener)
    return listener


async def eventually(check: Callable[[], bool]) -> None:
    """Wait until something in the file system is true."""
    async with asyncio.timeout(BOUND):
        while not check():  # noqa: ASYNC110 - nobody sends an event
            await asyncio.sleep(0.02)


def place_files(kit: Kit, home: Path, model: Model) -> None:
    """Set an agent up in its HOME, as a person would."""
    for name, text in kit.files(model.url).items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _unguarded(launch: AgentLaunch, program: AgentProgram) -> AgentLaunch:
    """Take away the last thing that keeps a checkout out."""
    if program.obeys:
        return replace(launch, obeys=())

    def environment(marker: str) -> Mapping[str, str]:
        whole = launch.environment(marker)
        return {name: whole[name] for name in whole.keys() - program.environment.keys()}

    return replace(launch, environment=environment, meta={}, trailing_slash=False)


def _carries(folder: Path, markers: set[bytes]) -> bool:
    """Tell whether a process carries one of the markers, without the code under test."""
    try:
        environ = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
    except OSError:
        return False
    return not markers.isdisjoint(environ.split(b"\0"))
