"""What an "always" covers, word for word, and what it never does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.core.consent.grants import ALWAYS, ALWAYS_EDITS, offer_grants, scopes_of
from app.model import ask_wording as wording
from app.model.calls import call_of
from app.model.updates import AskOption, AskRequest, FileDiff, GrantScope, ToolUpdate

HOME = ("/w", "/real/w")
ONCE = AskOption("a", "Allow once", "allow_once")
REJECT = AskOption("r", "Reject", "reject_once")

pieces = st.sampled_from(
    [
        "npm",
        "test",
        " ",
        "  ",
        "\t",
        "\n",
        ";",
        "&&",
        "|",
        "'",
        '"',
        "\\",
        "$(id)",
        "`id`",
        "T",
        "é",
    ]
)
commands = st.one_of(st.text(), st.lists(pieces).map("".join)).filter(lambda text: text.strip())


def scopes(*claims: ToolUpdate) -> Any:
    return scopes_of(replace(call_of(*claims, roots=HOME), home=HOME), *claims)


def run(command: object, kind: str | None = "execute", **more: object) -> ToolUpdate:
    return ToolUpdate("c", "Run it", kind, input={"command": command, **more})


def digest(*claims: ToolUpdate) -> str:
    return str(scopes(*claims)[ALWAYS].digest)


@given(commands, commands)
def test_a_granted_command_never_covers_another_one(granted: str, other: str) -> None:
    assume(granted != other)

    assert digest(run(granted)) != digest(run(other))
    assert digest(run(granted)) == digest(run(granted))


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_command_in_words_and_the_same_as_one_text_are_two_commands(words: list[str]) -> None:
    line = " ".join(words)
    assume(line.strip())

    assert digest(run(words)) != digest(run(line))
    assert digest(run(words)) != digest(run([*words, ""]))
    assert digest(run(["sh", "-c", line])) != digest(run(line))


@pytest.mark.parametrize(
    "other",
    [
        run("npm test", cwd="/elsewhere"),
        run("npm test", env={"PATH": "/evil"}),
        run("npm test", run_in_background=True),
        run("npm test", args=["--", "evil"]),
    ],
)
def test_where_and_how_a_command_runs_is_part_of_it(other: ToolUpdate) -> None:
    assert digest(run("npm test")) != digest(other)


def test_why_a_command_runs_is_not_part_of_it() -> None:
    again = run("npm test", description="Run the tests again", timeout=5, call_id="2")

    assert digest(run("npm test", description="Run the tests")) == digest(again)


def test_a_call_that_says_two_things_can_be_granted_neither_way() -> None:
    assert scopes(run("ls"), run("rm -rf /")) == {}
    assert scopes(run("ls"), run("ls", cwd="/elsewhere")) == {}
    assert scopes(run("ls", kind="read")) == {}
    assert scopes(ToolUpdate("c", "x", "execute", input={"command": {"odd": 1}})) == {}
    assert scopes(ToolUpdate("c", "x", "edit", locations=("a.txt", "../b.txt"))) == {}
    assert scopes(ToolUpdate("c", "x", "execute")) == {}
    assert scopes(ToolUpdate("c", "x", "switch_mode", input={"plan": "all"})) == {}
    assert scopes() == {}


def test_files_are_granted_where_they_are_and_each_kind_of_work_on_its_own() -> None:
    def edit(*paths: str, kind: str = "edit") -> ToolUpdate:
        return ToolUpdate("c", "x", kind, locations=paths)

    same = {digest(edit(path)) for path in ("a.txt", "./a.txt", "/w/a.txt:7", "/real/w/a.txt")}

    assert same == {digest(ToolUpdate("c", "y", "edit", diffs=(FileDiff("a.txt", "", "new"),)))}
    others = [
        edit("A.txt"),
        edit("a.txt", "b.txt"),
        edit("a.txt", kind="delete"),
        edit("sub/a.txt"),
    ]
    assert same.isdisjoint(map(digest, others))
    assert scopes(edit("/etc/hosts")) == {}
    assert scopes(edit("/w/../etc/hosts")) == {}


def test_all_edits_are_one_grant_and_it_covers_nothing_but_edits() -> None:
    first = scopes(ToolUpdate("c", "x", "edit", locations=("a.txt",)))
    other = scopes(ToolUpdate("c", "x", "edit", locations=("b.txt",)))

    assert list(first) == [ALWAYS, ALWAYS_EDITS]
    assert first[ALWAYS_EDITS] == other[ALWAYS_EDITS]
    assert list(scopes(ToolUpdate("c", "x", "delete", locations=("a.txt",)))) == [ALWAYS]


def test_a_call_with_neither_command_nor_path_is_granted_by_its_title_and_all_its_arguments() -> (
    None
):
    def close(number: int, title: str = "issues: close", **more: object) -> ToolUpdate:
        return ToolUpdate("c", title, "other", input={"id": number, **more})

    assert digest(close(1)) == digest(close(1))
    others = (close(2), close(1, "issues: delete"), close(1, description="x"))
    assert digest(close(1)) not in map(digest, others)


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        (GrantScope("execute", "command", "npm test", ""), "`npm test`"),
        (GrantScope("execute", "command", "x" * 200, ""), "exactly this command"),
        (GrantScope("execute", "command", "echo a  b", ""), "exactly this command"),
        (GrantScope("execute", "command", "echo `id`", ""), "exactly this command"),
        (GrantScope("execute", "command", "ls\nrm -rf /", ""), "exactly this command"),
        (GrantScope("execute", "command", "cat a\u202etxt", ""), "exactly this command"),
        (GrantScope("edit", "paths", "docs/a.md", ""), "editing `docs/a.md`"),
        (GrantScope("delete", "paths", "a\nb", ""), "deleting exactly these files"),
        (GrantScope("other", "call", "close {}", ""), "exactly this call"),
    ],
)
def test_an_option_names_all_that_it_grants_or_points_to_what_is_shown(
    scope: GrantScope, name: str
) -> None:
    assert wording.offer_grant(scope) == f"Always allow {name} in this thread"


@given(commands)
def test_a_name_is_never_cut_and_holds_the_whole_command_or_none_of_it(command: str) -> None:
    (scope,) = scopes(run(command)).values()
    name = wording.offer_grant(scope)

    assert len(name) <= wording.LABEL_CHARACTERS
    whole = f"Always allow `{command}` in this thread"
    assert name in {whole, "Always allow exactly this command in this thread"}


def test_a_grant_is_offered_where_the_agent_can_be_answered_for_one_call() -> None:
    scope = {ALWAYS: GrantScope("execute", "command", "ls", "0")}

    def offered(*options: AskOption) -> list[str]:
        return [each.id for each in offer_grants(AskRequest("c", "x", options), scope).options]

    assert offered(ONCE, REJECT) == ["a", ALWAYS, "r"]
    assert offered(REJECT) == ["r"]
    assert offered(ONCE, ONCE, REJECT) == ["a", "a", "r"]


def test_what_a_grant_covers_is_told_on_one_line_and_every_character_is_seen() -> None:
    assert wording.granted("execute", "command", "ls\n rm\u200b") == "`ls\\u{A} rm\\u{200B}`"
    assert wording.granted("edit", "paths", "a.txt\nb.txt") == "editing `a.txt`, `b.txt`"
    assert wording.granted("edit", "workspace", "") == "all edits in the workspace"
    assert wording.granted("other", "call", "close {}") == "`close {}`"
