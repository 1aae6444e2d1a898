"""What people see of a turn: its post, its rows on the page, and the files it made for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

from app.core.clock import persist
from app.core.files.outgoing import Given, listed
from app.core.posts import Fact, NewPost, PostContent
from app.core.turns.workshop import Workshop
from app.core.types import Entry, Session, Turn, TurnRef, TurnState
from app.core.update_router import UpdateRouter


class TurnDisplay:
    """What people see of one turn."""

    def __init__(self, shop: Workshop, session: Session, turn: Turn) -> None:
        self._shop = shop
        self._session = session
        self._turn = turn
        self._post = shop.posts.of_turn(turn.id)
        self._note = ""
        self.files = shop.outgoing.of(session, turn)
        self.router = UpdateRouter(
            TurnRef(session.id, turn.id),
            transcript=shop.transcript,
            feed=shop.feed,
            clock=shop.clock,
            vault=shop.vault,
            on_progress=self.progress,
            frame=self._post.content if self._post is not None else None,
        )

    async def announced(self) -> None:
        """Wait until the platform has the post, for as long as it wants that."""
        if self._post is not None:
            await self._shop.outbox.announced(self._post.id, self._post.target)

    def note(self, words: str) -> None:
        """Have one line by the bridge stay with the post, in place of what it said before."""
        self._note = words

    def add(self, words: str) -> None:
        """Have further words by the bridge stay with the post."""
        self._note = _joined(self._note, words)

    async def tell(self, words: str) -> None:
        """Write a line by the bridge where the page shows it."""
        notice = Entry("notice", words, session=self._session.id, turn=self._turn.id)
        await persist(self._shop.clock, self._shop.transcript.append, [notice])

    def content(self, state: str, *, note: str = "") -> PostContent:
        """Say what the post shows now, as much of it as the place wants to see."""
        shop, place = self._shop, self._session.place
        content = self.router.content(state)
        delivered = shop.workspaces.describe(self._session).delivered
        page = shop.page(place)
        details = (Fact("Details", page),) if page else ()
        return replace(
            content,
            note=note or self._note,
            facts=(*delivered, *content.facts, *details),
            verbosity=shop.verbosity(place),
        )

    def progress(self) -> None:
        """Show how far the turn has come."""
        self._update(lambda: self.content("working"))

    def wait(self, content: PostContent) -> None:
        """Show what the post says while the turn waits."""
        self._update(lambda: content)
        self._shop.feed.notify(self._session.id)

    async def end(self, state: TurnState, shown: str, note: str) -> None:
        """Write the end of the turn and everything that shows it, in one commit."""
        shop = self._shop
        await self.router.close()
        if self.router.title:
            await persist(shop.clock, shop.sessions.rename, self._session.id, self.router.title)
        # What was made before a stop waits for the next turn's end.
        given = Given() if state is TurnState.CANCELLED else await self.files.collect()
        note = _joined(note, given.refused)
        posts = await persist(
            shop.clock,
            shop.turns.finish,
            self._turn.id,
            state,
            replace(self.content(shown, note=_joined(self._note, note)), files=given.files),
            self._last_entries(shown, note, given),
            note if state is TurnState.FAILED else "",
            more=self._file_posts(given),
        )
        if posts is not None and state is not TurnState.CANCELLED:
            await self.files.settle()
        shop.counters.count("turns", agent=self._session.key.agent, state=state)
        shop.outbox.send(*posts or ())
        shop.feed.notify(self._session.id)

    def _update(self, content: Callable[[], PostContent]) -> None:
        if self._post is not None:
            self._shop.outbox.progress(self._post.id, self._post.target, content)

    def _last_entries(self, shown: str, note: str, given: Given) -> list[Entry]:
        """Write what the page shows at the end of the turn."""
        entries: list[Entry] = []
        if given.files:
            files = [asdict(file) for file in given.files]
            entries.append(Entry("notice", f"Made {listed(given.files)}.", data={"files": files}))
        if note:
            entries.append(Entry("notice", note, data={"end": shown}))
        return [replace(entry, session=self._session.id, turn=self._turn.id) for entry in entries]

    def _file_posts(self, given: Given) -> list[NewPost]:
        """Post what was made, where that takes a post of its own."""
        if not given.files or self._post is None or not self.files.is_shared:
            return []
        content = PostContent(kind="files", files=given.files)
        key, target = f"files:{self._turn.id}", self._post.target
        return [NewPost(key, target, content, self._session.id, self._turn.id)]


def _joined(*words: str) -> str:
    return " ".join(filter(None, words))
