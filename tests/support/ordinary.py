"""Runs commands as an ordinary user on a folder laid out as on a server, also for tests as root.

    @pytest.fixture(params=USERS)
    def server(request: pytest.FixtureRequest) -> Iterator[Server]:
        with laid_out(request.param) as server:
            yield server

    def test_...(server: Server) -> None:
        server.dotenv.write_text("RETENTION_DAYS=7")
        with server.serving(AGENTS_JSON=agents(demo=server.demo(mode="free"))) as bridge:
            bridge.http.get("/api/v1/agents")

Everything is under one folder that is neither in /tmp nor in a person's HOME: `checkout` (a copy of
the code with a virtual environment and `.env`), `data` (DATA_DIR) and `home` (HOME). Tests that run
as root use a uid without a passwd entry; tests that run as another user use that user.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import httpx
import pytest

from tests.support.bridge import ADMIN_TOKEN, ROOT, SECONDS, SECRET_KEY

User = Literal["ordinary", "root"]

LOOK_SECONDS: Final = 0.05
"""Every look is a request that the bridge has to answer."""

COMMAND_SECONDS: Final = 120.0
"""A command may read and write all that a hostile agent made."""

IS_ROOT: Final = os.geteuid() == 0
_AS_ROOT: Final = pytest.param("root", marks=pytest.mark.long)
USERS: Final = ("ordinary", _AS_ROOT) if IS_ROOT else ("ordinary",)
"""Each user that these tests can be; as root they are among the longer ones."""
ORDINARY_UID: Final = 64123
"""In no passwd file: Debian and Fedora give out ids below 60001 and from 65534 on."""
SITE_PACKAGES: Final = Path(sysconfig.get_path("purelib"))
NEEDED: Final = (Path(sys.base_prefix), Path(sys.prefix), ROOT)
"""What a command from the virtual environment reads."""


@dataclass(frozen=True, slots=True)
class Running:
    """`agent-bridge serve`, up and listening."""

    http: httpx.Client
    """With the admin token."""
    pid: int
    log: Path

    def ask(self, text: str, agent: str = "demo", *, thread: str | None = None) -> str:
        """Say something to an agent on the page and return its answer, once the turn has ended."""
        words = {"agent": agent, "text": text, **({"thread": thread} if thread else {})}
        begun = self.http.post("/api/v1/sessions", json=words)
        assert begun.status_code == 201, begun.text
        session, turn = begun.json()["id"], begun.json()["turn"]
        deadline = time.monotonic() + SECONDS
        while self._state(session, turn) not in ("done", "failed", "cancelled"):
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")[-4000:]
            time.sleep(LOOK_SECONDS)
        items = self.http.get(f"/api/v1/sessions/{session}/transcript").json()["items"]
        shown = [item for item in items if item["turn"] == turn and item["kind"] != "message"]
        return "\n".join(str(item["text"]) for item in shown)

    def _state(self, session: int, turn: int) -> str:
        turns = self.http.get(f"/api/v1/sessions/{session}").json()["turns"]
        return next(str(each["state"]) for each in turns if each["id"] == turn)


@dataclass(frozen=True, slots=True)
class Server:
    """A folder laid out as on a server, and the user that owns it."""

    folder: Path
    uid: int

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def dotenv(self) -> Path:
        """The settings file; commands start in its folder."""
        return self.checkout / ".env"

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def demo(self, **more: object) -> dict[str, object]:
        """Write the registry entry of a demo agent; isolated unless told otherwise."""
        command = [".venv/bin/python", "app/demo_agent.py"]
        return {"command": [str(self.checkout / word) for word in command], **more}

    def environment(self, **settings: str) -> dict[str, str]:
        """Return all that a command knows of its surroundings."""
        return {
            "PATH": f"{self.checkout / '.venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "DATA_DIR": str(self.data_dir),
            "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "BRIDGE_SECRET_KEY": SECRET_KEY,
            **settings,
        }

    def argv(self, *command: str) -> list[str]:
        """Spell a command so that it runs as this user, in the very process that is started."""
        if self.uid == os.geteuid():
            return list(command)
        user = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]
        if not (script := _opening_script()):
            return [*user, *command]
        opened = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-ec", script, "sh"]
        return [*opened, *user, *command]

    def own(self, path: Path) -> Path:
        """Give a path to this user, and return it."""
        subprocess.run(["chown", "-hR", f"{self.uid}:{self.uid}", path], check=True)
        return path

    def run(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever its status."""
        return subprocess.run(
            self.argv(*command),
            cwd=self.checkout,
            env=self.environment(**settings),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def succeed(self, *words: str, **settings: str) -> str:
        """Run a command of the bridge that must succeed, and return what it said."""
        done = self.run("agent-bridge", *words, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serving(
        self, up: str = "/readyz", /, *, wrapper: Sequence[str] = (), **settings: str
    ) -> Iterator[Running]:
        """Run `agent-bridge serve` once that path is answered; killed with all that it started.

        A wrapper is a command that becomes the command after it, such as `prlimit`.
        """
        log = self.folder / "serve.log"
        with socket.socket() as reserved, log.open("wb") as output:
            reserved.bind(("127.0.0.1", 0))
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            port = str(reserved.getsockname()[1])
            process = subprocess.Popen(
                self.argv(*wrapper, "agent-bridge", "serve"),
                cwd=self.checkout,
                env=self.environment(PORT=port, **settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                with httpx.Client(
                    base_url=f"http://127.0.0.1:{port}",
                    headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
                    trust_env=False,
                    timeout=SECONDS,
                ) as http:
                    _wait_until_up(http, process, log, up)
                    yield Running(http, process.pid, log)
            finally:
                _stop(process)


def agents(**entries: dict[str, object]) -> str:
    """Write AGENTS_JSON."""
    return json.dumps(entries)


@contextmanager
def laid_out(user: User = "ordinary") -> Iterator[Server]:
    """Lay out a server's folder for a user, and remove it at the end."""
    if IS_ROOT and user == "ordinary" and shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is needed to become an ordinary user")
    uid = ORDINARY_UID if IS_ROOT and user == "ordinary" else os.geteuid()
    # /srv is empty on most machines and writable for root alone; others use the checkout's folder.
    base = Path("/srv") if IS_ROOT else ROOT
    folder = Path(tempfile.mkdtemp(prefix=".test-server-", dir=base))
    server = Server(folder, uid)
    try:
        folder.chmod(0o755)
        _fill(server)
        if (tried := server.run("python", "-c", "")).returncode:
            pytest.skip(f"nothing can be run as {user} user here: {tried.stderr.strip()}")
        yield server
    finally:
        # Not `shutil`: it does not remove folders that are as deep as hostile agents make them.
        subprocess.run(["rm", "-rf", folder], check=False)


def _fill(server: Server) -> None:
    server.home.mkdir()
    server.checkout.mkdir()
    copied = [ROOT / name for name in ("app", "alembic", "pyproject.toml")]
    # With their times, so that what is compiled counts; Python takes ten times as long. A file
    # that another worker is compiling may vanish meanwhile: that is not an error.
    subprocess.run(["cp", "-Rp", *copied, server.checkout], capture_output=True, check=False)
    environment = server.checkout / ".venv"
    venv.create(environment, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (packages / "server.pth").write_text(f"{server.checkout}\n{SITE_PACKAGES}\n")
    command = environment / "bin" / "agent-bridge"
    interpreter = environment / "bin" / "python"
    command.write_text(f"#!{interpreter}\nimport sys\nfrom app.cli import main\nsys.exit(main())\n")
    command.chmod(0o755)
    server.own(server.folder)


def _opening_script() -> str:
    """Write the commands that show an interpreter in a closed folder, such as root's HOME.

    They run in a mount namespace of their own: the folder is covered by an empty one that everybody
    may enter, with what is needed mounted at its place.
    """
    lines: list[str] = []
    for closed in {folder for path in NEEDED if (folder := _closed_folder(path))}:
        inside = [path for path in NEEDED if path.is_relative_to(closed)]
        lines += [f"exec {3 + each}<{shlex.quote(str(path))}" for each, path in enumerate(inside)]
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(closed))}")
        for each, path in enumerate(inside):
            place = shlex.quote(str(path))
            # Not canonicalised: the link's words lead into the cover, the link itself does not.
            lines.append(f"mkdir -p {place}; mount -c --bind /proc/self/fd/{3 + each} {place}")
            lines.append(f"exec {3 + each}<&-")
    return "\n".join([*lines, 'exec "$@"']) if lines else ""


def _closed_folder(path: Path) -> Path | None:
    """Return the first folder on the way to a path that others may not enter."""
    around = reversed([path, *path.parents])
    return next((each for each in around if not each.stat().st_mode & 0o001), None)


def _wait_until_up(
    http: httpx.Client, process: subprocess.Popen[bytes], log: Path, path: str
) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        with suppress(httpx.TransportError):
            if http.get(path).is_success:
                return
        words = log.read_text(errors="replace")[-4000:]
        assert process.poll() is None, f"the bridge did not start:\n{words}"
        assert time.monotonic() < deadline, f"the bridge does not get ready:\n{words}"
        time.sleep(LOOK_SECONDS)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
