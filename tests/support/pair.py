"""Two agents with one repository: real git, a real store, and no bridge around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.agents.agent import Agent
from app.clock import SystemClock
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.directory import Directory
from app.core.repositories.folders import Folders
from app.core.repositories.joint_work import SharedWork
from app.model.inbound import Decision, Effect, Heard
from app.model.keys import PlaceKey
from app.model.proposals import Work
from app.model.types import BridgeSessionRequest, Session, Speaker
from app.model.workspaces import Author, Target
from app.store.stores import Stores
from tests.support.agent_values import make_agent
from tests.support.base import make_base
from tests.support.memory import open_stores
from tests.support.yard import BOT, Yard, open_yard

ANN = Speaker("ann", "Ann")
PLACE = PlaceKey("web", "t1")
CODEX = Author("codex[bot]", "codex@bots.example.com")
BRANCH = "agent/demo/web-t1"


@dataclass
class Pair:
    """Two agents in one place, demo and codex, and what they share."""

    provider: RepoProvider
    stores: Stores
    yard: Yard
    agents: dict[str, Agent]

    def session(self, agent: str) -> Session:
        """Return the session of an agent."""
        [found] = [each for each in self.stores.sessions.in_place(PLACE) if each.key.agent == agent]
        return found

    async def begin(self, agent: str, *texts: str) -> tuple[SharedWork, Path]:
        """Begin a turn of an agent, and return what it is told and where it works."""
        session = self.session(agent)
        joined = await self.provider.join(session, self.target, texts)
        workspace = await self.provider.open(session, self.target)
        return joined, workspace.folder

    async def end(self, agent: str, **files: str) -> None:
        """End a turn in which an agent wrote files."""
        session = self.session(agent)
        folder = self.provider.folder(session)
        assert folder is not None
        for name, text in files.items():
            (folder / f"{name}.txt").write_text(text)
        await self.provider.ship(session, self.target, Work("Do it", ()))
        await self.provider.close(session.id)

    async def hand_to(self, agent: str) -> None:
        """Hand the place over."""
        await self.stores.decisions.change(PLACE, [Effect("hold", value=agent)])

    @property
    def target(self) -> Target:
        """The repository of the place."""
        return self.provider.target(self.session("demo"), None)


@asynccontextmanager
async def pair(folder: Path) -> AsyncIterator[Pair]:
    """Let two agents into a place with a repository; both are done with a first message."""
    async with open_yard(folder / "yard") as yard:
        clock = SystemClock()
        with open_stores(folder, clock) as (_, stores):
            for number, agent in enumerate(("demo", "codex")):
                said = f"m{number}"
                heard = Heard(PLACE, "t1", said, ANN, "do it")
                request = BridgeSessionRequest("t1", "web", agent, "do it", ANN, said, PLACE)
                await stores.decisions.accept(Decision(1, heard, "done", "", (request,)))
            for session in stores.sessions.in_place(PLACE):
                await stores.decisions.change(PLACE, [Effect("drop", session.id)])
            folders = Folders(
                yard.folder / "workspaces", yard.folder / "uploads", yard.folder / "session-homes"
            )
            agents = {
                "demo": make_agent("demo", ship="push", display_name=BOT.name),
                "codex": make_agent("codex", ship="push", display_name=CODEX.name),
            }
            base = replace(make_base(stores, clock, vault=yard.vault), agents=agents)
            provider = RepoProvider(
                base,
                folders,
                Clones(base, folders.root, yard.checkouts),
                yard.checkouts,
                Directory(yard.server.url, folder, yard.folder, default="acme/app"),
                name_of=str.title,
            )
            yield Pair(provider, stores, yard, agents)
