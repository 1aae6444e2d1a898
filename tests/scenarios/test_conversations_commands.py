"""Conversations on the command line: real commands to a bridge that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.test_command_line import Machine
from tests.support import canary

# Many commands, each a process of its own, on a machine that many share.
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("served"))
    with machine.serving():
        yield machine


def run(machine: Machine, *words: str, stdin: str = "") -> str:
    done = machine.run("conversations", *words, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed(machine: Machine, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run(machine, *words, "--json"))
    return found


def begin(machine: Machine, word: str) -> str:
    """Begin a conversation; returns its number."""
    assert machine.run("ask", f"say {word}", "-q").stdout.strip() == word
    return str(listed(machine, "search", word)[0]["id"])


@pytest.mark.long
def test_a_conversation_is_renamed_pinned_archived_and_found_from_a_terminal(
    served: Machine,
) -> None:
    number = begin(served, "plover")

    run(served, "rename", number, "Birds of the reeds")
    run(served, "pin", number)
    assert "* Birds of the reeds" in run(served, "list")
    run(served, "archive", number)
    assert listed(served, "list") == []
    assert [each["title"] for each in listed(served, "search", "REEDS")] == ["Birds of the reeds"]
    run(served, "unarchive", number)
    assert [each["id"] for each in listed(served, "latest", "demo")] == [int(number)]


@pytest.mark.slow
def test_a_conversation_is_exported_forked_and_deleted_from_a_terminal(served: Machine) -> None:
    word = "heron-canary"
    number = begin(served, word)

    assert f"say {word}" in run(served, "show", number)
    rows = json.loads(run(served, "export", number, "--format", "json"))["transcript"]
    run(served, "fork", number, "--after", str(rows[0]["id"]))
    fork = next(each for each in listed(served, "list") if each["forked_from"])
    assert fork["title"] == f"say {word} (fork)"
    kept = served.run("conversations", "delete", number, stdin="n\n")
    assert kept.returncode == 1
    assert "1 messages, 1 turns" in kept.stderr

    assert run(served, "clear", str(fork["id"]), "--yes") == ""
    run(served, "delete", number, "--yes")

    assert canary.find(served.folder / "data", word) == []
