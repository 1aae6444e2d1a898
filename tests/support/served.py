"""Bridges whose page can be opened: one that a person starts, and one that starts quickly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

from pydantic import SecretStr

from app.server.login_links import private_host
from tests.support.bridge import SECRET_KEY, BridgeProcess
from tests.support.nursery import COMMAND, nursery

SECONDS = 60.0
"""Far beyond what any step takes; a test that needs it has failed."""
LOOK_SECONDS = 0.02
PLAIN_PATH = "/usr/bin:/bin"
"""Where the tools of every machine are, and no agents."""
SERVE = (COMMAND, "serve")


class Site(Protocol):
    """A bridge with a page."""

    url: str

    @property
    def data_dir(self) -> Path:
        """Where it keeps everything."""

    def new_link(self) -> str:
        """Ask for a fresh log-in link."""


def let_go(data_dir: Path, name: str) -> None:
    """Make the file that an agent holds for, in every workspace."""
    for workspace in data_dir.glob("workspaces/[!.]*[!s]"):
        (workspace / name).touch()


class Forked(BridgeProcess):
    """A bridge with agents of the test, forked where all is imported already."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.page = True
        self.url = f"http://{private_host(SecretStr(SECRET_KEY))}:{self.port}"

    def __exit__(self, *_: object) -> None:
        self.kill()  # what agents still do here is of no concern, and would get its grace time
        super().__exit__()

    def new_link(self) -> str:
        """Ask for a fresh log-in link."""
        return str(self.http.post("/api/v1/login-links").json()["url"])


@dataclass
class Served:
    """`agent-bridge serve` with nothing configured but the port, on a home of its own."""

    folder: Path
    command: Sequence[str] = SERVE
    cwd: Path | None = None
    surroundings: Mapping[str, str] = field(default_factory=dict)
    """What the command needs of this machine beside."""

    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.home.mkdir(parents=True)
        self.output = self.folder / "serve.log"
        # Held also while the bridge is dead, so that nobody else gets it; it never listens.
        self._reserved = socket.socket()
        self._reserved.bind(("127.0.0.1", 0))
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port: int = self._reserved.getsockname()[1]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything."""
        self._reserved.close()
        if self.process is not None:
            self.kill()

    @property
    def environment(self) -> dict[str, str]:
        """All that the bridge gets to know."""
        own = {"HOME": str(self.home), "PORT": str(self.port), "AGENT_BRIDGE_ENV_FILE": os.devnull}
        return {"PATH": PLAIN_PATH, **self.surroundings, **own}

    @property
    def data_dir(self) -> Path:
        """Where it keeps everything, unless told otherwise."""
        return self.home / ".local" / "share" / "agent-bridge"

    def new_link(self) -> str:
        """Ask for a fresh log-in link, as a person does."""
        asked = nursery().run("login", environment=self.environment, cwd=self.home)
        assert asked.returncode == 0, asked.stderr
        return asked.stdout.strip()

    def start(self, seconds: float = SECONDS) -> None:
        """Start it and wait until it listens and says how to log in."""
        said_before = self.output.stat().st_size if self.output.exists() else 0
        with self.output.open("ab") as output:
            self.process = process = subprocess.Popen(
                self.command,
                cwd=self.cwd or self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

        def listens() -> bool:
            said = self.output.read_bytes()[said_before:]
            assert process.poll() is None, f"the bridge did not start:\n{said[-4000:].decode()}"
            return b"To open the page" in said

        self.wait(listens, "the way to log in", seconds)
        self.url = self.new_link().partition("/login/")[0]

    def kill(self) -> None:
        """Kill it with -9, and the make that may have started it."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)

    def wait(self, done: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        """Wait until something is true, looking often."""
        deadline = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < deadline, (
                f"{what} did not come:\n{self.output.read_text(errors='replace')[-4000:]}"
            )
            time.sleep(LOOK_SECONDS)
