"""One question to one agent from a terminal: what is shown, who answers, how it ends."""

from __future__ import annotations

from enum import StrEnum


class Allow(StrEnum):
    """What is answered to an agent's asks without a person."""

    ONCE = "once"
    REJECT = "reject"
