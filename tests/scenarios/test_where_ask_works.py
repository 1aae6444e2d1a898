"""Where `ask` works: the work tree it is started in, a repository, a folder, or none of them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.test_command_line import SECONDS, Done, Machine, seen_in
from tests.support.git_server import GitServer
from tests.support.nursery import COMMAND, nursery

PWD = "run pwd"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """Serve one repository that everyone may read."""
    with GitServer(tmp_path_factory.mktemp("hub")) as server:
        server.create("acme/widget", {"README.md": "A widget.\n"})
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, hub: GitServer) -> Iterator[Machine]:
    """Start a bridge on a person's machine, next to a project of theirs."""
    machine = Machine(tmp_path_factory.mktemp("served"), settings={"GITHUB_GIT_URL": hub.url})
    with machine.serving():
        yield machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def project(machine: Machine, name: str = "project") -> Path:
    """Make a git work tree with a folder in it."""
    made = machine.folder / name
    subprocess.run(["git", "init", "--quiet", made], check=True, timeout=SECONDS)
    (made / "src").mkdir(exist_ok=True)
    return made


def ask(machine: Machine, words: str, *options: str, cwd: Path | None = None) -> Done:
    """Ask the demo agent something in a folder, and allow all of it."""
    return nursery().run(
        *("ask", "demo", words, "--allow", "once", *options),
        environment=machine.environment,
        cwd=cwd or machine.folder / "cwd",
    )


def first_line(done: Done) -> str:
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[0]


@pytest.mark.slow
def test_here_means_the_work_tree_and_without_it_a_script_is_told_how(served: Machine) -> None:
    tree = project(served)

    here = ask(served, PWD, "--here", cwd=tree / "src")
    unsaid = ask(served, PWD, cwd=tree / "src")

    assert first_line(here) == f"Working in {tree}"
    assert f"{tree}\n" in here.stdout
    assert first_line(unsaid) == f"Working in an empty folder; to work in {tree}, add --here"
    assert str(tree) not in unsaid.stdout


@pytest.mark.slow
def test_a_repository_is_cloned_and_one_that_is_not_there_is_one_line(served: Machine) -> None:
    cloned = ask(served, "run cat README.md", "--repo", "acme/widget")
    missing = ask(served, PWD, "--repo", "acme/nothing")

    assert first_line(cloned) == "Working in a clone of acme/widget"
    assert "A widget." in cloned.stdout
    assert missing.returncode == 1
    assert "acme/nothing can't be opened" in missing.stderr
    assert "Check the name" in missing.stderr


@pytest.mark.long
def test_a_folder_can_be_named_and_one_of_the_system_is_refused(served: Machine) -> None:
    folder = served.folder / "plain"
    folder.mkdir()

    named = ask(served, "write notes.txt hello", "--folder", str(folder))
    system = ask(served, PWD, "--folder", "/etc")

    assert first_line(named) == f"Working in {folder}"
    assert (folder / "notes.txt").read_text() == "hello\n"
    assert (system.returncode, "belongs to the system" in system.stderr) == (1, True)


@pytest.mark.long
def test_a_conversation_keeps_its_place(served: Machine) -> None:
    tree = project(served, "kept")
    ask(served, PWD, "--here", "--thread", "kept", cwd=tree)

    further = ask(served, PWD, "--thread", "kept")
    elsewhere = ask(served, PWD, "--thread", "kept", "--scratch")

    assert first_line(further) == f"Working in {tree}"
    assert elsewhere.returncode == 1
    assert "This conversation works elsewhere" in elsewhere.stderr


@pytest.mark.long
def test_a_person_is_asked_once_for_a_work_tree_and_no_bridge_is_needed(machine: Machine) -> None:
    tree = project(machine)
    person, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            [COMMAND, "ask", "demo", PWD, "--allow", "once"],
            env=machine.environment | {"TERM": "xterm"},
            cwd=tree,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=terminal,
        ) as process:
            os.close(terminal)
            assert process.stdout is not None
            seen_in(person, until=f"Work in {tree}?")
            os.write(person, b"\n")
            shown = seen_in(person)
            out = process.stdout.read().decode()
            assert process.wait(SECONDS) == 0, shown
    finally:
        os.close(person)

    assert f"Working in {tree}" in shown
    assert f"{tree}\n" in out
    kept = json.loads((machine.folder / "data" / "work-trees.json").read_text())
    assert kept == {str(tree): True}
    assert first_line(ask(machine, PWD, cwd=tree)) == f"Working in {tree}"
