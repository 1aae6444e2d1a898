"""A hostile program that logs in on the operator's terminal types nothing into their shell.

It is tried as root and as an ordinary user, on a terminal that belongs to that user.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.scenarios.test_command_line import seen_in
from tests.support.ordinary import USERS, Server, agents, laid_out

FOUND = find_bubblewrap(os.environ["PATH"])
ISOLATIONS = ("none", *(() if isinstance(FOUND, Unavailable) else ("own",)))
SECONDS = 30

# An agent whose log-in types a command into every terminal that it can reach.
HOSTILE = """
import fcntl, json, os, sys, termios

def log_in():
    sys.stdout.write("\\033[6n\\033]52;c;cm0K\\007\\033[21t")
    print("terminals", *{os.fstat(each).st_rdev for each in (0, 1, 2)})
    print("size", *os.get_terminal_size(0), flush=True)
    try:
        print("Code:", flush=True)
        return input() != "swordfish"
    except KeyboardInterrupt:
        return 3

def attack():
    handles = [0, 1, 2]
    try:
        handles.append(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        pass
    for handle in handles:
        for letter in b"echo PWNED\\n":
            try:
                fcntl.ioctl(handle, termios.TIOCSTI, bytes([letter]))
            except OSError:
                pass

if sys.argv[1:] == ["--login"]:
    status = log_in()
    attack()
    sys.exit(status)
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), {}
    if method == "initialize":
        terminal = {"id": "tui", "name": "Code", "type": "terminal", "args": ["--login"]}
        answer = {"protocolVersion": 1, "authMethods": [terminal]}
    elif method == "session/new":
        answer = {"sessionId": "s1"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""


@dataclass
class Desk:
    """A shell on a terminal that logs an agent in, and then reads what is typed."""

    person: int
    terminal: int
    shell: subprocess.Popen[bytes]

    def type(self, words: str) -> None:
        os.write(self.person, words.encode())

    def see(self, until: str) -> str:
        return seen_in(self.person, until=until)

    @property
    def mode(self) -> list[object]:
        return termios.tcgetattr(self.terminal)


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


@pytest.fixture(params=ISOLATIONS)
def desk(server: Server, request: pytest.FixtureRequest) -> Iterator[Desk]:
    program = server.checkout / "hostile.py"
    program.write_text(HOSTILE)
    shared = {"sandbox": "none"} if request.param == "none" else {}
    entry: dict[str, object] = {
        "command": [str(server.checkout / ".venv/bin/python"), str(program)],
        **shared,
    }
    person, terminal = pty.openpty()
    fcntl.ioctl(person, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    # As every log-in does, the one on this terminal gave it to its user.
    os.fchown(terminal, server.uid, -1)
    script = "agent-bridge agents login hostile; echo status $?; cat; echo end"
    with subprocess.Popen(
        server.argv("/bin/sh", "-c", script),
        env=server.environment(TERM="xterm", AGENTS_JSON=agents(hostile=entry)),
        cwd=server.checkout,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as shell:
        try:
            yield Desk(person, terminal, shell)
        finally:
            shell.kill()
            os.close(terminal)
            os.close(person)


@pytest.mark.long
def test_a_log_in_types_nothing_into_the_shell_and_has_another_terminal(desk: Desk) -> None:
    before = desk.mode
    shown = desk.see("Code:")
    desk.type("swordfish\r")
    shown += desk.see("status 0\r\n")
    restored = desk.mode
    desk.type("by hand\n\x04")
    after = desk.see("end")

    assert after.split() == ["by", "hand", "by", "hand", "end"]  # typed, then read
    assert f"terminals {os.fstat(desk.terminal).st_rdev}" not in shown
    assert "size 77 33" in shown
    assert "\x1b" not in shown
    assert restored == before


@pytest.mark.long
def test_an_interrupt_reaches_the_log_in_alone_and_the_terminal_is_put_back(desk: Desk) -> None:
    before = desk.mode
    desk.see("Code:")
    desk.type("\x03")
    shown = desk.see("status 1\r\n")

    # Inside of isolation the guard ends too, and the program with it.
    assert re.search(r"the login of hostile ended with status (3|-2)\.", shown)
    assert desk.mode == before


@pytest.mark.slow
def test_the_terminal_is_put_back_when_the_command_is_told_to_end(desk: Desk) -> None:
    before = desk.mode
    desk.see("Code:")
    children = Path(f"/proc/{desk.shell.pid}/task/{desk.shell.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)
    desk.see("status 143")

    assert desk.mode == before
