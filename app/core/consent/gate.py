"""Puts what an agent wants to the rules first, and to people where the rules leave it to them."""

from __future__ import annotations

import asyncio
import os.path
from dataclasses import dataclass, replace
from pathlib import Path

from app.core.clock import persist
from app.core.consent import record
from app.core.consent.calls import Call, call_of, subject
from app.core.consent.ledger import Ledger
from app.core.consent.offers import SESSION, allowing, of_agent, refusing, with_session_offer
from app.core.consent.policy import Verdict, decide, stays_inside
from app.core.consent.record import Decided
from app.core.consent.terms import Terms
from app.core.folders import beside
from app.core.ports import Clock
from app.core.types import TurnRef
from app.core.updates import Ask, AskRequest, ToolUpdate


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules say about a request."""

    request: AskRequest
    """As people are asked, if they are."""
    decided: Decided | None = None
    """What was decided without them; None: they are asked."""
    answer: str | None = None
    """The agent's own option for that; None: cancelled."""


class Gate:
    """What the agent of one turn may do."""

    def __init__(self, ledger: Ledger, terms: Terms, ref: TurnRef, clock: Clock) -> None:
        self._ledger = ledger
        self._terms = terms
        self._ref = ref
        self._clock = clock

    async def judge(
        self,
        request: AskRequest,
        known: ToolUpdate | None,
        workspace: Path | None,
        outgoing: Path | None = None,
    ) -> Judged:
        """Decide by the rules; a question is always for people."""
        if request.kind != "permission":
            return Judged(request)
        call = call_of(known, request.tool)
        call = await asyncio.to_thread(_looked_up, call, workspace, outgoing)
        kind = call.kinds[0] if len(call.kinds) == 1 else ""
        options = of_agent(request.options)
        request = replace(request, options=options, subject=subject(call), tool_kind=kind)
        verdict = decide(self._terms.policy, call)
        if verdict.decision == "deny":
            option = refusing(request.options)
            denied = record.by_rule(verdict.rule, allowed=False)
            return Judged(request, denied, option.id if option else None)
        # Whoever allows a kind of call for the session speaks of the workspace, as a rule does.
        grantable = bool(kind) and verdict.rule is None and stays_inside(call)
        decided = self._allowed(verdict, kind if grantable else "")
        fitting = allowing(request.options)
        if decided is not None and fitting is not None:
            return Judged(request, decided, fitting.id)
        return Judged(with_session_offer(request) if grantable else request)

    def _allowed(self, verdict: Verdict, grantable: str) -> Decided | None:
        """Tell what allows a call: a rule, else what somebody said for the whole session."""
        if verdict.decision == "allow":
            return record.by_rule(verdict.rule, allowed=True)
        who = self._ledger.grants(self._ref.session).get(grantable) if grantable else None
        return record.by_grant(grantable, who) if who else None

    async def ask(self, request: AskRequest) -> tuple[str | None, Decided]:
        """Let a person decide; returns the agent's own option, and the record of it."""
        seconds = self._terms.ask_seconds
        ask = await persist(self._clock, self._ledger.ask, request, self._ref, seconds=seconds)
        if ask is None:
            return None, record.UNANSWERED
        return _agents_own(ask), record.by_person(ask)


def _agents_own(ask: Ask) -> str | None:
    """Translate an answer into an option of the agent's: it does not know the bridge's own."""
    if ask.answer != SESSION:
        return ask.answer
    once = allowing(ask.options)
    return once.id if once else None


def _looked_up(call: Call, workspace: Path | None, outgoing: Path | None) -> Call:
    """Add where paths really lead, for those who would go out of the workspace by a link."""
    if workspace is None:
        return call
    real = os.path.realpath(workspace)
    spelled = [
        os.path.join(real, path.removeprefix("file://"))  # noqa: PTH118 - an agent's words, not a path of ours
        for path in call.paths
        if path.isprintable()
    ]
    paths = [at for path in spelled if (at := os.path.realpath(path)) != os.path.normpath(path)]
    also = () if outgoing is None else (str(outgoing), os.path.realpath(outgoing))
    return replace(
        call,
        paths=tuple(dict.fromkeys((*call.paths, *paths))),
        # What people attached is the agent's to read as well, and what they shall get to write.
        roots=tuple(dict.fromkeys((str(workspace), real, str(beside(workspace)), *also))),
    )
