"""Words when a service was not heard, the same for conversations, page and terminal; pure."""

from __future__ import annotations

from collections.abc import Callable

from app.model.inbound import Gap

_SPAN = "{what} from {began} to {ended}"
_CAUSES = {
    "bridge": "the bridge did not hear {service}: it was not running",
    "socket": "the connection to {service} was down",
    "hook": "the webhook of {service} failed",
}


def gap_words(gap: Gap, clock: Callable[[float], str]) -> str:
    """Say when a service was not heard, and why."""
    what = _CAUSES[gap.cause].format(service=gap.adapter.partition(":")[0].capitalize())
    return _SPAN.format(what=what, began=clock(gap.began), ended=clock(gap.ended))
