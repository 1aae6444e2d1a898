"""Runs panels: several agents answer one question at the same time, and one of them sums up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.together import wording
from app.core.together.group import Grouping
from app.errors import Conflict
from app.model.delegation import Delegation, NewDelegation
from app.model.types import Session, Speaker, TurnState

SUMS_UP: Final = 2
"""The round in which the host sums up; in the first one all answer."""


class Panel:
    """The panels of all places."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    async def begin(
        self,
        group: str,
        host: Session,
        agents: Sequence[str],
        person: Speaker,
        question: str,
        *,
        service: str,
    ) -> str:
        """Ask several agents the same for a person of a service; returns what to say.

        Raises:
            Conflict: none can answer.
        """
        asked = NewDelegation(
            "panel",
            "",
            host.id,
            None,
            question,
            person,
            repository=self._grouping.target_of(host),
            workspace="read-only",
            group=group,
        )
        names, refused = await self._grouping.ask_several(asked, agents, host, service)
        return "\n".join((wording.PANEL_BEGINS.format(agents=wording.listed(names)), *refused))

    async def advance(self, group: str, rows: Sequence[Delegation]) -> bool:
        """Show the answers once all are there, and have them summed up; True once it is over."""
        root = rows[0].root_session
        if rows[-1].round == SUMS_UP:
            if self._grouping.find_end(rows[-1]) is None:
                return False
            await self._grouping.end(root, group)
            return True
        ends = [self._grouping.find_end(row) for row in rows]
        if None in ends or not self._grouping.is_asked(group, rows[0]):
            return False
        if all(end is TurnState.CANCELLED for end in ends):
            await self._grouping.end(root, group, wording.PANEL_STOPPED)
            return True
        answers = [self._read(row) for row in rows]
        await self._grouping.tell(root, f"answers:{group}", wording.side_by_side(answers))
        try:
            await self._sum_up(group, rows[0], answers)
        except Conflict as error:
            await self._grouping.end(root, group, str(error))
            return True
        return False

    def _read(self, row: Delegation) -> tuple[str, str]:
        found = self._grouping.rows.answer(row)
        return self._grouping.name_of(row.agent), found.text or found.problem or wording.NO_ANSWER

    async def _sum_up(
        self, group: str, first: Delegation, answers: Sequence[tuple[str, str]]
    ) -> None:
        host = self._grouping.sessions.session(first.root_session)
        if host is None:
            raise Conflict(wording.PANEL_STOPPED)
        await self._grouping.delegations.begin(
            NewDelegation(
                "panel",
                host.key.agent,
                host.id,
                None,
                wording.SUM_UP.format(question=first.task),
                first.person,
                host.id,
                speaker=self._grouping.speaker(host.key.agent),
                context=self._grouping.redact(wording.write_answers(answers)),
                group=group,
                round=SUMS_UP,
            )
        )
