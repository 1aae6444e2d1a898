"""A bridge without agents: real stores, intake, ledger and page; turns are written by the test."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from pydantic import SecretStr

from app.agents.files import AgentFiles
from app.clock import SystemClock
from app.core.base import Base
from app.core.consent.ledger import Ledger
from app.core.feed import Feed
from app.core.hooks import Hooks
from app.core.intake.dispatch import Dispatcher
from app.core.intake.floor import Access
from app.core.intake.reader import Intake
from app.core.outbox import Outbox
from app.core.repositories.directory import RepositoryPicker
from app.core.roster import Availabilities, Roster
from app.core.session_manager import SessionManager
from app.errors import AgentRefused, RepositoryGone
from app.features.agents import FEATURE as AGENTS_FEATURE
from app.features.agents.service import Agents
from app.features.memory import FEATURE as MEMORY
from app.features.memory.service import Memory
from app.features.personas import FEATURE as PERSONAS
from app.features.schedules import FEATURE as SCHEDULES
from app.features.schedules.service import Schedules
from app.metrics import Metrics
from app.model.agents import Choice, Choices
from app.model.background import Work
from app.model.keys import PlaceKey
from app.model.posts import PostContent, Verbosity
from app.model.types import Entry, Session, TurnRef, TurnState
from app.model.updates import AskOption, AskRequest
from app.model.workspaces import Repository
from app.server.application import build
from app.server.front import Front
from app.server.installations import PendingInstallations
from app.server.login_links import LoginLinks
from app.server.page.stream import Stream
from app.server.rights import Rights
from app.server.site import Site
from app.server.tokens import Tokens
from app.services.web.adapter import WebAdapter
from app.signals import ALONE
from app.store.stores import Stores
from app.vault import Vault
from tests.support.memory import open_stores, opened
from tests.support.no_git import directory, empty_folders
from tests.support.runtimes import make_registry, make_runtime

BASE_URL = "http://bridge.test"
ADMIN_TOKEN = "admin-token-of-the-tests"
SECONDS = 5.0
ALLOW = AskOption("allow", "Allow once", "allow_once")
AGENTS = {
    "claude": {"command": "claude", "display_name": "Claude", "default": True},
    "codex": {"command": "codex", "display_name": "Codex"},
}
ISOLATION = {"claude": "isolated (bubblewrap)", "codex": "not isolated: a reason"}


@dataclass
class Engine:
    """The engine port: it notes what it is told, and runs nothing."""

    submitted: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)

    def submit(self, session: int) -> None:
        self.submitted.append(session)

    async def cancel(self, session: int) -> None:
        self.cancelled.append(session)

    def show(self, place: PlaceKey, verbosity: Verbosity) -> None:
        """No turn runs that could show more or less."""


class Seats:
    """Agents that offer two modes and take either."""

    def __init__(self) -> None:
        self.configured: list[tuple[int, str | None]] = []

    def choices(self, _session: Session) -> Choices:
        """Offer the two."""
        return Choices((Choice("ask", "Ask first"), Choice("free", "Free")), (), "ask")

    async def configure(self, session: int, *, mode: str | None = None) -> None:
        """Note the mode; refuse one that is not offered."""
        if mode not in {"ask", "free"}:
            raise AgentRefused("claude", -32602, f"it has no mode {mode!r}")
        self.configured.append((session, mode))

    def work(self, _session: int) -> tuple[Work, ...]:
        """Do nothing between turns."""
        return ()


class Office:
    """One bridge, and a browser that is signed in."""

    def __init__(self, stores: Stores, folder: Path) -> None:
        clock, vault, metrics = SystemClock(), Vault(), Metrics()
        registry = make_registry(folder, **AGENTS)
        adapters = {f"web:{name}": WebAdapter(name) for name in registry}
        self.seats = Seats()
        live: Any = self.seats
        self.stores = stores
        self.engine = Engine()
        self.feed = Feed(stores.transcript, stores.sessions, stores.tree.above)
        hooks = Hooks()
        base = Base(
            clock=clock,
            vault=vault,
            stores=stores,
            metrics=metrics,
            agents=registry,
            adapters=adapters,
            hooks=hooks,
        )
        outbox = Outbox(base)
        self.ledger = Ledger(base, outbox, self.feed, submit=self.engine.submit)
        runtime: Any = SimpleNamespace(
            clock=clock,
            vault=vault,
            stores=stores,
            signals=ALONE,
            files=AgentFiles(folder, vault),
            agents=registry,
            adapters=adapters,
            outbox=outbox,
            feed=self.feed,
            zone="UTC",
            intake=SimpleNamespace(wake=lambda adapter: self.intake.wake(adapter)),
        )
        self.memory, self.schedules = Memory(runtime), Schedules(runtime)
        hooks.add((self.schedules,))
        manager = SessionManager(
            base,
            engine=self.engine,
            live=live,
            outbox=outbox,
            feed=self.feed,
            directory=directory(folder),
        )
        dispatcher = Dispatcher(
            base,
            manager,
            self.ledger,
            access=Access(users=frozenset(), only_users=False, bots=frozenset()),
            untagged="mention",
            roster=Roster(registry),
        )
        self.intake: Intake = Intake(base, dispatcher)
        self.availability = Availabilities(clock)
        self.opens: dict[str, tuple[str, ...]] = {}
        """The repositories that an agent's credentials open."""
        files = AgentFiles(folder, vault)
        self.runtime = make_runtime(
            live=live,
            clock=clock,
            metrics=metrics,
            stores=stores,
            agents=registry,
            admission=_Admission(),
            adapters=adapters,
            hooks=hooks,
            intake=self.intake,
            dispatcher=dispatcher,
            manager=manager,
            ledger=self.ledger,
            feed=self.feed,
            files=files,
            availability=self.availability,
            workspaces=empty_folders(folder, stores, clock, vault),
            uploads=folder / "uploads",
            progress=_Progress(),
            listeners=_Listeners(),
            room=_Room(),
            picker=RepositoryPicker(
                directory(folder),
                stores.sessions,
                choose=manager.choose,
                list_repositories=self._list_repositories,
                reach=_reach,
            ),
        )
        self.site = Site(
            links=LoginLinks(
                stores.logins, clock, vault, base_url=BASE_URL, secret_key=SecretStr("k" * 40)
            ),
            tokens=Tokens(stores.tokens, clock, vault),
            rights=Rights(),
            admins=stores.people.admins,
            admin_token=ADMIN_TOKEN,
            installs=PendingInstallations(
                {}, stores.sealed, clock, base_url=BASE_URL, secret_key=SecretStr("k" * 40)
            ),
            ready=_ready,
            vitals=stores.vitals.read,
        )
        self._outbox = outbox
        self.http = self.browser()
        self.csrf = ""

    async def _list_repositories(self, agent: str) -> Sequence[str]:
        return self.opens.get(agent, ())

    def browser(self) -> httpx.AsyncClient:
        """Open a browser that is not signed in."""
        runtime, agents = self.runtime, Agents.__new__(Agents)
        agents.runtime = runtime
        front = Front(
            build(
                runtime,
                self.site,
                features=[self.schedules, self.memory, agents],
                routers=[
                    router
                    for each in (SCHEDULES, MEMORY, PERSONAS, AGENTS_FEATURE)
                    for router in each.routers()
                ],
            ),
            self.intake.take,
            runtime.clock,
            runtime.metrics,
            hosts={"bridge.test"},
        )
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(front),
            base_url=BASE_URL,
            headers={"Accept": "text/html", "Origin": BASE_URL},
        )

    async def sign_in(self) -> None:
        """Use up a log-in link."""
        await self.http.post(await self.site.links.make_link())
        page = await self.http.get("/")
        found = re.search(r'<meta name="csrf" content="([0-9a-f]+)">', page.text)
        assert found is not None
        self.csrf = found[1]

    async def close(self) -> None:
        """End everything."""
        self.feed.close()
        await self.http.aclose()
        await self.intake.close()
        await self._outbox.close(grace=0)

    async def post(self, path: str, files: Any = None, **fields: Any) -> httpx.Response:
        """Send a form as the page's script does."""
        headers = {"X-CSRF-Token": self.csrf, "Accept": "application/json"}
        return await self.http.post(path, data=fields, files=files, headers=headers)

    async def say(self, text: str, thread: str = "", **more: Any) -> str:
        """Say something; returns the path of the thread."""
        answer = await self.post("/send", text=text, thread=thread, **more)
        assert answer.status_code == 200, answer.text
        path: str = answer.json()["path"]
        return path

    async def page(self, path: str) -> str:
        """Read a page."""
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def turn_of(self, path: str, agent: str = "claude") -> TurnRef:
        """Find the turn that waits for an agent in a thread."""
        (session,) = (s for s in self.stores.sessions.in_place(key(path)) if s.key.agent == agent)
        turn = self.stores.turns.next_turn(session.id)
        assert turn is not None
        return TurnRef(session.id, turn.id)

    async def begin(self, ref: TurnRef) -> None:
        """Let a turn begin, as the engine would."""
        assert await self.stores.turns.starting(ref.turn)
        assert await self.stores.turns.prompted(ref.turn, "prompt", "acp-1", 1)
        self.feed.notify(ref.session)

    async def write(self, ref: TurnRef, *entries: Entry) -> Sequence[int]:
        """Write rows of a turn, as the router would."""
        rows = [replace(entry, session=ref.session, turn=ref.turn) for entry in entries]
        numbers = await self.stores.transcript.append(rows)
        self.feed.notify(ref.session)
        return numbers

    async def end(self, ref: TurnRef) -> None:
        """End a turn well."""
        content = PostContent(kind="turn", state="done")
        await self.stores.turns.finish(ref.turn, TurnState.DONE, content, [])
        self.feed.notify(ref.session)

    async def ask(self, ref: TurnRef, title: str = "Write a.txt") -> int:
        """Open an ask; returns its number."""
        ask, _ = await opened(self.stores, AskRequest("call", title, (ALLOW,)), ref)
        self.feed.notify(ref.session)
        return ask.id

    def events(self, path: str, after: int = 0, begin: int = 0) -> Events:
        """Follow a thread as an open page does."""
        stream = Stream(
            self.runtime, key(path) if path else None, begin, 100, "/more", lambda: True
        )
        return Events(stream.events(after))


class Events:
    """What an open page is sent, one event after another."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self._stream = stream

    async def next(self, name: str) -> tuple[int | None, Any]:
        """Wait for the next event of a name; returns its number and what it holds."""
        async with asyncio.timeout(SECONDS):
            async for chunk in self._stream:
                lines = dict(
                    line.split(": ", 1) for line in chunk.decode().splitlines() if ": " in line[1:]
                )
                if lines.get("event") == name:
                    number = lines.get("id")
                    return (int(number) if number else None), json.loads(lines["data"])
        raise AssertionError(f"the stream ended without {name}")

    async def close(self) -> None:
        """Go away."""
        await self._stream.aclose()  # type: ignore[attr-defined]  # it is a generator


def key(path: str) -> PlaceKey:
    """Name the place of a page."""
    _, _, service, name = path.split("/", 3)
    return PlaceKey(service, name)


@asynccontextmanager
async def office(folder: Path) -> AsyncIterator[Office]:
    """Open a bridge in a folder and sign in."""
    with open_stores(folder, SystemClock()) as (_, stores):
        made = Office(stores, folder)
        made.intake.start()
        try:
            await made.sign_in()
            yield made
        finally:
            await made.close()


async def _reach(repository: Repository, _agent: str) -> None:
    """Act as a remote that has one repository, `acme/public`."""
    if repository.name != "acme/public":
        raise RepositoryGone(repository.name, "it does not exist, or this agent has no access")


class _Admission:
    """Agents of which one is isolated."""

    def describe(self, agent: str) -> str:
        """Say what is known."""
        return ISOLATION[agent]


class _Progress:
    """Work whose progress nobody looks at."""

    def look_if_old(self, _session: int) -> None:
        """Leave it."""


class _Listeners:
    """No platform has a socket."""

    def troubles(self) -> dict[str, str]:
        """Find none."""
        return {}


class _Room:
    """A disk with room."""

    trouble = ""


async def _ready() -> Sequence[Any]:
    return ()
