"""The command line as a person or a script uses it: real processes, with and without a bridge."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import DEMO
from tests.support.nursery import COMMAND, nursery

pytestmark = pytest.mark.one_database

CANARY = "canary-0123456789abcdef"
SECONDS = 60.0
"""Far beyond what any step takes; a test that needs it has failed."""

Done = subprocess.CompletedProcess[str]


@dataclass
class Machine:
    """A person's machine: an empty home, one data folder, one agent."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "cwd"):
            (self.folder / name).mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    @property
    def environment(self) -> dict[str, str]:
        """All that a command gets to know."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "AGENT_BRIDGE_ENV_FILE": os.devnull,
            "DATA_DIR": str(self.folder / "data"),
            "PORT": str(self.port),
            "AGENTS_JSON": json.dumps({"demo": {"command": DEMO, "sandbox": "none"}}),
            **self.settings,
        }

    def run(self, *words: str, stdin: str = "", settings: Mapping[str, str] | None = None) -> Done:
        """Run a command to its end."""
        environment = self.environment | dict(settings or {})
        return nursery().run(*words, environment=environment, cwd=self.folder / "cwd", stdin=stdin)

    @contextmanager
    def started(self, *words: str, stdin: int = subprocess.DEVNULL) -> Iterator[Running]:
        """Start a command and see to it that it ends; its stderr, or both, can be watched."""
        with subprocess.Popen(
            [COMMAND, *words],
            env=self.environment,
            cwd=self.folder / "cwd",
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Whoever runs the tests in the background has them ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            try:
                yield Running(process)
            finally:
                if process.poll() is None:
                    process.kill()

    @contextmanager
    def serving(self) -> Iterator[Running]:
        """Serve a bridge for as long as the block runs."""
        with self.started("serve") as bridge:
            bridge.wait_for("Stop  ", "stdout")
            yield bridge
            bridge.process.terminate()
            assert bridge.end()[0] == 0


@dataclass
class Running:
    """A command that runs."""

    process: subprocess.Popen[bytes]
    seen: bytes = b""

    def wait_for(self, words: str, stream: str = "stderr") -> str:
        """Wait until some words were written."""
        pipe = getattr(self.process, stream)
        deadline = time.monotonic() + SECONDS
        while words.encode() not in self.seen:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(pipe.fileno(), 65536) if ready else b""
            assert data, f"{words!r} never came, but {self.seen.decode()!r}"
            self.seen += data
        return self.seen.decode()

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; returns status and what was not seen yet."""
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, (out or b"").decode(), err.decode()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Start a bridge on a machine, for all tests that only talk to one."""
    machine = Machine(tmp_path_factory.mktemp("served"))
    with machine.serving():
        yield machine


def ask_in_a_terminal(machine: Machine, words: str, answer: str) -> tuple[int, str, str]:
    """Ask something and answer the agent's question; stdin and stderr are a terminal."""
    person, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, "ask", "demo", words],
            env=machine.environment | {"TERM": "xterm"},
            cwd=machine.folder / "cwd",
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            assert process.stdout is not None
            shown = seen_in(person, until="Answer (1-")
            os.write(person, answer.encode())
            shown += seen_in(person)
            out = process.stdout.read().decode()
            return process.wait(SECONDS), out, shown
    finally:
        os.close(person)


def seen_in(person: int, until: str | None = None) -> str:
    """Read from a terminal until some words were written, or until it is closed."""
    seen = b""
    while until is None or until.encode() not in seen:
        ready, _, _ = select.select([person], [], [], SECONDS)
        assert ready, f"{until!r} never came, but {seen.decode()!r}"
        try:
            data = os.read(person, 65536)
        except OSError:  # how Linux says that nobody has the terminal open any more
            break
        seen += data
    return seen.decode()


def test_a_session_of_a_service_without_credentials_is_listed_as_disconnected(
    machine: Machine,
) -> None:
    machine.run("ask", "demo", "say hello", "--thread", "t1")
    with closing(sqlite3.connect(machine.folder / "data" / "bridge.db")) as database, database:
        database.execute("update place set service = 'slack' where name = 't1'")

    (listed,) = json.loads(machine.run("sessions", "list", "--json").stdout)
    shown = json.loads(machine.run("sessions", "show", "1", "--json").stdout)

    assert listed["state"] == shown["state"] == "disconnected"


def test_a_question_without_a_bridge_is_answered_on_stdout_and_kept(machine: Machine) -> None:
    asked = machine.run("ask", "demo", "-", "--thread", "t1", stdin="plan look; write\nsay hello\n")

    assert asked.returncode == 0
    assert asked.stdout == "Done: look; write.\n\nhello\n"
    assert "Plan:\n  · look\n  · write\n" in asked.stderr
    assert "go on with --thread t1" in asked.stderr

    shown = machine.run("sessions", "show", "1")

    assert "operator:\n  plan look; write\n  say hello\n\ndemo:\n  Done: look" in shown.stdout


@pytest.mark.long
def test_an_ask_is_answered_in_the_terminal(machine: Machine) -> None:
    status, out, shown = ask_in_a_terminal(machine, "write notes.txt hello", "1\n")

    assert (status, out) == (0, "Wrote notes.txt.\n")
    assert "+hello" in shown
    assert "1  Allow once" in shown


@pytest.mark.slow
def test_ctrl_c_stops_the_agent_and_leaves_with_130(machine: Machine) -> None:
    with machine.started("ask", "demo", "plan begin\nhold never") as asking:
        asking.wait_for("✓ begin")
        asking.process.send_signal(signal.SIGINT)
        status, _, err = asking.end()

    assert status == 130
    assert "Stopped." in err
    assert "Traceback" not in err


def test_a_running_bridge_answers_on_stdout_and_goes_on_with_a_thread(served: Machine) -> None:
    asked = served.run("ask", "demo", "say plum", "--thread", "words")
    again = served.run("ask", "demo", "recall", "--thread", "words", "-q")

    assert (asked.returncode, asked.stdout) == (0, "plum\n")
    assert "plum" in again.stdout
    assert (again.returncode, again.stderr) == (0, "")


def test_a_turn_that_fails_is_one_line_and_status_1(served: Machine) -> None:
    failed = served.run("ask", "demo", "fail", "--quiet")

    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("agent-bridge: demo failed: ")
    assert failed.stderr.count("\n") == 1


def test_what_is_allowed_by_option_is_done(served: Machine) -> None:
    asked = served.run("ask", "demo", "write notes.txt hello", "--allow", "once")

    assert (asked.returncode, asked.stdout) == (0, "Wrote notes.txt.\n")
    assert "? demo wants to create notes.txt (+1)" in asked.stderr
    (notes,) = served.folder.glob("data/workspaces/*/notes.txt")
    assert notes.read_text() == "hello\n"


def test_without_a_person_everything_is_rejected_and_said_so(served: Machine) -> None:
    asked = served.run("ask", "demo", "run touch made")

    assert asked.returncode == 0
    assert "Reject (no one is at the terminal; --allow once would allow it)" in asked.stderr
    assert not list(served.folder.glob("data/workspaces/*/made"))


def test_a_question_that_nobody_is_there_to_answer_is_declined(served: Machine) -> None:
    asked = served.run("ask", "demo", "ask Tea or coffee? | Tea | Coffee", "-q")

    assert (asked.returncode, asked.stdout) == (0, "Nothing was chosen.\n")


@pytest.mark.long
def test_an_ask_of_a_running_bridge_is_answered_in_the_terminal(served: Machine) -> None:
    status, out, _ = ask_in_a_terminal(served, "run echo it ran", "allow once\n")

    assert status == 0
    assert "it ran" in out


@pytest.mark.long
def test_ctrl_c_stops_a_turn_of_a_running_bridge(served: Machine) -> None:
    with served.started("ask", "demo", "plan begin\nhold never", "--thread", "held") as asking:
        asking.wait_for("✓ begin")
        asking.process.send_signal(signal.SIGINT)
        status, *_ = asking.end()

    listed = served.run("sessions", "list")
    (line,) = [line for line in listed.stdout.splitlines() if " held " in line]
    assert status == 130
    assert line.split()[1] == "parked"


@pytest.mark.long
def test_a_reader_that_has_seen_enough_ends_the_question_quietly(served: Machine) -> None:
    with served.started("ask", "demo", "big 200000\nhold never", "-q") as asking:
        assert asking.process.stdout is not None
        asking.process.stdout.read(10)
        asking.process.stdout.close()
        asking.process.stdout = None
        status, _, err = asking.end()

    assert (status, err) == (1, "")


def test_an_agent_that_a_running_bridge_does_not_know_is_one_line(served: Machine) -> None:
    asked = served.run("ask", "nobody", "hi")

    assert asked.returncode == 1
    assert asked.stderr.count("\n") == 1
    assert "agents list" in asked.stderr


def test_a_second_bridge_on_the_same_data_refuses_in_one_line(served: Machine) -> None:
    second = served.run("serve")

    assert second.returncode == 1
    assert second.stderr.startswith("agent-bridge: DATA_DIR ")
    assert second.stderr.count("\n") == 1


def test_lists_and_doctor_ask_the_running_bridge(served: Machine) -> None:
    agents, doctor = served.run("agents", "list"), served.run("doctor")

    assert agents.returncode == doctor.returncode == 0
    assert "demo (default)" in agents.stdout
    assert "not isolated" in agents.stdout
    assert "bridge: running\n" in doctor.stdout


def use_up(port: int, link: str) -> int:
    """Click the button of a log-in link; only browsers take its host for this machine."""
    url = httpx.URL(link)
    address = f"http://127.0.0.1:{port}{url.path}"
    return httpx.post(address, headers={"Host": url.netloc.decode()}, trust_env=False).status_code


def test_login_prints_a_fresh_link_of_the_running_bridge(served: Machine) -> None:
    link, other = (served.run("login").stdout.strip() for _ in range(2))

    assert link != other
    opened = [use_up(served.port, each) for each in (link, other, link)]
    assert opened == [303, 303, 410]


def test_login_without_a_bridge_is_one_line_with_the_remedy(machine: Machine) -> None:
    done = machine.run("login")

    assert done.returncode == 1
    assert done.stdout == ""
    assert "agent-bridge serve" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_serve_in_a_terminal_ends_with_what_to_open_and_opens_it(machine: Machine) -> None:
    programs = machine.folder / "programs"
    programs.mkdir()
    os.mkfifo(seen := machine.folder / "seen")
    (programs / "xdg-open").write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    (programs / "xdg-open").chmod(0o755)
    machine.settings |= {"PATH": f"{programs}:{os.environ['PATH']}", "DISPLAY": ":0"}
    person, terminal = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "serve"],
        env=machine.environment,
        cwd=machine.folder / "cwd",
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as bridge:
        os.close(terminal)
        shown = seen_in(person, until="minutes)")
        opened = seen.read_text()
        answered = machine.run("ask", "demo", "say hello", "-q")
        bridge.terminate()
        shown += seen_in(person)
    os.close(person)

    lines = [line for line in shown.splitlines() if line and "stopping: " not in line]
    assert lines[-2] == f"Open {opened} (works once, for 15 minutes)"
    assert lines[-1].startswith("Or, if your browser does not find that name, http://127.0.0.1:")
    assert f"{COMMAND} ask demo" in shown
    assert "uvicorn" not in shown
    assert answered.stdout == "hello\n"


@pytest.mark.slow
def test_serve_says_where_it_is_and_a_second_signal_ends_it_at_once(machine: Machine) -> None:
    machine.settings |= {"BRIDGE_ADMIN_TOKEN": CANARY, "GRACE_SECONDS": "3600"}
    with machine.started("serve") as bridge:
        shown = bridge.wait_for("Stop  ", "stdout")
        address = f"http://127.0.0.1:{machine.port}"
        with machine.started("ask", "demo", "plan begin\nhold never") as asking:
            asking.wait_for("✓ begin")
            bridge.process.send_signal(signal.SIGTERM)
            bridge.wait_for("stopping: waiting up to 3600 s for running turns")
            asked, _, lost = asking.end()
        bridge.process.send_signal(signal.SIGINT)
        status, out, err = bridge.end()
    answered = machine.run("ask", "demo", "say hello")
    listed = machine.run("sessions", "list", "--state", "queued")

    assert f"Listening on {address}\n" in shown
    assert "demo (default)" in shown
    assert (asked, "went away" in lost) == (1, True)
    assert status == 0
    assert CANARY not in shown + out + err
    assert answered.stdout == "hello\n"
    assert "plan begin" in listed.stdout, "a question begins nothing that an earlier run left"


@pytest.mark.long
def test_doctor_finds_what_is_wrong_and_tells_no_secret(machine: Machine) -> None:
    agents = {
        "claude": {"driver": "claude", "env": {"PRIVATE_TOKEN": CANARY}},
        "talker": {"command": ["no-such-agent", CANARY], "env_passthrough": ["TALKER_API_KEY"]},
    }
    settings = {
        "AGENTS_JSON": json.dumps(agents),
        "ANTHROPIC_API_KEY": CANARY,
        "TALKER_API_KEY": CANARY,
        "BRIDGE_ADMIN_TOKEN": CANARY,
        "PATH": "/usr/bin:/bin",
    }

    checked = machine.run("doctor", settings=settings)

    assert checked.returncode == 1
    assert "'no-such-agent' was not found on PATH" in checked.stdout
    assert "claude: gets ANTHROPIC_API_KEY, PRIVATE_TOKEN" in checked.stdout
    assert CANARY not in checked.stdout + checked.stderr


@pytest.mark.long
def test_the_package_runs_as_a_module(machine: Machine) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "app", "--version"],
        env=machine.environment,
        cwd=machine.folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert told.stdout.startswith("agent-bridge ")
