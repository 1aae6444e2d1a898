"""Words what people read on several services, each in its own markup; pure."""

from __future__ import annotations

from typing import Final

NO_MESSAGE: Final = "Finished without a message."
ON_HOLD: Final = "Reply `{to}queue now` to send them, or `{to}queue drop` to discard them."
PUSHED_TO: Final = "Pushed to"
DONE_IN: Final = "Done in"


def pull_request(number: int | None) -> str:
    """Name a pull request by its number, if that is known."""
    return f"#{number}" if number else "a pull request"
