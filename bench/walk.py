"""Walks of one message: the modules that it runs through, and how often it turns back.

Run as `python -m bench.walk`; `--help` says what it can list. It starts `agent-bridge serve` with a
profiler in its process, lets a person write on the simulated Slack, on the page and on the
simulated GitHub, each to an agent that has not been started there, and counts every call into
`app` from the message until nothing is left to do. The layers are those of import-linter.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import sqlite3
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType

import httpx

from bench.machine import ROOT, free_port
from bench.proof import Unproven
from sim.github.world import SimulatedGithub
from sim.slack.server import SimulatedSlack
from tests.support.github import PEOPLE, PROGRESS, credentials

PACKAGE = f"{ROOT / 'app'}{os.sep}"
ADMIN_TOKEN = "admin-token-of-the-bench"
OPERATOR = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
AGENT = "claude"
WAIT_SECONDS = 60.0
"""Longer than a turn takes on a busy machine that is profiled."""
LOOK_SECONDS = 0.05
UNSETTLED = """
    select (select count(*) from delivery where state = 'new')
         + (select count(*) from turn where state in ('queued', 'starting', 'prompted'))
         + (select count(*) from post where state in ('new', 'closing'))
"""
LOOPS = re.compile(
    r".*/(asyncio/(runners|base_events|events)|threading|concurrent/futures/\w+)\.py"
)
"""Who calls what a loop or a pool has been given is not known from the stack."""

Function = tuple[str, str]
"""A module and the name of a function in it."""
Calls = list[tuple[Function | None, Function, int]]
"""Callers, what they called, and how often; None for a loop."""


class Profiler:
    """Counts the calls of functions of `app` by functions of `app`, in all threads."""

    def __init__(self) -> None:
        self._on = False
        self._owners: dict[CodeType, Function | bool | None] = {}
        self._calls: Counter[tuple[Function | None, Function]] = Counter()

    def install(self) -> None:
        """Watch this thread and those that are started from now on."""
        threading.setprofile(self._notice)
        sys.setprofile(self._notice)

    def begin(self) -> None:
        """Begin a walk."""
        self._calls = Counter()
        self._on = True

    def end(self) -> Calls:
        """End it; returns callers, what they called, and how often."""
        self._on = False
        return [(caller, called, n) for (caller, called), n in list(self._calls.items())]

    def _notice(self, frame: FrameType, event: str, _: object) -> None:
        if self._on and event == "call":
            called = self._owner(frame.f_code)
            if isinstance(called, tuple):
                self._calls[self._caller(frame), called] += 1

    def _caller(self, frame: FrameType) -> Function | None:
        """Find the function of `app` that called, also by way of a library."""
        above = frame.f_back
        while above is not None:
            owner = self._owner(above.f_code)
            if owner is not None:
                return owner if isinstance(owner, tuple) else None
            above = above.f_back
        return None

    def _owner(self, code: CodeType) -> Function | bool | None:
        """Name the function of a code; None for other people's, False for a loop."""
        if code not in self._owners:
            self._owners[code] = self._find_owner(code)
        return self._owners[code]

    def _find_owner(self, code: CodeType) -> Function | bool | None:
        if code.co_filename.startswith(PACKAGE):
            path = Path(code.co_filename).relative_to(ROOT).with_suffix("")
            module = ".".join(path.parts).removesuffix(".__init__")
            is_function = code.co_flags & inspect.CO_OPTIMIZED  # else a late import runs it
            return (module, code.co_qualname) if is_function else False
        return False if LOOPS.fullmatch(code.co_filename) else None


def run_bridge(connection: Connection, environment: dict[str, str]) -> None:
    """Run `agent-bridge serve` under a profiler that does as it is told over a connection."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["agent-bridge", "serve"]
    output = os.open(f"{environment['HOME']}/bridge.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    profiler = Profiler()

    def obey() -> None:
        while connection.recv() == "begin":
            profiler.begin()
            connection.send(None)
            connection.recv()
            connection.send(profiler.end())

    threading.Thread(target=obey, name="walk", daemon=True).start()
    profiler.install()
    from app.cli import main  # noqa: PLC0415 - after the profiler, as all it imports

    main()


@dataclass
class Scene:
    """One bridge with one agent, which a person has not yet written to."""

    folder: Path
    port: int = field(default_factory=free_port)

    @contextmanager
    def serve(self, **settings: str) -> Iterator[None]:
        """Run a bridge with these settings until the block ends."""
        home = self.folder / "home"
        home.mkdir(parents=True)
        agent = {"command": [sys.executable, str(ROOT / "app/demo_agent.py")], "sandbox": "none"}
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "AGENT_BRIDGE_ENV_FILE": os.devnull,
            "DATA_DIR": str(self.folder / "data"),
            "PORT": str(self.port),
            "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "BRIDGE_BASE_URL": f"http://127.0.0.1:{self.port}",
            "AGENTS_JSON": json.dumps({AGENT: agent}),
            **settings,
        }
        spawning = get_context("spawn")
        self.connection, theirs = spawning.Pipe()
        self.process = spawning.Process(target=run_bridge, args=(theirs, environment))
        self.process.start()
        try:
            with httpx.Client(base_url=environment["BRIDGE_BASE_URL"], trust_env=False) as http:
                self.http = http
                self.wait(self._is_ready, "the bridge does not get ready")
                yield
        finally:
            self.process.terminate()
            self.process.join(WAIT_SECONDS)
            self.process.kill()
            self.process.join()

    def trace(self, act: Callable[[], None]) -> Calls:
        """Let something happen, and return the calls until nothing is left to do."""
        self.wait(self._is_settled, "something is never done")
        self.connection.send("begin")
        self.connection.recv()
        act()
        self.wait(self._is_settled, "something is never done")
        self.connection.send("end")
        calls: Calls = self.connection.recv()
        return calls

    def wait(self, done: Callable[[], object], failure: str) -> None:
        """Wait until something is true."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            if time.monotonic() > deadline or not self.process.is_alive():
                log = self.folder / "home" / "bridge.log"
                raise Unproven(f"{failure}\n{log.read_text()[-4000:] if log.exists() else ''}")
            time.sleep(LOOK_SECONDS)

    def sign_in(self) -> dict[str, str]:
        """Sign the browser in; returns the headers of the page's script."""
        link = self.http.post("/api/v1/login-links", headers=OPERATOR).raise_for_status()
        own = {"Origin": str(self.http.base_url).rstrip("/")}
        self.http.post(link.json()["url"], headers=own)
        found = re.search(r'<meta name="csrf" content="([0-9a-f]+)">', self.http.get("/").text)
        if found is None:
            raise Unproven("the page does not let one in")
        return {**own, "X-CSRF-Token": found[1], "Accept": "application/json"}

    def _is_settled(self) -> bool:
        name = f"file:{self.folder / 'data' / 'bridge.db'}?mode=ro"
        with closing(sqlite3.connect(name, uri=True)) as store:
            return bool(store.execute(UNSETTLED).fetchone() == (0,))

    def _is_ready(self) -> bool:
        """Tell whether all parts work, and the agent was tried, which it is at the start."""
        try:
            if not self.http.get("/readyz").is_success:
                return False
        except httpx.TransportError:
            return False
        agents = self.http.get("/api/v1/agents", headers=OPERATOR).json()["items"]
        return all(agent["version"] for agent in agents)


def mention(folder: Path) -> Calls:
    """Mention the agent on Slack."""
    with SimulatedSlack() as slack:
        app, ann = slack.app(AGENT), slack.person("Ann")
        channel = slack.channel("general", [ann, app])
        scene = Scene(folder)

        def act() -> None:
            thread = slack.say(ann, channel, f"<@{app.user}> say hello there")
            scene.wait(lambda: answered(thread), "no answer on Slack")

        def answered(thread: str) -> bool:
            said = [each for each in slack.thread(channel, thread) if "hello" in each.words]
            streams = any(map(slack.streaming, said)) or slack.unacknowledged
            return any(each.app is app for each in said) and not streams

        with scene.serve(
            SLACK_API_URL=slack.url, SLACK_BOT_TOKEN=app.token, SLACK_APP_TOKEN=app.app_token
        ):
            scene.wait(lambda: slack.connected(app), "the bridge does not connect to Slack")
            return scene.trace(act)


def page_message(folder: Path) -> Calls:
    """Write to the agent on the page."""
    scene = Scene(folder)

    def act() -> None:
        fields = {"text": "say hello there", "thread": "", "agent": AGENT}
        scene.http.post("/send", data=fields, headers=headers).raise_for_status()

    with scene.serve():
        headers = scene.sign_in()
        return scene.trace(act)


def comment(folder: Path) -> Calls:
    """Mention the agent on a GitHub issue."""
    with SimulatedGithub(folder / "github") as github:
        repository = github.repository("acme/widgets", PEOPLE)
        scene = Scene(folder)
        hook = f"http://127.0.0.1:{scene.port}/webhooks/github/{AGENT}"
        app = github.app(f"{AGENT}-bridge", hook)
        github.install(app, repository)

        def act() -> None:
            github.comment("ann", issue, f"@{AGENT}-bridge\nsay hello there")
            scene.wait(answered, "no answer on GitHub")
            github.quiet()

        def answered() -> bool:
            said = [each.body for each in issue.comments if each.user is app.bot]
            return any("hello there" in each and PROGRESS not in each for each in said)

        with scene.serve(**credentials(github, {AGENT: app})):
            issue = github.open_issue("ann", repository, "A bug", "Something is wrong.")
            github.quiet()
            return scene.trace(act)


def read_layers() -> dict[str, int]:
    """Read the layers of the package from import-linter's contract, 0 for the highest."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (
        each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "layers"
    )
    return {
        name: number
        for number, line in enumerate(contract["layers"])
        for name in re.findall(r"\w+", line)
    }


@dataclass(frozen=True)
class Walk:
    """The calls of one message, without those of the simulated platforms."""

    calls: Calls
    layers: dict[str, int]

    @property
    def modules(self) -> set[str]:
        """The modules of which at least one function ran."""
        return {called[0] for _, called, _ in self.calls}

    @property
    def edges(self) -> set[tuple[Function, Function]]:
        """The pairs of functions of different modules of which one called the other."""
        return {
            (caller, called)
            for caller, called, _ in self.calls
            if caller is not None and caller[0] != called[0]
        }

    @property
    def up(self) -> set[tuple[str, str]]:
        """The pairs of modules of which the lower called the higher."""
        pairs = {(caller[0], called[0]) for caller, called in self.edges}
        return {(low, high) for low, high in pairs if self._layer(low) > self._layer(high)}

    @property
    def turns_back(self) -> set[tuple[str, str]]:
        """Those of them that do not lead into the store."""
        return {(low, high) for low, high in self.up if not high.startswith("app.store")}

    @property
    def into_main(self) -> set[tuple[str, str]]:
        """Those that lead from below into `main`."""
        return {(low, high) for low, high in self.up if high.split(".")[1] == "main"}

    def callers(self, name: str) -> Counter[str]:
        """Count the calls of a function by caller; a name may be short, such as `Vault.redact`."""
        found: Counter[str] = Counter()
        for caller, called, number in self.calls:
            if f".{'.'.join(called)}".endswith(f".{name}"):
                found[".".join(caller) if caller else "(a loop)"] += number
        return found

    def figures(self) -> Iterator[int]:
        """Yield the numbers of a row."""
        yield len(self.modules)
        yield len({called for _, called, _ in self.calls})
        yield len(self.edges)
        yield from map(len, (self.up, self.turns_back, self.into_main))

    def _layer(self, module: str) -> int:
        return self.layers.get(module.split(".")[1], 0)


MESSAGES = {"Slack mention": mention, "page message": page_message, "GitHub comment": comment}
HEADER = ("modules", "functions", "call edges", "up", "turns back", "into main")


def main(words: list[str]) -> None:
    """Play the messages and print what they ran through."""
    arguments = argparse.ArgumentParser(prog="python -m bench.walk")
    arguments.add_argument(
        "--callers", metavar="FUNCTION", nargs="*", default=[], help="such as Vault.redact"
    )
    arguments.add_argument("--pairs", action="store_true", help="list every turn back")
    arguments.add_argument("--modules", action="store_true", help="list every module")
    wanted = arguments.parse_args(words)
    layers = read_layers()
    print("".join(f"{each:>16}" for each in ("", *HEADER)))
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        for name, play in MESSAGES.items():
            walk = Walk(play(Path(folder) / play.__name__), layers)
            print(f"{name:>16}" + "".join(f"{each:>16}" for each in walk.figures()))
            if wanted.pairs:
                print("".join(f"    {low} > {high}\n" for low, high in sorted(walk.turns_back)))
            if wanted.modules:
                print("".join(f"    {module}\n" for module in sorted(walk.modules)))
            for function in wanted.callers:
                found = walk.callers(function)
                print(f"    {found.total():>6} calls of {function}")
                print("".join(f"    {n:>6} {who}\n" for who, n in found.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
