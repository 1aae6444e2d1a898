"""Reads the record of a turn: what caused it, who decided what, what it used and asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel

from app.core.runtime import Runtime
from app.model.inbound import RUN
from app.model.types import Entry, Message, Turn
from app.server.shapes import Shown

SCHEDULE_DIGITS = 15
"""Digits of the number of a schedule."""


class CauseMessage(BaseModel):
    """A message that a turn answers."""

    id: int
    """The number of its row in the transcript."""
    speaker: str
    kind: str
    """What the speaker is: a person, a bot or an agent."""
    text: str
    link: str = ""


class CauseDelegation(BaseModel):
    """The agent that asked for a turn, and the person for whom all of it is done."""

    id: int
    agent: str
    session: int
    turn: int | None
    """The turn that asked; none if a person's command did."""
    root_session: int
    root_turn: int | None
    person: str


class Cause(BaseModel):
    """What a turn was begun by."""

    kind: Literal["message", "schedule", "delegation", "continuation", "agent"]
    messages: list[CauseMessage]
    woken_by: str | None = None
    """What woke the agent, if it began the turn: `command`, `child`, `timer`, `goal`, `agent`."""
    about: str = ""
    """What that is."""
    origin: int | None = None
    """The turn that began what woke the agent."""
    schedule: int | None = None
    delegation: CauseDelegation | None = None


class DecisionOut(BaseModel):
    """Who or what decided on a call or a question in a turn."""

    title: str
    how: str
    """`person`, `rule`, `session` (granted before), `not asked` or `unanswered`."""
    who: str = ""
    rule: str = ""
    answer: str = ""
    allowed: bool | None = None
    ask: int | None = None
    """The number of the ask, if it is an answer to a question."""


class UsageOut(BaseModel):
    """What an agent last said about its context and its cost in a turn."""

    used: int | None = None
    size: int | None = None
    cost: float | None = None
    """What its session cost so far."""
    currency: str | None = None
    estimated: bool = False
    tokens: dict[str, Any] | None = None


class DelegatedTurn(Shown):
    """What a turn asked another agent."""

    id: int
    agent: str
    task: str
    state: str
    session: int
    turn: int
    depth: int
    seconds: float


class TurnRecord(BaseModel):
    """A turn with what its agent was told, and its record."""

    id: int
    session: int
    state: str
    error: str = ""
    continued: bool = False
    """Whether an earlier attempt may have reached the agent."""
    cause: Cause
    decisions: list[DecisionOut]
    usage: UsageOut | None
    delegations: list[DelegatedTurn]
    """What it asked other agents, each followed by what that one asked."""
    prompt: str = ""
    """The prompt as it was sent; empty before."""
    system_prompt: str = ""
    """The system prompt, if the agent was started for this turn and takes one."""


async def read_record(runtime: Runtime, turn: Turn) -> TurnRecord:
    """Read the record of a turn."""
    rows = await runtime.stores.transcript.of_turn(turn.session, turn.id)
    used = [row.data for row in rows if row.kind == "usage"]
    return TurnRecord(
        id=turn.id,
        session=turn.session,
        state=turn.state,
        error=turn.error,
        continued=turn.continued,
        cause=_read_cause(runtime, turn),
        decisions=list(_read_decisions(rows)),
        usage=UsageOut(**used[-1]) if used else None,
        delegations=[
            DelegatedTurn.of(replace(each, agent=runtime.agents.name(each.agent)))
            for each in runtime.stores.tree.under(turn.id)
        ],
        prompt=turn.prompt,
        system_prompt=turn.system,
    )


def _read_cause(runtime: Runtime, turn: Turn) -> Cause:
    messages = runtime.stores.turns.messages(turn.id)
    cause = Cause(
        kind="message" if messages else "continuation",
        messages=[
            CauseMessage(
                id=each.number,
                speaker=each.speaker.name,
                kind=each.speaker.kind,
                text=each.text,
                link=each.link,
            )
            for each in messages
        ],
        schedule=next(filter(None, map(_schedule_of, messages)), None),
    )
    if cause.schedule is not None:
        cause.kind = "schedule"
    if (branch := runtime.stores.tree.of_turn(turn.id)) is not None:
        cause.kind = "delegation"
        cause.delegation = CauseDelegation(
            id=branch.id,
            agent=runtime.agents.name(branch.caller_agent),
            session=branch.caller_session,
            turn=branch.caller_turn,
            root_session=branch.root_session,
            root_turn=branch.root_turn,
            person=branch.person,
        )
    if turn.woken_by is not None:
        cause.kind, cause.woken_by = "agent", turn.woken_by
        cause.about, cause.origin = turn.about, turn.origin
    return cause


def _schedule_of(message: Message) -> int | None:
    """Return the schedule that a message is a run of."""
    number = message.message_id.removeprefix(RUN).partition(":")[0]
    is_run = message.message_id.startswith(RUN) and number.isdecimal()
    return int(number) if is_run and len(number) <= SCHEDULE_DIGITS else None


def _read_decisions(rows: Sequence[Entry]) -> Iterator[DecisionOut]:
    """List the last decision on each call, and the answers to questions."""
    calls = {str(row.data.get("call")): row for row in rows if row.kind == "tool"}
    for row in calls.values():
        if decided := row.data.get("decided"):
            yield DecisionOut(
                title=row.text or str(row.data.get("title") or row.data.get("kind") or ""),
                **{name: value for name, value in decided.items() if value is not None},
            )
    for row in rows:
        if row.kind == "ask" and row.data.get("state") != "open" and not row.data.get("call"):
            yield DecisionOut(
                title=row.text,
                how="person" if row.data.get("state") == "answered" else "unanswered",
                answer=str(row.data.get("answer") or ""),
                ask=int(row.data["ask"]),
            )
