"""What stands in a tool card: short, honest, and with nothing hidden."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from app.server.page.view.cards import DIFF_LINES, LINES, change, excerpt, short_path
from app.server.page.view.cards import given as given_to
from app.server.page.view.diffs import Row
from app.server.page.view.highlight import visible

TAG = re.compile("</?(?:mark|span[^>]*)>")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m and \x1b]8;;https://x.example\x07link", "red and link"),
        ("rm -rf \u202e/ gnp.", "rm -rf \ufffd/ gnp."),
        ("zero\u200bwidth\ufeff", "zero\ufffdwidth\ufffd"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("overwritten\rshown", "overwritten\ufffdshown"),
        ("👩\u200d💻 ok", "👩\u200d💻 ok"),
    ],
)
def test_what_hides_or_reorders_is_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"command": "ls -l", "cwd": "/x"}, "ls -l"),
        ({"command": ["git", "log"]}, "git log"),
        ({"path": "a.py", "lines": [1, 2]}, "path: a.py\nlines: [1, 2]"),
        ("plain", "plain"),
        ([1, {"a": None}], '[1, {"a": null}]'),
        (None, ""),
        ({}, ""),
    ],
)
def test_what_a_tool_was_given_is_written_plainly(value: Any, words: str) -> None:
    assert given_to(value) == words


def test_a_file_that_the_title_names_is_not_named_again() -> None:
    path = "/data/workspaces/12-claude-1/src/a.py"

    assert given_to({"file_path": path, "limit": 5}, "Read src/a.py") == "limit: 5"
    assert given_to({"file_path": path}, "Read") == "file_path: src/a.py"


def test_a_long_text_is_shown_in_part_and_says_how_much_is_left() -> None:
    text = "\n".join(map(str, range(LINES + 40)))

    assert excerpt(text).left == 40
    assert excerpt(text, whole=True).text == text
    assert excerpt("x" * 100_000).left == 1
    assert excerpt("short\n").left == 0


def test_a_file_is_named_as_it_stands_in_its_workspace() -> None:
    assert short_path("/data/workspaces/12-claude/src/a.py") == "src/a.py"
    assert short_path("/etc/hosts") == "/etc/hosts"


def test_a_change_shows_its_surroundings_and_leaves_out_the_rest() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:20], "new", *old[21:]]

    made = change({"path": "a", "old": "\n".join(old), "new": "\n".join(new)})

    assert (made.added, made.removed, made.left) == (1, 1, 0)
    assert [unescape(TAG.sub("", line.html)) for line in made.lines] == [
        *old[17:20],
        "line 20",
        "new",
        *old[21:24],
    ]


def test_two_changes_far_apart_have_a_gap_between_them() -> None:
    old = "\n".join(map(str, range(40)))
    made = change({"path": "a", "old": old, "new": old.replace("5\n6", "x\n6").replace("35", "y")})

    assert [line.kind for line in made.lines].count("gap") >= 1


def test_a_new_file_is_all_added_and_an_equal_one_is_empty() -> None:
    assert change({"path": "a", "old": None, "new": "a\nb\n"}).lines == (
        Row("add", Markup("a"), 0, 1),
        Row("add", Markup("b"), 0, 2),
    )
    assert change({"path": "a", "old": "a", "new": "a"}).lines == ()


def test_a_huge_change_is_quick_and_shown_in_part() -> None:
    made = change({"path": "a", "old": "a\n" * 50_000, "new": "b\n" * 50_000})

    assert (made.added, made.removed) == (50_000, 50_000)
    assert len(made.lines) == DIFF_LINES
    assert made.left == 100_000 - DIFF_LINES


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_the_lines_of_a_change_lead_from_old_to_new(old: list[str], new: list[str]) -> None:
    made = change({"path": "p", "old": "\n".join(old), "new": "\n".join(new)}, whole=True)

    assert made.added - made.removed == len(new) - len(old)
    added = [str(line.html) for line in made.lines if line.kind == "add"]
    assert added == [text for text in added if text in new]
