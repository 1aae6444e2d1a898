"""Codes for what the bridge did to a turn, an ask or a message.

The store keeps the code and its facts; `wording` writes the text on reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NoteCode(StrEnum):
    """What happened."""

    STOPPED = "stopped"
    DROPPED = "dropped"
    CUT_OFF = "cut_off"
    CUT_OFF_TWICE = "cut_off_twice"
    NOT_NEEDED = "not_needed"
    EXPIRED = "expired"
    EXPIRED_ASK = "expired_ask"
    ASK_LOST = "ask_lost"
    ASKED_AGAIN = "asked_again"
    ANSWERED = "answered"
    CONTINUED = "continued"
    HANDED_OVER = "handed_over"
    OFFER_HANDED_ON = "offer_handed_on"
    OFFER_OVERTAKEN = "offer_overtaken"
    NOBODY_ANSWERS = "nobody_answers"
    MESSAGE_CHANGED = "message_changed"
    MESSAGE_TAKEN_BACK = "message_taken_back"
    RATED_GOOD = "rated_good"
    RATED_BAD = "rated_bad"
    SCHEDULE_FAILED = "schedule_failed"
    RENAMED = "renamed"
    CLEARED = "cleared"
    FORKED = "forked"
    FORKED_WHOLE = "forked_whole"
    DELEGATION_LIMIT = "delegation_limit"
    SUSPENDED = "suspended"
    STEERED = "steered"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened: its code, who did it, and what it is about."""

    code: NoteCode
    by: str = ""
    about: str = ""
