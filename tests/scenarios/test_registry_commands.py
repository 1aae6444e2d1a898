"""The registry on the command line: real commands to a bridge that runs, and its file."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.scenarios.test_command_line import CANARY, Machine, Running, seen_in
from tests.support.bridge import DEMO
from tests.support.nursery import COMMAND
from tests.support.variants import quick

TOKEN = "an-admin-token-of-these-tests"
ENTRY = {"command": DEMO, "sandbox": "none"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("served"))
    with machine.serving():
        yield machine


def add(machine: Machine, name: str, *words: str) -> None:
    added = machine.run("agents", "add", name, "--json", "-", *words, stdin=json.dumps(ENTRY))
    assert added.returncode == 0, added.stderr


@pytest.mark.long
def test_an_agent_is_added_changed_shown_and_never_tells_its_key(served: Machine) -> None:
    add(served, "helper", "--env", f"HELPER_KEY={CANARY}", "--set", "display_name=The Helper")
    changed = served.run(
        "agents", "set", "helper", "limits.max_turns=2", "env.LEVEL=3", "model=macaw"
    )
    shown = served.run("agents", "show", "helper")
    as_json = served.run("agents", "show", "helper", "--json")
    asked = served.run("ask", "helper", "say hi", "-q")

    assert changed.stderr == "helper was changed. This holds from its next turn.\n"
    rows = dict(line.split(None, 1) for line in shown.stdout.splitlines())
    assert rows["env"].strip() == "HELPER_KEY, LEVEL (values are not shown)"
    assert rows["limits"].strip() == '{"max_turns": 2}'
    found = json.loads(as_json.stdout)
    assert found["entry"]["env"] == ["HELPER_KEY", "LEVEL"]
    assert found["entry"]["model"] == "macaw"
    assert asked.returncode == 0, asked.stderr
    assert CANARY not in shown.stdout + as_json.stdout

    served.run("agents", "unset", "helper", "env.LEVEL", "limits", "model")

    entry = json.loads(served.run("agents", "show", "helper", "--json").stdout)["entry"]
    assert entry["env"] == ["HELPER_KEY"]
    assert not {"limits", "model"} & set(entry)


@pytest.mark.long
def test_the_files_of_an_agent_are_written_shown_and_brought_back(served: Machine) -> None:
    def files(*words: str, stdin: str = "") -> tuple[int, str, str]:
        done = served.run("agents", "files", *words, stdin=stdin)
        return done.returncode, done.stdout, done.stderr

    assert files("demo", "put", "SOUL.md", stdin="Be kind.")[0] == 0
    assert files("-", "put", "USER.md", stdin="The team.")[0] == 0
    listed = [line.split() for line in files("demo")[1].splitlines()]
    assert [row[:3] for row in listed] == [["FILE", "SIZE", "CHANGED"], ["SOUL.md", "8", "bytes"]]
    assert "undo SOUL.md" in files("demo", "remove", "SOUL.md")[2]
    assert files("demo", "undo", "SOUL.md") == (0, "", "SOUL.md is as before.\n")
    assert files("demo", "show", "SOUL.md") == (0, "Be kind.", "")
    status, out, words = files("demo", "put", "IDENTITY.md", stdin="---\nnmae: x\n---\n")
    assert (status, out, words.count("\n")) == (1, "", 1)
    assert "Line 2: this is none of the keys." in words
    assert files("demo", "show", "../x") == (1, "", "agent-bridge: there is no file '../x'\n")


def test_entries_leave_without_secrets_and_come_back(served: Machine) -> None:
    add(served, "mover", "--env", f"MOVER_KEY={CANARY}", "--set", "description=moves")

    exported = served.run("agents", "export", "mover", "demo")

    entries = json.loads(exported.stdout)
    assert entries["mover"] == {**ENTRY, "description": "moves"}
    assert entries["demo"] == {**ENTRY, "default": True}
    assert exported.stderr == "mover: left out env.MOVER_KEY.\n"
    assert CANARY not in exported.stdout

    given = {
        "second": {"extends": "mover", "env": {"SECOND_KEY": CANARY}},
        "mover": {"description": "moved"},
        "demo": {"description": "of the settings"},
        "third": {"command": DEMO, "sandbox": "nun"},
    }
    imported = served.run("agents", "import", "-", stdin=json.dumps(given))

    assert imported.returncode == 1
    lines = dict(line.split(": ", 1) for line in imported.stderr.splitlines())
    assert (lines["second"], lines["mover"]) == ("added.", "changed.")
    assert "AGENTS_JSON" in lines["demo"]
    assert "sandbox" in lines["third"]
    mover = json.loads(served.run("agents", "show", "mover", "--json").stdout)
    assert (mover["description"], mover["entry"]["env"]) == ("moved", ["MOVER_KEY"])
    assert CANARY not in imported.stderr


@pytest.mark.long
def test_a_name_changes_and_the_default_answers_what_has_no_name(served: Machine) -> None:
    add(served, "first-name")

    renamed = served.run("agents", "rename", "first-name", "second-name")
    chosen = served.run("agents", "default", "second-name")
    asked = served.run("ask", "say hello there")
    served.run("agents", "default", "demo")

    assert renamed.returncode == chosen.returncode == 0
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.strip() == "hello there"
    assert "second-name: done" in asked.stderr


@pytest.mark.long
def test_removal_asks_first_and_says_what_it_means(served: Machine) -> None:
    add(served, "leaver")
    assert served.run("ask", "leaver", "say hi", "-q").returncode == 0

    unasked = served.run("agents", "remove", "leaver")
    kept, question = remove_in_a_terminal(served, "leaver", "n\n")
    gone, _ = remove_in_a_terminal(served, "leaver", "y\n")

    assert unasked.returncode == 1
    assert "--yes" in unasked.stderr
    assert "It has 1 session:" in question
    assert "its home is archived" in question
    assert kept == gone == 0
    shown = served.run("agents", "show", "leaver")
    assert (shown.returncode, shown.stderr.count("\n")) == (1, 1)
    assert "was removed" in shown.stderr


def test_an_agent_that_another_one_extends_stays(served: Machine) -> None:
    add(served, "base")
    served.run("agents", "add", "child", "--set", "extends=base")
    assert served.run("ask", "base", "say hi", "--thread", "kept", "-q").returncode == 0

    refused = served.run("agents", "remove", "base", "--yes")

    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "'child'" in refused.stderr
    assert served.run("ask", "base", "recall", "--thread", "kept", "-q").stdout.strip()


def remove_in_a_terminal(machine: Machine, name: str, answer: str) -> tuple[int, str]:
    person, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, "agents", "remove", name],
            env=machine.environment | {"TERM": "xterm"},
            cwd=machine.folder / "cwd",
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            shown = seen_in(person, until="[y/N]: ")
            os.write(person, answer.encode())
            seen_in(person)
            return process.wait(60), shown
    finally:
        os.close(person)


@pytest.mark.parametrize(
    ("words", "says"),
    quick(
        4,
        [
            (("add", "A B", "--driver", "demo"), "lowercase letters"),
            (("add", "bad"), "Add command, driver or url"),
            (("add", "bad", "--driver", "demo", "--set", "modle=x"), "Did you mean"),
            (("add", "bad", "--driver", "demo", "--set", "model"), "Write key=value"),
            (("add", "bad", "--json", "/nonexistent"), "/nonexistent"),
            (("add", "demo", "--driver", "demo"), "already"),
            (("set", "demo", "model=x"), "AGENTS_JSON"),
            (("set", "absent", "model=x"), "there is no agent 'absent'"),
            (("unset", "demo", "model=x"), "Write the key alone"),
            (("rename", "demo", "other"), "AGENTS_JSON"),
            (("remove", "demo", "--yes"), "AGENTS_JSON"),
            (("default", "absent"), "there is no agent 'absent'"),
            (("show", "../agents"), "there is no agent"),
            (("export", "absent"), "there is no agent 'absent'"),
        ],
    ),
)
def test_what_is_refused_is_one_line_and_changes_nothing(
    served: Machine, words: tuple[str, ...], says: str
) -> None:
    before = served.run("agents", "export").stdout

    refused = served.run("agents", *words)

    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert says in refused.stderr
    assert served.run("agents", "export").stdout == before


def test_without_a_bridge_it_is_said_how_to_start_one(tmp_path: Path) -> None:
    refused = Machine(tmp_path).run("agents", "add", "helper", "--driver", "demo")

    assert refused.returncode == 1
    assert "agent-bridge serve`" in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.long
def test_stored_agents_are_known_without_a_bridge(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    with machine.serving():
        add(machine, "first", "--driver", "demo", "--env", f"FIRST_KEY={CANARY}")
        assert machine.run("ask", "first", "say hi", "--thread", "t1", "-q").returncode == 0
        machine.run("agents", "rename", "first", "second")
        machine.run("agents", "default", "second")

    asked = machine.run("ask", "recall", "--thread", "t1", "-q")
    probed = machine.run("agents", "probe", "second")
    listed = json.loads(machine.run("agents", "list", "--json").stdout)
    sessions = json.loads(machine.run("sessions", "list", "--agent", "second", "--json").stdout)
    login = machine.run("agents", "login", "second")
    manifest = machine.run("manifest", "slack", "second")
    doctor = machine.run("doctor")
    unknown = machine.run("ask", "first", "say hi")

    assert (asked.returncode, "hi" in asked.stdout) == (0, True), asked.stderr
    assert probed.returncode == 0, probed.stderr
    assert "data/agents/first/card.json" in probed.stderr
    assert [(each["name"], each["default"], each["source"]) for each in listed] == [
        ("demo", False, "environment"),
        ("second", True, "stored"),
    ]
    assert listed[1]["probe"] == "11 of 11 work"
    assert [(each["agent"], each["thread"]) for each in sessions] == [("second", "t1")]
    assert "second offers no login" in login.stderr
    assert manifest.returncode == 0, manifest.stderr
    assert "default: second" in doctor.stdout
    assert "second: gets FIRST_KEY" in doctor.stdout
    assert "there is no agent 'first'" in unknown.stderr
    assert CANARY not in doctor.stdout + probed.stdout + manifest.stdout


@pytest.fixture
def filed(tmp_path: Path) -> Iterator[tuple[Machine, Path, Running]]:
    """Start a bridge whose agents are in a file."""
    file = tmp_path / "agents" / "agents.json"
    file.parent.mkdir(mode=0o700)
    write(file, demo=ENTRY, old=ENTRY)
    # Without bubblewrap.
    settings = {"AGENTS_JSON_FILE": str(file), "BRIDGE_ADMIN_TOKEN": TOKEN, "PATH": str(tmp_path)}
    machine = FiledMachine(tmp_path, settings)
    with machine.serving() as bridge:
        bridge.seen = b""
        yield machine, file, bridge


class FiledMachine(Machine):
    """A machine whose agents are in a file."""

    @property
    def environment(self) -> dict[str, str]:
        """All that a command gets to know."""
        return {name: text for name, text in super().environment.items() if name != "AGENTS_JSON"}


def write(file: Path, **entries: object) -> None:
    file.write_text(json.dumps(entries))
    file.chmod(0o600)


@pytest.mark.slow
def test_the_file_is_read_again_on_hup(filed: tuple[Machine, Path, Running]) -> None:
    machine, file, bridge = filed
    assert machine.run("ask", "old", "say remember", "--thread", "t1", "-q").returncode == 0

    write(file, demo={**ENTRY, "description": "changed"}, new=ENTRY)
    bridge.process.send_signal(signal.SIGHUP)
    bridge.wait_for("the agents were read again")

    asked = machine.run("ask", "new", "say hello", "-q")
    assert (asked.returncode, asked.stdout) == (0, "hello\n"), asked.stderr
    listed = json.loads(machine.run("agents", "list", "--json").stdout)
    assert {each["name"]: each["description"] for each in listed} == {"demo": "changed", "new": ""}
    (session,) = json.loads(machine.run("sessions", "list", "--state", "removed", "--json").stdout)
    assert (session["agent"], session["thread"]) == ("old", "t1")
    assert "remember" in machine.run("sessions", "show", str(session["id"])).stdout

    bridge.seen = b""
    file.write_text(f'{{"demo": "{CANARY}"')
    bridge.process.send_signal(signal.SIGHUP)
    told = bridge.wait_for("nothing changed: AGENTS_JSON: ")

    assert CANARY not in told
    write(file, demo=ENTRY)  # for the command alone: the bridge has not read it
    assert machine.run("ask", "new", "say still here", "-q").stdout == "still here\n"


@pytest.mark.long
def test_reload_reads_the_file_and_says_what_came_and_went(
    filed: tuple[Machine, Path, Running],
) -> None:
    machine, file, _ = filed

    write(file, demo=ENTRY, new=ENTRY)
    reloaded = machine.run("agents", "reload")
    write(file, demo={**ENTRY, "sandbox": "nun"})
    refused = machine.run("agents", "reload")
    answer = httpx.post(
        f"http://127.0.0.1:{machine.port}/api/v1/agents/reload",
        headers={"Authorization": f"Bearer {TOKEN}"},
        trust_env=False,
    )

    assert reloaded.returncode == 0, reloaded.stderr
    lines = reloaded.stderr.splitlines()
    assert lines[:2] == ["new: added.", "old: removed."]
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "AGENTS_JSON: agent 'demo': sandbox" in refused.stderr
    assert answer.status_code == 422
    assert refused.stderr == f"agent-bridge: {answer.json()['detail']}\n"


@pytest.mark.slow
def test_a_file_that_cannot_be_applied_is_forgotten(
    filed: tuple[Machine, Path, Running],
) -> None:
    machine, file, bridge = filed
    write(file, demo=ENTRY, old=ENTRY, apart={"command": DEMO, "sandbox": "bubblewrap"})
    bridge.process.send_signal(signal.SIGHUP)
    bridge.wait_for("nothing changed: ")
    write(file, demo=ENTRY, old=ENTRY)
    add(machine, "other")

    listed = json.loads(machine.run("agents", "list", "--json").stdout)
    assert [each["name"] for each in listed] == ["demo", "old", "other"]
    assert machine.run("ask", "old", "recall", "--thread", "t1", "-q").returncode == 0


@pytest.mark.slow
def test_a_bridge_ends_with_the_terminal_it_was_started_in(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    person, terminal = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "serve", "--no-open"],
        env=machine.environment,
        cwd=machine.folder / "cwd",
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        try:
            os.close(terminal)
            seen_in(person, until="Open http")
            process.send_signal(signal.SIGHUP)
            seen_in(person, until="the agents were read again")
            os.close(person)
            # Not killed by the signal; what it still has to say reaches no one.
            assert process.wait(60) >= 0
        finally:
            process.kill()
