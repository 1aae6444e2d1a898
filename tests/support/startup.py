"""Starts a bridge as the tests want it: hook adapters as platforms, fail-points around ports.

Run as `python -m tests.support.startup PLAN`, where PLAN is a JSON file that `tests.support.bridge`
wrote. The product has no switch for any of this: everything here wraps what `app.main` joins.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field, fields
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvloop
from sqlalchemy import event
from typing_extensions import override

from app.agents.catalog import known_agents
from app.config import load, share_outbound
from app.errors import BridgeError
from app.main import Bridge, Resources, bind_ports, open_resources, presence, serve
from app.repos.git import Git
from app.repos.sandboxed_git import Inside
from app.server.front import Send
from app.services import registered_services
from app.services.github import adapter as github
from app.services.slack import adapter as slack
from app.store.members import ClaimStore
from app.store.stores import Stores
from tests.support.clock import DrivenClock, FastClock
from tests.support.forge import Forge
from tests.support.hook import HookAdapter
from tests.support.memory import prepare_store, sync_never

LOOK_SECONDS = 0.005
IMPORTED_EARLY = (github, slack)
"""What the bridge imports late, and what every fork of the nursery would import anew."""
NO_LIMIT = 4_294_967_294
"""SQLite's own: as many pages as a file can have."""


@dataclass
class FailPoints:
    """What happens at a step, as the test says in a file while the bridge runs.

    The file is renamed when its step is reached, so that it happens once, also over restarts.
    """

    armed: Path
    reached: Path
    counts: dict[str, int] = field(default_factory=dict)

    def passing(self, step: str, when: str) -> bool:
        """Go past a step; dies there if so armed, and says whether to pause."""
        try:
            point = json.loads(self.armed.read_bytes())
        except FileNotFoundError:
            return False
        if (point["step"], point["when"]) != (step, when):
            return False
        self.counts[step] = self.counts.get(step, 0) + 1
        if self.counts[step] < point["nth"]:
            return False
        self.armed.rename(self.reached)
        self.counts.clear()
        if point["act"] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def hit(self, step: str, when: str) -> None:
        """Go past a step in a thread that may be stopped."""
        if self.passing(step, when):
            while self.reached.exists():
                time.sleep(LOOK_SECONDS)

    async def meet(self, step: str, when: str) -> None:
        """Go past a step in a coroutine."""
        if self.passing(step, when):
            while self.reached.exists():  # noqa: ASYNC110 - whoever lets it go is another process
                await asyncio.sleep(LOOK_SECONDS)


class Guarded:
    """A port whose methods pass a fail-point before and after."""

    def __init__(self, name: str, port: object, points: FailPoints) -> None:
        self._name = name
        self._port = port
        self._points = points

    def __getattr__(self, method: str) -> Any:
        inner = getattr(self._port, method)
        if not asyncio.iscoroutinefunction(inner):
            return inner

        async def guarded(*args: Any, **kwargs: Any) -> Any:
            step = f"{self._name}.{method}"
            if method == "append":
                step += f".{args[0][0].kind}"
            await self._points.meet(step, "before")
            result = await inner(*args, **kwargs)
            await self._points.meet(step, "after")
            return result

        return guarded


class GuardedStores(Stores):
    """Stores that also guard those of features, by the name of the feature."""

    points: FailPoints

    @override
    def open(self, kind: Any) -> Any:
        return Guarded(kind.__module__.split(".")[2], super().open(kind), self.points)


class GuardedHook(HookAdapter):
    """A hook adapter that passes fail-points at verify and send."""

    points: FailPoints

    @override
    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Any:
        self.points.hit("adapter.verify", "before")
        delivery = super().verify(headers, body, now)
        self.points.hit("adapter.verify", "after")
        return delivery

    @override
    async def send(self, post: Any) -> Any:
        await self.points.meet(f"adapter.send.{post.op}", "before")
        sent = await super().send(post)
        await self.points.meet(f"adapter.send.{post.op}", "after")
        return sent


class GuardedBridge(Bridge):
    """A bridge that passes fail-points where it acknowledges a webhook."""

    points: FailPoints

    @override
    def application(self) -> Any:
        front = super().application()

        async def application(scope: Any, receive: Any, send: Send) -> None:
            async def acknowledging(message: Any) -> None:
                if message.get("status") == HTTPStatus.OK:
                    await self.points.meet("ack", "before")
                await send(message)
                if message["type"] == "http.response.body":
                    await self.points.meet("ack", "after")

            is_webhook = scope.get("path", "").startswith("/webhooks/")
            await front(scope, receive, acknowledging if is_webhook else send)

        return application


def main(plan_file: str) -> None:
    """Run a bridge by a plan; what the operator can cause ends it with one line."""
    plan = json.loads(Path(plan_file).read_text())
    points = FailPoints(Path(plan["armed"]), Path(plan["reached"]))

    def wrap(stores: Stores) -> Stores:
        given = {each.name: getattr(stores, each.name) for each in fields(stores)}
        guarded: dict[str, Any] = {
            name: port if name in {"database", "now"} else Guarded(name, port, points)
            for name, port in given.items()
        }
        GuardedStores.points = points
        return GuardedStores(**guarded)

    try:
        configuration = load(
            plan["environment"],
            known=known_agents(),
            services=registered_services(),
            home=Path(plan["home"]),
        )
        share_outbound(configuration)
        if plan["prepared"]:
            prepare_store(configuration.data_dir)
        speed, driven = plan["speed"], plan.get("clock")
        clock = DrivenClock(speed, Path(driven)) if driven else FastClock(speed)
        with open_resources(configuration, clock=clock, wrap=wrap) as base:
            if plan["prepared"]:
                sync_never(base.database)
            _watch_commits(base, points)
            _limit_pages(base, Path(plan["full"]))
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_run(base, plan, points))
    except BridgeError as error:
        sys.exit(str(error))


async def _run(base: Resources, plan: dict[str, Any], points: FailPoints) -> None:
    configuration = base.configuration
    hooks = [GuardedHook(name, plan["platform"], plan["token"]) for name in configuration.agents]
    for hook in hooks:
        hook.points = points
    # The hooks stand in for the page, unless it is wanted; whatever else is set up is there.
    there = presence(base)
    adapters = [
        each for each in there.adapters if plan["page"] or not each.service_name.startswith("web:")
    ]
    forge: Any = there.forge
    if plan.get("forge"):
        forge = Guarded("forge", Forge(Path(plan["forge"]), base.vault), points)
        _watch_git(points)
    _watch_claims(points)
    bridge = GuardedBridge(base, [*hooks, *adapters], forge=forge)
    bridge.points = points
    await serve(bridge, bind_ports(configuration), listening=_say_so)


def _watch_claims(points: FailPoints) -> None:
    """Pass the fail-point of a turn's start also where the commit that claims it starts it."""
    claim = ClaimStore.claim

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        await points.meet("turns.starting", "before")
        result = await claim(*args, **kwargs)
        await points.meet("turns.starting", "after")
        return result

    ClaimStore.claim = guarded  # type: ignore[method-assign] # with the same arguments


def _say_so() -> None:
    sys.stdout.write("listening\n")
    sys.stdout.flush()


def _watch_commits(base: Resources, points: FailPoints) -> None:
    def before(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        if statement == "COMMIT":
            points.hit("commit", "before")

    def after(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        if statement == "COMMIT":
            points.hit("commit", "after")

    event.listen(base.database.engine, "before_cursor_execute", before)
    event.listen(base.database.engine, "after_cursor_execute", after)


def _watch_git(points: FailPoints) -> None:
    """Pass a fail-point before and after every git, the bridge's own and those in a clone."""

    def guarded(kind: str, run: Any) -> Any:
        async def passing(where: Any, *arguments: Any, **more: Any) -> Any:
            words = [word for word in arguments if isinstance(word, str) and word != "git"]
            step = f"{kind}.{words[0]}"
            await points.meet(step, "before")
            result = await run(where, *arguments, **more)
            await points.meet(step, "after")
            return result

        return passing

    # Type checkers rightly forbid this; it is the one way to reach every step without a switch.
    setattr(Git, "run", guarded("git", Git.run))  # noqa: B010
    setattr(Git, "run_for_stderr", guarded("git", Git.run_for_stderr))  # noqa: B010
    setattr(Inside, "run", guarded("clone", Inside.run))  # noqa: B010


def _limit_pages(base: Resources, full: Path) -> None:
    """Let the disk be full while a file says so: the database cannot grow by one page."""

    def before(_c: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement == "BEGIN IMMEDIATE":
            cursor.execute(f"pragma max_page_count = {1 if full.exists() else NO_LIMIT}")

    event.listen(base.database.engine, "before_cursor_execute", before)


if __name__ == "__main__":
    main(sys.argv[1])
