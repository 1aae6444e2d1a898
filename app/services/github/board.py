"""Shows a turn on a pull request as a check with buttons, where the App may write checks.

Nothing depends on it: comments show the same, and a reply does what a button does. How a turn
ended says nothing about the commit, so no check of ours ever fails.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
from gidgethub import GitHubException

from app.core.consent.wording import markdown
from app.core.ports import Clock
from app.core.posts import PostContent, PostSend
from app.core.updates import AskOption
from app.errors import PostError, PostRejected
from app.services.github.api import GithubApi
from app.services.github.events import STOP, name_button
from app.services.github.names import Name, Spot
from app.services.github.transport import Gone

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 3600.0
"""How long an App that may not write checks does not try again: the permission may be added."""
MOST_ACTIONS = 3
LABEL_CHARACTERS = 20
DESCRIPTION_CHARACTERS = 40
"""GitHub's limits for the buttons of a check."""
ENDED = {"done": "Done", "failed": "Failed", "stopped": "Stopped"}

_RUN = re.compile(r"check-([0-9]{1,20})")
_FIRST = ("allow_once", "reject_once")


class Board:
    """The checks that one agent's App shows."""

    def __init__(self, api: GithubApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._open: dict[Spot, int] = {}
        self._unended: dict[int, tuple[Spot, dict[str, Any]]] = {}
        self._issues: set[Spot] = set()
        self._refused: dict[str, float] = {}

    async def show(self, spot: Spot, post: PostSend, name: Name, title: str) -> Name:
        """Show what a post says in the check of its turn; returns the name that remembers it."""
        try:
            if post.content.kind == "turn":
                return await self._turn(spot, post, name, title)
            if post.content.kind == "ask":
                await self._ask(spot, post.content)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            logger.info("cannot update the check on %s: %s", spot, error)
        return name

    async def _turn(self, spot: Spot, post: PostSend, name: Name, title: str) -> Name:
        known, over = _RUN.fullmatch(name.at), post.content.state in ENDED
        if known is None:
            run = None if over else await self._begin(spot, post.marker, title)
            return name if run is None else replace(name, at=f"check-{run}")
        run = int(known[1])
        if over:
            self._open.pop(spot, None)
            self._unended[run] = (spot, ended(post.content))
            await self._end()
        else:
            self._open[spot] = run
        return name

    async def _end(self) -> None:
        """End the checks of turns that are over, and those that failed to end before."""
        for run, (spot, shown) in list(self._unended.items()):
            with suppress(PostRejected):
                await self._api.change_check(spot, run, shown, progress=False)
            self._unended.pop(run, None)

    async def _begin(self, spot: Spot, marker: str, title: str) -> int | None:
        until = self._refused.get(spot.repository, 0.0)
        if spot in self._issues or self._clock.monotonic() < until:
            return None
        try:
            commit = (await self._api.pull(spot)).head.sha
        except Gone:
            self._issues.add(spot)
            return None
        begun = {"name": title, "head_sha": commit, "external_id": f"{spot.number}:{marker}"}
        try:
            run = await self._api.begin_check(spot, begun | working())
        except PostRejected as error:
            logger.info("cannot create a check on %s: %s", spot, error)
            self._refused[spot.repository] = self._clock.monotonic() + AGAIN_SECONDS
            return None
        self._open[spot] = run
        return run

    async def _ask(self, spot: Spot, content: PostContent) -> None:
        run = self._open.get(spot)
        if run is not None:
            shown = asking(content) if content.state == "open" else working()
            await self._api.change_check(spot, run, shown, progress=True)


def working() -> dict[str, Any]:
    """Say that an agent is at work, and offer to stop it."""
    output = {"title": "Working", "summary": "See the conversation."}
    return {"status": "in_progress", "output": output, "actions": [STOP]}


def asking(content: PostContent) -> dict[str, Any]:
    """Say what an agent asks, with a button for as many answers as fit."""
    numbered = [each for each in enumerate(content.options) if not each[1].on_page]
    usual = sorted(numbered, key=lambda each: each[1].kind not in _FIRST)[:MOST_ACTIONS]
    actions = [_action(content.ask or 0, number, option) for number, option in sorted(usual)]
    more = "" if len(numbered) <= MOST_ACTIONS else "\n\nMore answers are in the conversation."
    summary = f"{markdown(content.asked)}{more}"
    return {
        "status": "completed",
        "conclusion": "action_required",
        "output": {"title": "An answer is needed", "summary": summary or "?"},
        "actions": actions,
    }


def ended(content: PostContent) -> dict[str, Any]:
    """Say how a turn ended."""
    conclusion = "success" if content.state == "done" else "neutral"
    output = {"title": ENDED[content.state], "summary": "See the conversation."}
    return {"status": "completed", "conclusion": conclusion, "output": output, "actions": []}


def _action(ask: int, number: int, option: AskOption) -> dict[str, str]:
    name = " ".join(option.name.split()) or option.id
    return {
        "label": _short(name, LABEL_CHARACTERS),
        "description": _short(f"Answer: {name}", DESCRIPTION_CHARACTERS),
        "identifier": name_button(ask, number),
    }


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
