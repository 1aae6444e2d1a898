"""Words what agents read about asking each other; pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal

from app.agents.agent import Agent
from app.model.agents import COMMAND
from app.model.delegation import Delegation, Limit
from app.model.types import TurnState

Objection = Literal["", "unlisted", "absent", "isolation", "network", "permissions"]
"""Why an agent may not be asked; empty if it may."""

OFF: Final = "Delegation is switched off on this bridge (DELEGATION_DEPTH=0)."
LIMITS: Final[dict[Limit, str]] = {
    "cycle": (
        "{agent} waits for your answer, or for that of an agent which waits for you: you cannot "
        "ask it. Answer with what you know."
    ),
    "depth": "You were asked by another agent and must not ask further ones. Do it yourself.",
    "turn": "You asked as often as one turn may. Go on with the answers that you have.",
    "tree": "The agents that work on this asked as often as they may, until a person speaks.",
    "hour": "As many turns as may began here within an hour, until a person speaks.",
    "time": "The agents worked on this for as long as they may, until a person speaks.",
    "budget": "This has cost as much as it may, until a person speaks.",
}
TOLD: Final = " People here were told. Finish with what you have."
SELF: Final = (
    "You cannot ask yourself. agents_spawn with your own name begins another session of yours."
)

NO_AGENT: Final = "There is no agent {name!r} for you. Use agents_list to see whom you may ask."
_NAMED: Final = (
    " The operator allows it with {name!r} in `agents_allow` of {asking}. Do it yourself, or tell "
    "the person who asked you."
)
OBJECTIONS: Final[dict[Objection, str]] = {
    "unlisted": NO_AGENT,
    "absent": "You may not ask {agent}: it is not connected to {service}." + _NAMED,
    "isolation": "You may not ask {agent}: it is not isolated, and you are." + _NAMED,
    "network": "You may not ask {agent}: it can connect to more than you." + _NAMED,
    "permissions": "You may not ask {agent}: it may do more without a question than you." + _NAMED,
}
NOT_PRESENT: Final = (
    "{agent} was not asked: it is not connected to {service}. The operator allows it with {name!r} "
    "in `agents_allow` of {host}."
)
REMOVED: Final = "The agent {name!r} was removed. Use agents_list to see whom you may ask."
CANNOT_WORK: Final = "{agent} cannot work now: {why}"
NOT_ALLOWED: Final = "{person}, for whom you work, may not use {agent}: {why}."
NO_PERSON: Final = "It is not known for whom you work, so that you cannot ask other agents."
UNCHECKED: Final = "it cannot be found out now; try again later"
NO_SESSION: Final = (
    "There is no session {name!r} of {agent} that was begun here. Use session create to begin one."
)
NO_LATEST: Final = "{agent} was not asked here yet. Use session create to begin."
OVER: Final = "Your turn is over: nothing waits for the answer any more."
CUT: Final = "[The rest is left out: the answer is too long.]"

FOR: Final = (
    "The agent {agent}, which works for {person}, asked you to do this. It gets the last words of "
    "your turn; people see your work on the page and decide on what you ask."
)
STILL_WORKS: Final = (
    "You asked {agent} before: {task} It still works on that. Do not ask again: use agents_result "
    "with the id {id}."
)
ENDS: Final[dict[TurnState, str]] = {
    TurnState.DONE: "You asked {agent} before (id {id}): {task} It is done; its answer follows.",
    TurnState.FAILED: "You asked {agent} before (id {id}): {task} It failed.",
    TurnState.CANCELLED: "You asked {agent} before (id {id}): {task} It was stopped.",
}
ANSWER_OF: Final = "the answer of {agent}, id {id}"
QUOTED_CHARACTERS: Final = 200
"""What a note repeats of a task: its agent wrote it."""
NOT_ASKED: Final = "You asked for nothing with the id {id!r}. agents_status lists what you did."
GOES_ON: Final = (
    "It is not done yet and goes on. Use agents_result with this id to get the answer; if you end "
    "your turn before, you are told the answer at the beginning of your next one."
)

COLLEAGUES: Final = """Other agents here, by name. To ask one, use {how}. To write a name or an @ in
your answer asks no agent.
{agents}"""
BY_TOOL: Final = "the tool `{tool}`"
BY_COMMAND: Final = "the command `{command} {tool} --{to} NAME --{what} TEXT`"
ASKS: Final = {"agents_message": ("to", "text"), "agents_spawn": ("agent", "task")}
"""The tools that ask an agent, the usual one first: whom, and what."""


def brief(asked: Delegation) -> str:
    """Return the beginning of a task in one line."""
    line = " ".join(asked.task.split())
    whole = len(line) <= QUOTED_CHARACTERS
    return f"“{line}”." if whole else f"“{line[:QUOTED_CHARACTERS]}…”."


def list_colleagues(
    colleagues: Sequence[Agent], tools: Collection[str], *, as_command: bool
) -> str:
    """Tell an agent whom it can ask with its tools, and how; empty if it can ask no agent."""
    tool = next((each for each in ASKS if each in tools), None)
    if tool is None or not colleagues:
        return ""
    to, what = ASKS[tool]
    how = BY_COMMAND if as_command else BY_TOOL
    return COLLEAGUES.format(
        how=how.format(command=COMMAND, tool=tool, to=to, what=what),
        agents="\n".join(map(_introduce, colleagues)),
    )


def _introduce(colleague: Agent) -> str:
    title, about = (" ".join(each.split()) for each in (colleague.title, colleague.description))
    known = "" if title.casefold() == colleague.name.casefold() else f" ({title})"
    return f"- {colleague.name}{known}{about and f': {about}'}"
