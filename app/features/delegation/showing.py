"""Shows people what agents do for others: in the post of the turn that asked, and once it is over.

What ends after that post is told once: the row says so in the commit that makes the post.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Final

from app.core.runtime import Runtime
from app.features.delegation.store import DelegationStore
from app.model import wording
from app.model.delegation import SERVICE, Branch
from app.model.inbound import Heard
from app.model.keys import SessionKey
from app.model.posts import DelegatedLine, Fact, NewPost, PostContent
from app.model.types import Entry, Session, Speaker
from app.retry import persist
from app.signals import Topic
from app.tasks import Tasks

TASK_CHARACTERS: Final = 300
WORDS_CHARACTERS: Final = 1_000
"""What a post keeps of a task and of an answer; the page has both as a whole."""


class Showing:
    """What people see of delegated turns."""

    def __init__(self, runtime: Runtime, store: DelegationStore) -> None:
        self._runtime = runtime
        self._tree = runtime.stores.tree
        self._store = store
        self._tasks = Tasks("delegated turns")
        self._one_by_one = asyncio.Lock()
        sessions = runtime.stores.sessions

        @lru_cache(4096)
        def is_delegated(session: int) -> bool:
            known = sessions.session(session)
            return known is not None and known.place.service == SERVICE

        self._is_delegated = is_delegated
        runtime.feed.listeners.append(self._hear)
        self._signals = runtime.signals
        self._signals.on(Topic.ENDS, lambda _facts: self._look_again())
        self._signals.on_sweep(self._look_again)

    async def close(self) -> None:
        """Stop telling; the next start goes on."""
        await self._tasks.close()

    def lines(self, turn: int) -> tuple[DelegatedLine, ...]:
        """List what a turn asked other agents, as its post shows it."""
        return tuple(map(self._line, self._tree.under(turn)))

    def _hear(self, session: int) -> None:
        """Show what changed in a session, if it works for another one."""
        if not self._is_delegated(session):
            return
        branch = self._tree.of_session(session)
        if branch is None:
            return
        self._runtime.engine.refresh(branch.root_session, branch.root_turn)
        if branch.is_over:
            self.tell()

    async def voice_of(self, session: Session) -> str:
        """Return the agent of a session if it speaks for itself where it all began."""
        branch = self._tree.of_session(session.id) if session.place.service == SERVICE else None
        key = None if branch is None else await self.find_voice(branch)
        return "" if key is None else key.agent

    def tell(self) -> None:
        """Tell people soon what ended and no post shows; only the leader tells."""
        if self._signals.is_leader:
            self._tasks.start(self._tell(), name="ends")
        else:
            self._signals.send(Topic.ENDS)

    def _look_again(self) -> None:
        if self._signals.is_leader:
            self.tell()

    async def _tell(self) -> None:
        async with self._one_by_one:
            for branch in await self._store.unshown():
                await self._tell_one(branch)

    async def _tell_one(self, branch: Branch) -> None:
        voice = await self.find_voice(branch)
        if branch.root_end == "" and voice is None:
            return  # its post will show it
        posts: list[NewPost] = []
        entries: list[Entry] = []
        if branch.root_end != "stopped":
            words = self._words(branch)
            entries.append(Entry("notice", words, session=branch.root_session))
            posts.append(self._speak(branch, voice) if voice else self._notice(branch, words))
        made = await persist(self._runtime.clock, self._store.show, branch.id, posts, entries)
        self._runtime.outbox.send(*made)
        self._runtime.feed.notify(branch.root_session)

    def _notice(self, branch: Branch, words: str) -> NewPost:
        content = PostContent(kind="notice", note=words)
        return NewPost(f"delegated:{branch.id}", branch.root, content, branch.session, branch.turn)

    def _speak(self, branch: Branch, voice: SessionKey) -> NewPost:
        """Post the answer of an agent that speaks for itself."""
        post = self._runtime.stores.posts.of_turn(branch.turn)
        said = post.content if post is not None else PostContent("turn", branch.state)
        page = self._runtime.page(branch.place)
        content = PostContent(
            kind="turn",
            state=branch.state,
            text=said.said or said.text,
            note=said.note,
            outcome=said.outcome,
            facts=(Fact("Details", page),) if page else (),
            agent=said.agent,
        )
        return NewPost(f"delegated:{branch.id}", voice, content, branch.session, branch.turn)

    async def find_voice(self, branch: Branch) -> SessionKey | None:
        """Find where an agent speaks for itself, if it may and can."""
        found = self._runtime.agents.get(branch.agent)
        key = SessionKey(branch.root.service, branch.root.external, branch.agent)
        adapters = self._runtime.adapters
        own, there = adapters.get(key.adapter), adapters.get(branch.root.adapter)
        if found is None or found.voice != "own" or own is None or there is None:
            return None
        if not there.is_shared(branch.root):
            return None
        bridge = Speaker("", "", "agent")
        heard = Heard(branch.root_place, branch.root.external, "", bridge, "")
        return key if await own.absence(heard) is None else None

    def _line(self, branch: Branch) -> DelegatedLine:
        words = self._tree.words(branch.turn) if branch.is_over else ""
        return DelegatedLine(
            agent=self._runtime.agents.title(branch.agent),
            task=branch.task[:TASK_CHARACTERS],
            state=branch.state,
            id=branch.id,
            depth=branch.depth,
            link=self._runtime.page(branch.place),
            words=words[:WORDS_CHARACTERS],
            seconds=branch.seconds,
        )

    def _words(self, branch: Branch) -> str:
        """Say how a delegated turn ended."""
        return wording.delegated_end(
            self._line(branch), caller=self._runtime.agents.title(branch.caller_agent)
        )
