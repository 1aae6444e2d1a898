"""A whole bridge in the process of the test: real parts and store, scripted agents and platform.

It is killed by going on with a copy of what is committed; what the dying one does is not seen.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from typing_extensions import override

from app.agents.catalog import known_agents
from app.config import load
from app.core.adapters import Adapter
from app.core.runtime import Presences
from app.errors import BridgeError, PostDelayed
from app.features.agents.changes import AgentChanges
from app.features.agents.service import Agents
from app.main import Bridge, Resources, open_resources
from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import AgentListener
from app.model.posts import PostContent, PostSend, PostSent
from app.model.types import Speaker
from app.model.updates import TextUpdate
from app.services import registered_services
from app.services.web.adapter import WebAdapter
from tests.support import postgres
from tests.support.bridge import ADMIN_TOKEN, DEMO, SECRET_KEY
from tests.support.clock import FastClock
from tests.support.desk import ScriptedLauncher, Stir
from tests.support.memory import prepare_store, sync_never

SECONDS = 20.0
SPEED = 200.0
PLATFORM = "slack"
"""The service that the test platform imitates."""


@dataclass
class Channel:
    """The platform: what it shows outlives every bridge."""

    posts: dict[str, tuple[SessionKey, PostContent]] = field(default_factory=dict)
    """By marker."""


class Member(Adapter):
    """One agent's presence on the platform; it is deaf and dumb once its bridge is dead."""

    def __init__(self, agent: str, house: House) -> None:
        super().__init__(PLATFORM, agent, pace=0.0)
        self._house = house
        self._life = house.life

    @override
    def parse(self, delivery: Delivery) -> Heard:
        said = json.loads(delivery.body)
        return Heard(
            place=PlaceKey(PLATFORM, said["place"]),
            external=said["place"],
            message_id=said["id"],
            speaker=Speaker("ann", "Ann"),
            text=said["text"],
            mentions=tuple(said["mentions"]),
            overheard=not said["mentions"],
        )

    @override
    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:
        return None

    @override
    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Nothing is whispered here."""

    @override
    async def send(self, post: PostSend) -> PostSent:
        await asyncio.sleep(0)
        if self._life != self._house.life:
            raise PostDelayed("the bridge is dead")
        self._house.channel.posts[post.marker] = (post.target, post.content)
        return PostSent(post.marker, len(post.content.text))

    @override
    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        return PostSent(marker) if marker in self._house.channel.posts else None


@dataclass
class House:
    """One bridge after another on one DATA_DIR."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.channel = Channel()
        self.life = 0
        self.bridge: Bridge
        self.base: Resources
        self.http: httpx.AsyncClient | None = None
        self.acknowledged: list[tuple[str, str]] = []
        """The deliveries that were taken: adapter and id."""
        self.answers: list[str] = []
        """Everything that the API and the page said."""
        self.lines: list[str] = []
        """Everything that was logged."""
        self.free = asyncio.Event()
        """Lets turns that hold go on."""
        self._numbers = iter(range(1, 10_000))
        self._open = ExitStack()

    @property
    def data_dir(self) -> Path:
        """Where the bridge of this life keeps everything."""
        return self.folder / f"data-{self.life}"

    async def start(self) -> None:
        """Start a bridge on what the last one left."""
        stack, environment = self._open, self._environment()
        configuration = load(
            environment,
            known=known_agents(),
            services=registered_services(),
            home=self.folder,
        )
        prepare_store(self.data_dir)
        launcher = ScriptedLauncher(Stir())
        launcher.script = self._answer
        stack.enter_context(mock.patch("app.main.build.build_launcher", return_value=launcher))
        stack.enter_context(mock.patch("app.logs.configure"))
        self.base = stack.enter_context(open_resources(configuration, clock=FastClock(SPEED)))
        sync_never(self.base.database)
        stack.enter_context(_listening(self.lines))
        there = self._presence(self.base)
        self.bridge = Bridge(self.base, there.adapters, build=self._presence)
        await self.bridge.start()

    async def stop(self) -> None:
        """Stop it politely."""
        self.free.set()
        await self._close_http()
        await self.bridge.stop()
        self._open.close()
        self.free.clear()

    async def kill(self) -> None:
        """Go on with what is committed at this moment."""
        if postgres.is_wanted():
            pytest.skip("on PostgreSQL: a copy of a database that is in use cannot be made")
        before = self.data_dir
        self.life += 1
        self.data_dir.mkdir(mode=0o700)
        with (
            closing(sqlite3.connect(before / "bridge.db")) as source,
            closing(sqlite3.connect(self.data_dir / "bridge.db")) as target,
        ):
            source.backup(target)
        dying = asyncio.all_tasks() - {asyncio.current_task()}
        for task in dying:
            task.cancel()
        await asyncio.gather(*dying, return_exceptions=True)
        await self._close_http()
        await self.bridge.stop()
        self._open.close()

    async def call(self, method: str, path: str, **body: Any) -> None:
        """Ask the API, and keep what it says."""
        if self.http is None:  # it takes longer than most sequences
            front: Any = self.bridge.application()
            self.http = httpx.AsyncClient(
                transport=httpx.ASGITransport(front),
                base_url="http://127.0.0.1:8000",
                headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            )
        answer = await self.http.request(method, path, json=body or None)
        self.answers.append(answer.text)
        assert answer.status_code < 500, answer.text

    async def change(self, changing: Callable[[AgentChanges], Awaitable[object]]) -> None:
        """Change the agents as the API does; a refusal is kept as it would be shown."""
        try:
            (agents,) = (each for each in self.bridge.features if isinstance(each, Agents))
            await changing(agents.changes)
        except BridgeError as error:
            self.answers.append(str(error))

    async def _close_http(self) -> None:
        if self.http is not None:
            await self.http.aclose()
        self.http = None

    async def say(self, place: str, text: str, *mentions: str) -> None:
        """Say something that every agent on the platform hears."""
        number = next(self._numbers)
        body = {"place": place, "id": f"m{number}", "text": text, "mentions": mentions}
        raw = json.dumps(body).encode()
        for name in list(self._joined.adapters):
            if name.startswith(f"{PLATFORM}:") and name in self._joined.adapters:
                now = self.base.clock.now()
                given = Delivery(name, f"{name}-{number}", None, {}, raw, now)
                await self.bridge.intake.take(given)
                self.acknowledged.append((name, given.delivery_id))

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the store."""
        if postgres.is_wanted():
            return postgres.server().run(self.data_dir, query, *values)
        with closing(sqlite3.connect(self.data_dir / "bridge.db")) as store:
            return store.execute(query, values).fetchall()

    async def settle(self) -> None:
        """Wait until nothing is left to do."""
        self.free.set()
        query = """
            select (select count(*) from delivery where state = 'new')
                 + (select count(*) from turn
                    where state in ('queued', 'starting', 'prompted') and not held)
        """
        async with asyncio.timeout(SECONDS):
            while self.rows(query) != [(0,)]:  # noqa: ASYNC110 - the store sends no event
                await asyncio.sleep(0.01)
        self.free.clear()

    @property
    def _joined(self) -> Any:
        return self.bridge.runtime

    async def _answer(self, listener: AgentListener) -> None:
        await listener.on_update(TextUpdate("begun"))
        await self.free.wait()
        await listener.on_update(TextUpdate(" and ended"))

    def _presence(self, base: Resources, services: Collection[str] | None = None) -> Presences:
        configuration = base.configuration
        wanted = configuration.services if services is None else services
        members = [
            Member(agent, self)
            for service, agent in configuration.credentials
            if service == PLATFORM and PLATFORM in wanted
        ]
        on_page = map(WebAdapter, configuration.agents) if "web" in wanted else ()
        return Presences([*on_page, *members])

    def _environment(self) -> dict[str, str]:
        demo = {"command": DEMO, "sandbox": "none"}
        return {
            "PATH": "/usr/bin:/bin",
            "DATA_DIR": str(self.data_dir),
            "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "BRIDGE_SECRET_KEY": SECRET_KEY,
            "AGENTS_JSON": json.dumps({"demo": demo}),
            **postgres.settings_of(self.data_dir),
            **self.settings,
        }


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@contextmanager
def _listening(lines: list[str]) -> Iterator[None]:
    handler, own = _Listener(lines), logging.getLogger("app")
    level = own.level
    own.addHandler(handler)
    own.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        own.removeHandler(handler)
        own.setLevel(level)
