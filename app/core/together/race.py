"""Runs races: several agents do the same task, each on its own branch, and people pick one.

Nothing is pushed or proposed before people have picked; what they did not pick stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.core.consent.ledger import Ledger
from app.core.repo_provider import RepoProvider
from app.core.together import wording
from app.core.together.group import Grouping
from app.errors import Conflict, RepositoryError
from app.model.delegation import Delegation, NewDelegation
from app.model.keys import PlaceKey
from app.model.offers import CHOICE, LEAVE
from app.model.types import Session, Speaker, TurnRef, TurnState
from app.model.updates import AskOption, AskRequest
from app.model.workspaces import Work


class Race:
    """The races of all places."""

    def __init__(
        self,
        grouping: Grouping,
        workspaces: RepoProvider,
        ledger: Ledger,
        *,
        page: Callable[[PlaceKey], str],
        seconds: float,
    ) -> None:
        """Run races; `page` returns the address of a place's page, `seconds` is time to pick."""
        self._grouping = grouping
        self._workspaces = workspaces
        self._ledger = ledger
        self._page = page
        self._seconds = seconds

    async def begin(
        self,
        group: str,
        host: Session,
        agents: Sequence[str],
        person: Speaker,
        task: str,
        *,
        service: str,
    ) -> str:
        """Give several agents the same task for a person of a service; returns what to say.

        Raises:
            Conflict: none can do it, or there is no repository to work on.
        """
        if self._workspaces.repository(host) is None:
            raise Conflict(wording.RACE_NEEDS_REPOSITORY)
        asked = NewDelegation(
            "race",
            "",
            host.id,
            None,
            task,
            person,
            repository=self._grouping.target_of(host),
            workspace="new-branch",
            group=group,
        )
        names, refused = await self._grouping.ask_several(asked, agents, host, service)
        return "\n".join((wording.RACE_BEGINS.format(agents=wording.listed(names)), *refused))

    async def advance(self, group: str, rows: Sequence[Delegation]) -> bool:
        """Have people pick once all are done, and ship what they picked; True once it is over."""
        root = rows[0].root_session
        ends = [self._grouping.find_end(row) for row in rows]
        if None in ends or not self._grouping.is_asked(group, rows[0]):
            return False
        picked = self._grouping.groups.picked(group)
        if picked is None:
            done = [
                row
                for row, end in zip(rows, ends, strict=True)
                if end is TurnState.DONE and self._changed(row)
            ]
            if done:
                await self._offer(group, done)
                return False
            await self._grouping.end(root, group, wording.NOTHING_TO_PICK)
            return True
        if picked.state == "open":
            return False
        chosen = next((row for row in rows if str(row.id) == picked.answer), None)
        words = wording.NONE_PICKED if chosen is None else await self._ship(chosen)
        await self._grouping.end(root, group, words)
        return True

    def _changed(self, row: Delegation) -> str:
        """Tell how much the work of an agent changes; empty if nothing."""
        session = self._grouping.sessions.session(row.session)
        changes = None if session is None else self._workspaces.describe(session).changes
        return "" if changes is None or not changes.files else wording.changed(changes)

    async def _offer(self, group: str, done: Sequence[Delegation]) -> None:
        """Ask people which of the candidates is to be shipped."""
        options = [
            AskOption(str(row.id), self._grouping.name_of(row.agent), CHOICE) for row in done
        ]
        lines = [
            wording.CANDIDATE.format(
                agent=self._grouping.name_of(row.agent),
                changed=self._changed(row),
                link=self._link_of(row),
            ).strip()
            for row in done
        ]
        request = AskRequest(
            group,
            "\n".join((wording.WHICH_ONE, *lines)),
            (*options, AskOption(LEAVE, wording.NONE_OF_THEM, "reject_once")),
            kind="race",
        )
        ref = TurnRef(done[0].session, done[0].turn)
        await self._grouping.ask(group, ref, self._ledger.present(request), seconds=self._seconds)
        self._ledger.watch()

    def _link_of(self, row: Delegation) -> str:
        session = self._grouping.sessions.session(row.session)
        return "" if session is None else self._page(session.place)

    async def _ship(self, row: Delegation) -> str:
        """Ship what an agent made; returns what to say. Repeating it changes nothing."""
        name = self._grouping.name_of(row.agent)
        session = self._grouping.sessions.session(row.session)
        if session is None:
            return wording.NONE_PICKED
        messages = self._grouping.turns.messages(row.turn)
        work = Work(session.title, messages, session.link, continued=True)
        try:
            shipped = await self._workspaces.ship_picked(session, work)
        except RepositoryError as error:
            return wording.NOT_SHIPPED.format(agent=name, problem=error)
        pushed = shipped.pushed
        where = "" if pushed is None else pushed.link or f"`{pushed.branch}`"
        done = wording.SHIPPED.format(agent=name, where=where) if where else ""
        return " ".join(filter(None, (done, shipped.note))) or wording.NOT_SHIPPED.format(
            agent=name, problem=wording.NO_CHANGES
        )
