"""Where `ask` works: what options name, what is remembered for a work tree, and how it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli.ask import WORK_TREES, Where, choose_named, choose_usual
from app.cli.conversation import describe_place
from app.errors import Conflict


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder of a git work tree."""
    tree = tmp_path / "project"
    (tree / ".git").mkdir(parents=True)
    (tree / "src").mkdir()
    monkeypatch.chdir(tree / "src")
    return tree


def choice(**options: object) -> str | None:
    plain: dict[str, object] = {"repository": None, "folder": None, "here": False, "scratch": False}
    return choose_named(**{**plain, **options})  # type: ignore[arg-type]  # as the command line gives them


def test_options_name_the_place(tree: Path, tmp_path: Path) -> None:
    assert choice() is None
    assert choice(here=True) == f"folder:{tree}"
    assert choice(folder=Path("..")) == f"folder:{tree}"
    assert choice(repository="acme/widget") == "acme/widget"
    assert choice(scratch=True) == "none"
    with pytest.raises(Conflict, match="there is no folder"):
        choice(folder=tmp_path / "nowhere")


def test_here_outside_of_a_work_tree_is_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert choice(here=True) == f"folder:{tmp_path}"
    assert choose_usual(tmp_path / "data", None) == Where()


@pytest.mark.parametrize("answer", [True, False])
def test_a_person_is_asked_once_for_each_work_tree(
    tree: Path, tmp_path: Path, *, answer: bool
) -> None:
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return answer

    first = choose_usual(tmp_path / "data", confirm)
    again = choose_usual(tmp_path / "data", None)

    assert asked == [f"Work in {tree}?"]
    assert first == again == Where(f"folder:{tree}" if answer else None)


def test_without_a_person_nothing_is_assumed_and_the_way_is_said(
    tree: Path, tmp_path: Path
) -> None:
    assert choose_usual(tmp_path, None) == Where(hint=f"to work in {tree}, add --here")


@pytest.mark.parametrize("kept", ["", "[]", '{"x": "yes"}'])
def test_a_damaged_memory_is_only_forgotten(tree: Path, tmp_path: Path, kept: str) -> None:
    (tmp_path / WORK_TREES).write_text(kept)

    assert choose_usual(tmp_path, lambda _question: True) == Where(f"folder:{tree}")
    assert json.loads((tmp_path / WORK_TREES).read_text()) == {str(tree): True}


def test_the_place_is_said_in_words() -> None:
    assert describe_place(None) == ""
    assert describe_place("none") == "Working in an empty folder"
    assert describe_place("folder:/a/b") == "Working in /a/b"
    assert describe_place("acme/widget") == "Working in a clone of acme/widget"
