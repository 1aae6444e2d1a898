"""What people call agents."""

from __future__ import annotations

from app.core.roster import Roster
from tests.support.agent_values import make_agent

CLAUDE = make_agent("claude", id="a1", display_name="Claude Code")
CODEX = make_agent("codex", id="a2", display_name="Codex")


def test_an_agent_is_found_by_its_name_and_by_what_people_see() -> None:
    called = Roster({"a1": CLAUDE, "a2": CODEX}).called()

    assert called == {"claude": "a1", "claude code": "a1", "codex": "a2"}


def test_a_title_of_two_agents_names_neither_and_a_name_beats_a_title() -> None:
    twins = {
        "a1": CLAUDE,
        "a3": make_agent("second", id="a3", display_name="Claude Code"),
        "a4": make_agent("third", id="a4", display_name="claude"),
    }

    assert Roster(twins).called() == {"claude": "a1", "second": "a3", "third": "a4"}


def test_a_removed_agent_is_known_by_its_name_unless_another_took_it() -> None:
    roster = Roster({"a1": CLAUDE}, lambda: {"old": "codex", "older": "claude"})

    assert roster.called() == {"claude": "a1", "claude code": "a1", "codex": "old"}


def test_a_removed_agent_keeps_what_people_called_it_until_another_is_called_so() -> None:
    roster = Roster(
        {"a1": CLAUDE},
        lambda: {"a3": "aide", "a4": "second"},
        former={"a3": "Helper", "a4": "Claude Code"}.__getitem__,
    )

    assert roster.called() == {
        "claude": "a1",
        "claude code": "a1",
        "aide": "a3",
        "helper": "a3",
        "second": "a4",
    }
    assert [roster.title(agent) for agent in ("a1", "a3")] == ["Claude Code", "Helper"]
