"""Several bridges on one PostgreSQL, each a process with its own DATA_DIR, on one platform.

Each of them may be killed, stopped and started at any moment; people talk to any front.
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from typing_extensions import override

from tests.support import postgres
from tests.support.bridge import SPEED, BridgeProcess, demo
from tests.support.world import World

LEASE_SECONDS = 8.0
"""Real ones: a machine with few cores and many processes must not take one of them to be gone."""
TAKEN_OVER = 75

OPEN = {
    "members": "select name, role, engine, load, beats from member",
    "desk": "select member from duty",
    "deliveries": "select seq, received_at from delivery where state = 'new'",
    "turns": "select id, session, state, held, paused from turn where ended_at is null",
    "posts": "select id, turn, state, error from post where state in ('new', 'closing')",
    "jobs": "select id, queue_name, lock, status, attempts, scheduled_at from procrastinate_jobs",
}
"""What is asked of a fleet that does not come to its end."""


@dataclass
class MemberProcess(BridgeProcess):
    """One of the bridges; its store is that of the fleet."""

    is_stopped: bool = False

    @override
    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        return postgres.run(self.settings["DATABASE_URL"], query, *parameters)

    @property
    def name(self) -> str:
        """The name under which it is a member."""
        return (self.data_dir / "member").read_text()

    def wait_started(self) -> None:
        """Wait until this process is a member: its name alone may be that of the last one."""

        def is_started() -> bool:
            checks = self.http.get("/readyz").json()["checks"]
            return all(each["ok"] for each in checks if each["name"] == "started")

        self.wait(is_started, f"{self.name} never started")

    def stop_short(self) -> None:
        """Stop it as Ctrl-Z does: it neither runs nor ends."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def let_run(self) -> None:
        """Let it run on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False


@dataclass
class Fleet(World):
    """People, a platform, fronts and workers."""

    fronts: int = 2
    workers: int = 2
    lease_seconds: float = LEASE_SECONDS
    address: str = ""
    """Of their database, if it is not one of this run's server."""
    shares: bool = True
    """Whether the members have a folder in common."""
    patient: bool = False
    """Whether a member that died is started again only when others have taken over."""

    @override
    def make_bridge(self) -> BridgeProcess:
        """Make the fronts and the workers; people know the first front best."""
        self.members = [
            self._make_member(number, "front" if number < self.fronts else "worker")
            for number in range(self.fronts + self.workers)
        ]
        self._turn = itertools.cycle(self.members[: self.fronts])
        return self.members[0]

    def _make_member(self, number: int, role: str) -> MemberProcess:
        folder = self.folder / f"{role}{number}"
        folder.mkdir()
        (self.folder / "shared").mkdir(mode=0o700, exist_ok=True)
        shared = {"SHARED_DIR": str(self.folder / "shared")} if self.shares else {}
        settings = {
            "DATABASE_URL": self.address or postgres.server().provide(self.folder),
            "LEASE_SECONDS": str(self.lease_seconds * SPEED),
            "ROLE": role,
            **shared,
            **self.settings,
        }
        member = MemberProcess(
            folder, self.platform, settings=settings, forge=self.forge, speed=SPEED
        )
        # One of them dies at a step, and only one.
        member.armed, member.reached = self.folder / "armed.json", self.folder / "reached.json"
        member.agents = {"demo": demo(*(member.deadly if self.deadly else ()), **self.entry)}
        return member

    @override
    def __enter__(self) -> Self:
        self.platform.__enter__()
        for member in self.members:
            member.__enter__()
        self.wait_members(len(self.members))
        self.wait_desk()
        return self

    @override
    def __exit__(self, *_: object) -> None:
        try:
            for member in self.members:
                member.__exit__()
        finally:
            self.platform.__exit__()

    @property
    @override
    def data_dirs(self) -> list[Path]:
        return [self.folder / "shared", *(member.data_dir for member in self.members)]

    @override
    def post(self, event: dict[str, Any], agent: str, delivery_id: str) -> int:
        """Send an event to the next front."""
        front = next(each for each in self._turn if not (each.dead or each.is_stopped))
        return front.deliver(event, agent=agent, delivery_id=delivery_id)

    @override
    def revive(self) -> None:
        """Start again what is dead."""
        with self.reviving:
            for member in self.members:
                while member.dead and not (self.patient and self.is_member(member)):
                    self.deaths += 1
                    member.start()

    @override
    def settle(self, also: Callable[[], bool] = lambda: True) -> None:
        """Let all that was said come to its end, with all members; tell what did not."""

        def is_whole() -> bool:
            return not any(member.dead for member in self.members)

        try:
            super().settle(lambda: is_whole() and also())
        except TimeoutError as error:
            found = "\n".join(f"{what}: {self.bridge.rows(query)}" for what, query in OPEN.items())
            logs = "\n".join(f"{each.name}:\n{each.tail()}" for each in self.members)
            raise TimeoutError(f"{error}\n{found}\n{logs}") from error

    @override
    def end(self) -> None:
        """End all politely, workers first."""
        for member in reversed(self.members):
            assert member.stop() == 0
        self.polite_ends += 1

    @override
    def touch(self, name: str, session: int = 1) -> None:
        """Make a file in an agent's workspaces, so that it goes on wherever it runs."""
        for member in self.members:
            path = member.workspace(session=session) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def arm(self, step: str, when: Literal["before", "after"]) -> None:
        """Have the member die that next comes to a step."""
        self.bridge.arm(step, when)

    def session_of(self, place: str) -> int:
        """Return the number of a place's session."""
        query = "select session.id from session join place on place.id = place where name = ?"
        return int(self.bridge.rows(query, place)[0][0])

    def is_member(self, process: MemberProcess) -> bool:
        """Tell whether the others take a process to be there."""
        query = "select count(*) from member where name = ?"
        return self.bridge.rows(query, process.name) == [(1,)]

    def wait_members(self, count: int) -> None:
        """Wait until so many are members."""
        query = "select count(*) from member"
        self.bridge.wait(lambda: self.bridge.rows(query) == [(count,)], f"never {count} members")

    def wait_desk(self, but: str = "") -> MemberProcess:
        """Wait until a member has the desk, another one than this; return it."""
        query = "select member from duty where name = 'desk' and member <> ?"
        self.bridge.wait(lambda: bool(self.bridge.rows(query, but)), "the desk is free")
        name = self.bridge.rows(query, but)[0][0]
        return next(each for each in self.members if each.name == name)

    def worker_of(self, place: str) -> MemberProcess:
        """Return the worker that served the session of a place last."""
        query = (
            "select served_by from session join place on place.id = session.place "
            "where place.name = ? and served_by is not null"
        )
        self.bridge.wait(lambda: bool(self.bridge.rows(query, place)), f"{place} is not served")
        name = self.bridge.rows(query, place)[0][0]
        return next(each for each in self.members if each.name == name)

    def time_takeover(self, gone: MemberProcess) -> float:
        """Wait until others have removed a member; return the seconds that took."""
        began = time.monotonic()
        self.bridge.wait(lambda: not self.is_member(gone), f"{gone.name} is still there")
        return time.monotonic() - began
