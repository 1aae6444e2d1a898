"""Shows a turn to people: its post, its rows on the page, its files, and a line on other services.

The work stays where it began: another service only gets one line at its end, and replies there
reach the same session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from app.core.files.outgoing import Given, listed
from app.core.turns.turn_context import TurnContext
from app.core.update_router import UpdateRouter
from app.errors import PostError, ServiceRefused
from app.model import wording
from app.model.delegation import SERVICE
from app.model.inbound import Begun
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import DelegatedLine, Fact, NewPost, PostContent, Pushed
from app.model.types import Entry, PlaceView, Session, Turn, TurnRef, TurnState
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

OPEN_SECONDS: Final = 10.0
"""How long the start of an agent waits until another service shows its work."""
_ENDS: Final[Mapping[TurnState, str]] = {
    TurnState.DONE: "Done",
    TurnState.FAILED: "Failed",
    TurnState.CANCELLED: "Stopped",
}


class TurnDisplay:
    """What people see of one turn."""

    def __init__(
        self,
        context: TurnContext,
        session: Session,
        turn: Turn,
        place: PlaceView,
        *,
        name: str = "",
    ) -> None:
        """Show a turn; `name` is what people call its agent."""
        self._context = context
        self._name = name
        self._began = context.clock.monotonic()
        self._session = session
        self._turn = turn
        self.target = context.workspaces.target(session, place.repository)
        """What the turn works on."""
        self.verbosity = place.verbosity or context.verbosity
        """How much its place wants to see."""
        self._post = context.stores.posts.of_turn(turn.id)
        self.unsure: set[int] = set()
        """Messages that were sent into the turn and of which its agent said nothing yet."""
        self._marked: tuple[str, ...] = ()
        self.subagents: tuple[DelegatedLine, ...] = ()
        """A line for each sub-agent that the turn started."""
        self._note = ""
        self._woken = wording.woken(turn.woken_by, turn.about) if turn.woken_by else ""
        self._delegated = context.hooks.post_lines(turn.id)
        self._shown: Callable[[], PostContent] | None = None
        self._companions = Companions(context, session, turn)
        self.files = context.outgoing.of(turn, context.workspaces.outgoing(session))
        self.router = UpdateRouter(
            context,
            TurnRef(session.id, turn.id),
            feed=context.feed,
            on_progress=self.progress,
            frame=self._post.content if self._post is not None else None,
        )

    async def wait_until_announced(self) -> None:
        """Wait until the platform has the post, for as long as it allows, and others show it."""
        if self._post is not None:
            await self._context.outbox.announced(self._post.id, self._post.target)
        if not self._turn.is_own:
            await self._companions.open()

    def mark(self, message_id: str) -> None:
        """Mark a message in its place: the agent has it."""
        self._marked = (*self._marked, message_id)
        self.progress()

    def note(self, words: str) -> None:
        """Set the bridge's note on the post, in place of an earlier one."""
        self._note = words

    def add(self, words: str) -> None:
        """Add to the bridge's note on the post."""
        self._note = _join(self._note, words)

    async def tell(self, words: str) -> None:
        """Write a notice into the transcript, where the page shows it."""
        notice = Entry("notice", words, session=self._session.id, turn=self._turn.id)
        await persist(self._context.clock, self._context.stores.transcript.append, [notice])

    def content(self, state: str, *, note: str = "") -> PostContent:
        """Build what the post shows now, in as much detail as the place wants."""
        content = self.router.content(state)
        delivered = self._context.workspaces.view(self._session, self.target).delivered
        page = self._context.page(self._session.place)
        details = (Fact("Details", page),) if page else ()
        if page and self._turn.origin is not None:
            details = (Fact(wording.BEGAN_HERE, f"{page}#t{self._turn.origin}"), *details)
        return replace(
            content,
            note=_join(self._woken, note or self._note),
            facts=(*delivered, *details),
            verbosity=self.verbosity,
            outcome=replace(self.router.outcome(), seconds=self._seconds()),
            agent=self._name,
            delegated=(*self._delegated, *self.subagents),
            steered=self._marked,
        )

    def progress(self) -> None:
        """Show the progress of the turn."""
        self._update(lambda: self.content("working"))

    def wait(self, content: PostContent) -> None:
        """Show what the post says while the turn waits."""
        self._update(lambda: replace(content, delegated=(*self._delegated, *self.subagents)))
        self._context.feed.notify(self._session.id)

    def refresh(self) -> None:
        """Show how far the work is that others do for the turn."""
        self._delegated = self._context.hooks.post_lines(self._turn.id)
        if self._shown is not None:
            self._update(self._shown)

    async def end(
        self,
        state: TurnState,
        shown: str,
        note: str,
        *,
        pushed: Pushed | None = None,
        on_hold: int = 0,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the end of the turn and everything that shows it, in one commit.

        `facts` say how it ended, for a surface with words of its own.
        """
        context = self._context
        await self.router.close()
        if self.router.title:
            await persist(
                context.clock, context.stores.sessions.rename, self._session.id, self.router.title
            )
        # What was made before a stop waits for the next turn's end.
        given = Given() if state is TurnState.CANCELLED else await self.files.collect()
        note = _join(note, given.refused)
        self._shown, self._delegated = None, context.hooks.post_lines(self._turn.id)
        content = self.content(shown, note=_join(self._note, note))
        assert content.outcome is not None
        outcome = replace(content.outcome, pushed=pushed, on_hold=on_hold)
        posts = await persist(
            context.clock,
            context.stores.turns.finish,
            self._turn.id,
            state,
            replace(content, files=given.files, outcome=outcome),
            self._last_entries(
                _join(wording.pushed_words(pushed) if pushed else "", note),
                {"end": shown, **_pushed_facts(pushed, note), **(facts or {})},
                given,
            ),
            note if state is TurnState.FAILED else "",
            more=[*self._file_posts(given), *await self._companions.end(state)],
            unsure=frozenset(self.unsure),
        )
        if posts is not None and state is not TurnState.CANCELLED:
            await self.files.settle()
        agent, began = self._session.key.agent, self._turn.created_at
        context.metrics.count("turns", agent=agent, state=state)
        context.metrics.trace(
            "turn", self._turn.id, began, context.clock.now(), agent=agent, state=state
        )
        context.outbox.send(*posts or ())
        context.feed.notify(self._session.id)
        await context.hooks.on_end(self._session, self._turn, state)

    def _seconds(self) -> float:
        """Return how long the turn has taken; 0 if an earlier run of the bridge began it."""
        return 0.0 if self._turn.continued else self._context.clock.monotonic() - self._began

    @property
    def _is_delegated(self) -> bool:
        """Whether the turn is done for another agent."""
        return self._session.place.service == SERVICE

    def _update(self, content: Callable[[], PostContent]) -> None:
        self._shown = content
        if self._post is not None:
            self._context.outbox.progress(self._post.id, self._post.target, content)

    def _last_entries(self, note: str, facts: Mapping[str, Any], given: Given) -> list[Entry]:
        """Write what the page shows at the end of the turn."""
        entries: list[Entry] = []
        if given.files:
            files = [asdict(file) for file in given.files]
            entries.append(Entry("notice", f"Made {listed(given.files)}.", data={"files": files}))
        if note or self._is_delegated:
            # The page of the agent that asked shows the end, also if there is nothing to say.
            entries.append(Entry("notice", note, data=facts))
        return [replace(entry, session=self._session.id, turn=self._turn.id) for entry in entries]

    def _file_posts(self, given: Given) -> list[NewPost]:
        """Post the files, where they need a separate post."""
        if not given.files or self._post is None or not self.files.is_shared:
            return []
        content = PostContent(kind="files", files=given.files)
        key, target = f"files:{self._turn.id}", self._post.target
        return [NewPost(key, target, content, self._session.id, self._turn.id)]


def _pushed_facts(pushed: Pushed | None, note: str) -> dict[str, Any]:
    """Describe what was pushed, and what else is said, for a surface that shows it as a card."""
    return {"pushed": asdict(pushed), "note": note} if pushed else {}


def _join(*words: str) -> str:
    return " ".join(filter(None, words))


class Companions:
    """The conversations on other services about one turn."""

    def __init__(self, context: TurnContext, session: Session, turn: Turn) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._link = context.page(session.place)
        self._tasks = Tasks(f"companions of turn {turn.id}")
        self._keys: list[SessionKey] = []

    async def open(self) -> None:
        """Show the turn wherever its agent's services want that; an interruption leaves none."""
        if self._link and self._others():
            await asyncio.shield(self._tasks.start(self._open(), name="open"))

    async def end(self, state: TurnState) -> list[NewPost]:
        """Return what closes the conversations."""
        await self._tasks.settle(OPEN_SECONDS)
        await self._tasks.close()
        words = PostContent(kind="notice", note=f"{_ENDS[state]}: {self._link}")
        return [
            NewPost(f"companion:{self._turn.id}:{key}", key, words, self._session.id, self._turn.id)
            for key in self._keys
        ]

    def _others(self) -> list[str]:
        own = self._turn.surface
        adapters = self._context.adapters.items()
        return [
            name for name, adapter in adapters if adapter.agent == own.agent and name != own.adapter
        ]

    async def _open(self) -> None:
        messages = self._context.stores.turns.messages(self._turn.id)
        begun = Begun(tuple(each.text for each in messages), self._link)
        for name in self._others():
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    key = await self._context.adapters[name].accompany(begun)
            except (PostError, ServiceRefused, TimeoutError) as error:
                logger.info("%s does not show turn %d: %s", name, self._turn.id, error)
                continue
            if key is not None and await self._link_to(key):
                self._keys.append(key)

    async def _link_to(self, key: SessionKey) -> bool:
        """Let replies there reach the session; False if they reach another one."""
        place, context = PlaceKey(key.service, key.external), self._context
        return await persist(
            context.clock, context.stores.sessions.link, self._session.id, key, place
        )
