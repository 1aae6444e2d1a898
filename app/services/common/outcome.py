"""Writes the outcome of a turn as one line of Markdown, for services that show Markdown; pure."""

from __future__ import annotations

from app.markdown.code import span
from app.model import wording
from app.model.posts import PostContent
from app.model.visible import reveal_line
from app.services.common.wording import DONE_IN, PUSHED_TO, pull_request


def lead(content: PostContent) -> str:
    """Write the outcome of a turn that pushed something, in one line; empty if it did not."""
    pushed = content.outcome.pushed if content.outcome is not None else None
    if pushed is None or content.state != "done":
        return ""
    where = f"{PUSHED_TO} {span(reveal_line(pushed.branch))}"
    if pushed.link:
        where = f"{DONE_IN} [{pull_request(pushed.number)}]({pushed.link})"
    return " · ".join((f"**{where}**", *wording.headline(content)))
