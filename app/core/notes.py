"""Codes for what the bridge did to a turn, an ask or a message, and their wording for people.

The store keeps the code and its facts; the text is made on reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.core.visible import reveal_line
from app.markdown.code import span


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


_WORDS = {
    NoteCode.STOPPED: "Stopped.",
    NoteCode.DROPPED: "Dropped before it began.",
    NoteCode.CUT_OFF: "The bridge restarted; the agent is picking up where it left off.",
    NoteCode.CUT_OFF_TWICE: (
        "The bridge restarted twice while the agent worked on this. "
        "Send the message again to continue."
    ),
    NoteCode.NOT_NEEDED: "No longer needed.",
    NoteCode.EXPIRED: "No answer in time, so this was not done.",
    NoteCode.EXPIRED_ASK: "No answer in time: {about}",
    NoteCode.ASK_LOST: (
        "The bridge restarted before this was answered. The agent asks again if it still matters."
    ),
    NoteCode.ASKED_AGAIN: "Asked again in a later turn.",
    NoteCode.ANSWERED: "{by}: {about}",
    NoteCode.CONTINUED: "{by}: {about}. Continued below.",
    NoteCode.HANDED_OVER: "Handed over to {about}.",
    NoteCode.OFFER_HANDED_ON: "Superseded by a newer request; the agent sees both.",
    NoteCode.OFFER_OVERTAKEN: "Superseded by newer events.",
    NoteCode.NOBODY_ANSWERS: "No agent answers: {about}.",
    NoteCode.MESSAGE_CHANGED: "{by} edited a message: {about}",
    NoteCode.MESSAGE_TAKEN_BACK: "{by} deleted a message.",
    NoteCode.RATED_GOOD: "👍 {by} found this answer helpful.",
    NoteCode.RATED_BAD: "👎 {by} did not find this answer helpful.",
}


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened: its code, who did it, and what it is about."""

    code: NoteCode
    by: str = ""
    about: str = ""

    @property
    def words(self) -> str:
        """The text for people."""
        quoted = self.code is NoteCode.EXPIRED_ASK
        about = span(reveal_line(self.about)) if quoted else self.about
        return _WORDS[self.code].format(by=self.by, about=about)
