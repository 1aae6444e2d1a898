"""Words the bridge's notices, failures and asks for the page; pure.

Rows carry codes and facts. A row of an earlier release has only its text, which is shown then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from app.model.asks import CANCEL, GO_ON, HAND_OVER
from app.model.posts import NoteCode
from app.model.remedies import remedy
from app.server.page.view import cards
from app.server.page.view.blocks import FailedBlock, NoteBlock, QuestionBlock
from app.server.page.view.roster import AgentView

_NOTES: Final = {
    str(NoteCode.CUT_OFF): "The bridge restarted; {agent} is picking up where it left off.",
    str(NoteCode.DROPPED): "Discarded.",
}
_FAILURES: Final = {
    "crashed": "{agent} crashed.",
    "cut_off": "The connection to {agent} was cut.",
    "refused": "{agent} failed:",
    "timed_out": "{agent} stopped responding.",
    "misbehaved": "{agent} sent something that cannot be read.",
    "not_started": "{agent} could not start.",
    "over_limits": "{agent} used too much of this machine and was stopped.",
    "overdue": "{agent} ran out of time.",
    "unasked": "{agent} was stopped because it did something without asking.",
    "repository": "{agent} could not use the repository.",
    "bridge": "Something went wrong in the bridge.",
    str(NoteCode.CUT_OFF_TWICE): "The bridge restarted twice while {agent} worked on this.",
}
_PLAIN: Final = {"crashed", "timed_out", "misbehaved", str(NoteCode.CUT_OFF_TWICE)}
"""Kinds whose title says all; their cause is under details."""
_WANTS: Final = {
    "edit": "edit",
    "delete": "delete",
    "move": "move",
    "read": "read",
    "search": "search",
    "execute": "run a command",
    "fetch": "open",
}
_ORDER: Final = {"allow_once": 0, "allow_always": 1, "reject_once": 2, "reject_always": 3}
_PULL: Final = re.compile(r"(?<![(<`])https?://[^\s()<>`]+/pull/(\d+)(?=[:.,]?(?:\s|$))")
_ONE_LINE: Final = 120
"""Characters of a path or address that still fit into a sentence."""


def notice(note: NoteBlock, agent: str) -> str:
    """Word what happened, as Markdown."""
    if note.facts.get("interrupted"):
        return "Interrupted by your next message."
    if note.code == NoteCode.WOKEN and note.facts.get("origin"):
        return f"{note.text} [Began here](#t{note.facts['origin']})"
    held = note.facts.get("held")
    if held:
        return f"Stopped. {held} {'message' if held == 1 else 'messages'} on hold."
    words = _NOTES[note.code].format(agent=agent) if note.code in _NOTES else note.text
    return _PULL.sub(r"[#\1](\g<0>)", words)


def failure_title(failed: FailedBlock, agent: str) -> str:
    """Say what failed, in a few words."""
    words = _FAILURES.get(str(failed.facts.get("kind", "")), "{agent} failed:")
    return words.format(agent=agent)


def failure_cause(failed: FailedBlock) -> str:
    """Say why, where the title does not."""
    if failed.facts.get("kind") in _PLAIN:
        return ""
    cause = str(failed.facts.get("message") or failed.text)
    return " ".join(filter(None, (cause, remedy(failed.facts.get("reason")))))


def failure_details(failed: FailedBlock) -> list[str]:
    """List what only a person who looks for the cause wants to see."""
    facts = failed.facts
    status, code = facts.get("status"), facts.get("code")
    ended = f"Signal {-status}" if status is not None and status < 0 else f"Exit status {status}"
    plain = str(facts.get("message", "")) if facts.get("kind") in _PLAIN else ""
    return [
        words
        for words in (
            plain,
            ended if status is not None else "",
            f"Error code {code}" if code is not None else "",
        )
        if words
    ]


def wish(question: QuestionBlock) -> tuple[str, str]:
    """Say what an agent wants to do: the verb, and the one thing it is about, if it is short."""
    verb = _WANTS.get(question.tool, "")
    if not verb or question.kind not in {"", "permission"}:
        return "", ""
    if question.tool == "execute":
        return verb, ""
    changed = [fact.path for fact in question.view.facts if fact.kind == "change"]
    named = [
        line
        for fact in question.view.facts
        if fact.kind in {"path", "file", "address", "host"}
        for line in fact.text.split("\n")
    ]
    things = list(dict.fromkeys(cards.short_path(each) for each in changed or named if each))
    if len(things) > 1:
        return f"{verb} {len(things)} files", ""
    if not things or len(things[0]) > _ONE_LINE:
        return "", ""
    is_new = [fact.is_new for fact in question.view.facts if fact.kind == "change"] == [True]
    return "create" if is_new else verb, things[0]


def title_adds(question: QuestionBlock, thing: str) -> bool:
    """Tell whether the agent's own title says more than what it wants to do."""
    rest = cards.short_path(question.view.heading.strip("`").strip())
    said = [each for each in rest.replace("`", "").split() if each != thing]
    shown = [fact.text for fact in question.view.facts if fact.kind == "command"]
    return bool(rest) and len(said) > 1 and [rest.removeprefix("Run `")] != shown


def in_order(options: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Put options in the usual order: allow, allow more, reject; choices stay as they are."""
    if any(option.get("kind") not in _ORDER for option in options):
        return list(options)
    return sorted(options, key=lambda option: _ORDER[option["kind"]])


def option_name(
    option: Mapping[str, str], question: QuestionBlock, agent: Callable[[str], AgentView]
) -> str:
    """Name an option, as everywhere."""
    if question.kind == "pause":
        return _pause_option(option, question, agent)
    return option["name"]


def _pause_option(
    option: Mapping[str, str], question: QuestionBlock, agent: Callable[[str], AgentView]
) -> str:
    if option["id"].startswith(HAND_OVER):
        return f"Give it to {agent(option['id'].removeprefix(HAND_OVER)).title}"
    if option["id"] == CANCEL:
        return "Stop"
    if option["id"] == GO_ON and question.call == "login":
        return "Try again"
    return "Continue now" if option["id"] == GO_ON else option["name"]


def rejects(options: Sequence[Mapping[str, str]]) -> bool:
    """Tell whether an ask can be rejected."""
    return any(str(option.get("kind", "")).startswith("reject") for option in options)


def removed_words(agents: Sequence[AgentView]) -> str:
    """Say that the agents of a thread are gone, and what to do."""
    names = " and ".join(agent.title.removesuffix(" (removed)") for agent in agents)
    verb = "was" if len(agents) == 1 else "were"
    return f"{names} {verb} removed and cannot answer. To go on, choose another agent below."


def state_words(state: str) -> str:
    """Name the state of an agent."""
    named = {
        "idle": "ready",
        "parked": "asleep",
        "disconnected": "not connected",
        "held": "on hold",
        "limited": "rate-limited",
    }
    return named.get(state, state)
