"""A bridge in a process of its own, as a test starts it, talks to it and kills it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import httpx

from tests.support import postgres
from tests.support.hook import message, request
from tests.support.nursery import Fork, nursery
from tests.support.platform import Platform

ROOT = Path(__file__).parents[2]
DEMO = [sys.executable, str(ROOT / "app" / "demo_agent.py")]
DEADLY = [sys.executable, str(ROOT / "tests" / "support" / "deadly_agent.py")]
ADMIN_TOKEN = "admin-token-of-the-tests"
SECRET_KEY = "~secret-key-of-the-tests-by-their-own~"
"""Begins with what ends no word: an end that may become a secret is held back for a while."""
SPEED = 10.0
"""Of the clock of a bridge on a simulated platform: their paces are 1 to 5 seconds."""
SECONDS = 30.0
LOOK_SECONDS = 0.01
LONGEST_LOOK_SECONDS = 0.1
LOOK_COST = 4
"""A pause is so much longer than the look before it: some fork git or keep the bridge busy."""


def demo(*words: str, **more: Any) -> dict[str, Any]:
    """Write the registry entry of a demo agent that knows all faults."""
    return {
        "command": list(words) or DEMO,
        "sandbox": "none",
        "env": {"AGENT_BRIDGE_DEMO_FAULTS": "1"},
        "while_busy": "queue",
        **more,
    }


@dataclass
class BridgeProcess:
    """One bridge on one DATA_DIR; `start` and `kill` as often as a test likes."""

    startup: ClassVar[str] = "tests.support.startup"
    """The module whose `main` runs it."""

    folder: Path
    platform: Platform
    agents: dict[str, dict[str, Any]] = field(default_factory=lambda: {"demo": demo()})
    settings: dict[str, str] = field(default_factory=dict)
    wrapper: list[str] | None = None
    """A command to start it with, in a process that imports for itself; else it is forked.

    It may be empty. Tests of what others read of the process itself need that: a fork has the
    environment of the process that forked it.
    """
    page: bool = False
    """Whether its agents are on the page too, and not on the platform alone."""

    speed: float = 1.0
    """How fast its clock runs; paces and pauses take that much less time."""

    forge: Path | None = None
    """Where tokens come from and pull requests go to, if there is such a place."""

    clock: Path | None = None
    """The file that says what time of day it is, if that is not the real one."""

    def __post_init__(self) -> None:
        # Held also while the bridge is dead, so that nobody else gets it; it never listens.
        self._reserved = socket.socket()
        self._reserved.bind(("127.0.0.1", 0))
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port: int = self._reserved.getsockname()[1]
        self.process: subprocess.Popen[str] | Fork | None = None
        self.log = self.folder / "bridge.log"
        self.armed = self.folder / "armed.json"
        self.reached = self.folder / "reached.json"
        self.full = self.folder / "disk-is-full"
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            trust_env=False,
            verify=False,  # it is plain HTTP, and loading certificates takes 0.1 s
            timeout=SECONDS,
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self.reached.unlink(missing_ok=True)
        try:
            if not self.dead:
                self.stop()
        finally:
            self._reserved.close()
            if self.process is not None:
                self.kill()
                self._forget()

    @property
    def data_dir(self) -> Path:
        """Where it keeps everything."""
        return self.folder / "data"

    @property
    def database(self) -> str | None:
        """The address of its database, if that is no file."""
        return {**postgres.settings_of(self.data_dir), **self.settings}.get("DATABASE_URL")

    @property
    def deadly(self) -> list[str]:
        """The command of a demo agent at which this bridge can die."""
        return [*DEADLY, str(self.armed), str(self.reached), *DEMO]

    def start(self) -> None:
        """Start it and wait until it listens, or until a fail-point has killed it."""
        if self.process is not None:
            self._forget()
        plan = self.folder / "plan.json"
        plan.write_text(json.dumps(self._plan()))
        self.process = process = self._process(plan)
        assert process.stdout is not None
        line = process.stdout.readline()
        if line.strip() != "listening" and process.wait(SECONDS) != -signal.SIGKILL:
            raise RuntimeError(f"the bridge did not start:\n{self.log.read_text()}")

    def kill(self) -> None:
        """Kill it with -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(SECONDS)

    def terminate(self) -> None:
        """Tell it to end politely, without waiting."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    def stop(self, seconds: float = SECONDS) -> int:
        """End it politely and return its status."""
        self.terminate()
        return self.wait_dead(seconds)

    def set_clock(self, moment: str) -> None:
        """Say what time of day it is."""
        assert self.clock is not None
        new = self.clock.with_suffix(".new")
        new.write_text(moment)
        new.rename(self.clock)

    def wait_dead(self, seconds: float = SECONDS) -> int:
        """Wait for its end and return its status."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"the bridge still runs\n{self.tail()}") from error

    @property
    def dead(self) -> bool:
        """Whether the process is gone."""
        return self.process is None or self.process.poll() is not None

    @property
    def listens(self) -> bool:
        """Whether somebody could talk to it."""
        try:
            socket.create_connection(("127.0.0.1", self.port), SECONDS).close()
        except ConnectionError:
            return False
        return True

    def arm(
        self,
        step: str,
        when: Literal["before", "after"] = "before",
        nth: int = 1,
        act: Literal["kill", "pause", "mute", "ignore"] = "kill",
    ) -> None:
        """Have it die or pause when it next comes to a step; the other acts are its agent's."""
        self.reached.unlink(missing_ok=True)
        new = self.armed.with_suffix(".new")
        new.write_text(json.dumps({"step": step, "when": when, "nth": nth, "act": act}))
        new.rename(self.armed)

    def wait_reached(self) -> None:
        """Wait until it has come to the step."""
        self.wait(self.reached.exists, f"the step was not reached: {self.armed}")

    def let_go(self) -> None:
        """Let it go on where it pauses."""
        self.reached.unlink()

    def post(
        self, event: dict[str, Any], *, agent: str = "demo", delivery_id: str | None = None
    ) -> httpx.Response:
        """Send a signed event.

        Raises:
            httpx.TransportError: there was no answer.
        """
        body, headers = request(event, delivery_id)
        return self.http.post(f"/webhooks/hook/{agent}", content=body, headers=headers)

    def deliver(
        self, event: dict[str, Any], *, agent: str = "demo", delivery_id: str | None = None
    ) -> int:
        """Send a signed event; returns the status, 0 if there was no answer."""
        try:
            return self.post(event, agent=agent, delivery_id=delivery_id).status_code
        except httpx.TransportError:
            return 0

    def say(self, place: str, text: str, *mentions: str, **more: Any) -> int:
        """Say something in a place."""
        return self.deliver(message(place, text, *(mentions or ("demo",)), **more))

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the store from outside."""
        if self.database is not None:
            return postgres.run(self.database, query, *parameters)
        name = f"file:{self.data_dir / 'bridge.db'}?mode=ro"
        with closing(sqlite3.connect(name, uri=True, timeout=SECONDS)) as database:
            return database.execute(query, parameters).fetchall()

    def write(self, statement: str, *parameters: object) -> None:
        """Change the store from outside."""
        if self.database is not None:
            postgres.run(self.database, statement, *parameters)
            return
        name = self.data_dir / "bridge.db"
        with closing(sqlite3.connect(name, timeout=SECONDS)) as database, database:
            database.execute(statement, parameters)

    @contextmanager
    def store_locked(self, how: Literal["immediate", "exclusive"] = "immediate") -> Iterator[None]:
        """Keep everybody else from writing to the store."""
        if self.database is not None:
            with postgres.locked(self.database, how):
                yield
            return
        name = self.data_dir / "bridge.db"
        with closing(sqlite3.connect(name, timeout=SECONDS, isolation_level=None)) as database:
            database.execute(f"begin {how}")
            yield
            database.execute("rollback")

    def wait(self, done: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        """Wait until something is true, looking often."""
        began = look = time.monotonic()
        while not done():
            now = time.monotonic()
            if now > began + seconds:
                raise TimeoutError(f"{what}\n{self.tail()}")
            time.sleep(min(max(LOOK_SECONDS, LOOK_COST * (now - look)), LONGEST_LOOK_SECONDS))
            look = time.monotonic()

    def tail(self) -> str:
        """Return the end of its log."""
        return self.log.read_text()[-4000:]

    def logged(self, words: str) -> bool:
        """Whether the log says something."""
        return words in self.log.read_text()

    @property
    def workspaces(self) -> Path:
        """Where sessions work: in what machines share, if they do."""
        return Path(self.settings.get("SHARED_DIR", self.data_dir)) / "workspaces"

    def workspace(self, agent: str = "demo", session: int = 1) -> Path:
        """Where a session works."""
        return self.workspaces / f"{session}-{agent}"

    def _process(self, plan: Path) -> subprocess.Popen[str] | Fork:
        if self.wrapper is None:
            return nursery().start(self.startup, plan, self.log)
        with self.log.open("a") as log:
            return subprocess.Popen(
                [*self.wrapper, sys.executable, "-m", self.startup, str(plan)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def _forget(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _plan(self) -> dict[str, Any]:
        home = self.folder / "person"
        home.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "DATA_DIR": str(self.data_dir),
            "PORT": str(self.port),
            "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "BRIDGE_SECRET_KEY": SECRET_KEY,
            "AGENTS_JSON": json.dumps(self.agents),
            "LOG_LEVEL": "info",
            **postgres.settings_of(self.data_dir),
            **self.settings,
        }
        return {
            # A setting that is empty is one that a test wants to be absent.
            "environment": {name: value for name, value in environment.items() if value},
            "home": str(home),
            "page": self.page,
            "speed": self.speed,
            "clock": str(self.clock) if self.clock else "",
            # A bridge that imports for itself is there to be as real as possible.
            "prepared": self.wrapper is None,
            "platform": self.platform.url,
            "token": self.platform.token,
            "armed": str(self.armed),
            "reached": str(self.reached),
            "full": str(self.full),
            "forge": str(self.forge) if self.forge else "",
        }
