"""The registry on the command line: real commands to a bridge that runs, and its file."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.test_command_line import CANARY, Machine, seen_in
from tests.support.bridge import DEMO
from tests.support.nursery import COMMAND

ENTRY = {"command": DEMO, "sandbox": "none"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("served"))
    with machine.started("serve") as bridge:
        bridge.wait_for("Stop  ", "stdout")
        yield machine
        bridge.process.terminate()
        assert bridge.end()[0] == 0


def add(machine: Machine, name: str, *words: str) -> None:
    added = machine.run("agents", "add", name, "--json", "-", *words, stdin=json.dumps(ENTRY))
    assert added.returncode == 0, added.stderr


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
    [
        (("add", "A B", "--driver", "demo"), "lowercase letters"),
        (("add", "bad"), "Add command or driver"),
        (("add", "bad", "--driver", "demo", "--set", "modle=x"), "Did you mean"),
        (("add", "bad", "--driver", "demo", "--set", "model"), "Write key=value"),
        (("add", "bad", "--json", "/nonexistent"), "/nonexistent"),
        (("add", "demo", "--driver", "demo"), "already"),
        (("set", "demo", "model=x"), "AGENTS_JSON"),
        (("set", "nobody", "model=x"), "there is no agent 'nobody'"),
        (("unset", "demo", "model=x"), "Write the key alone"),
        (("rename", "demo", "other"), "AGENTS_JSON"),
        (("remove", "demo", "--yes"), "AGENTS_JSON"),
        (("default", "nobody"), "there is no agent 'nobody'"),
        (("show", "../agents"), "there is no agent"),
        (("export", "nobody"), "there is no agent 'nobody'"),
    ],
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
