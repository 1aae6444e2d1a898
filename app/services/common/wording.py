"""Words what people read on several services, each in its own markup; pure."""

from __future__ import annotations

from typing import Final

from app.markdown.writing import span
from app.model.posts import PostContent
from app.model.text import reveal_line
from app.model.wording import headline

NO_MESSAGE: Final = "Finished without a message."
ON_HOLD: Final = "Reply `{to}queue now` to send them, or `{to}queue drop` to discard them."
PUSHED_TO: Final = "Pushed to"
DONE_IN: Final = "Done in"
NOT_HERE: Final = "an agent works for another one here; write where people talk"


def pull_request(number: int | None) -> str:
    """Name a pull request by its number, if that is known."""
    return f"#{number}" if number else "a pull request"


def lead(content: PostContent) -> str:
    """Write the outcome of a turn that pushed something, in one line; empty if it did not."""
    pushed = content.outcome.pushed if content.outcome is not None else None
    if pushed is None or content.state != "done":
        return ""
    where = f"{PUSHED_TO} {span(reveal_line(pushed.branch))}"
    if pushed.link:
        where = f"{DONE_IN} [{pull_request(pushed.number)}]({pushed.link})"
    return " · ".join((f"**{where}**", *headline(content)))
