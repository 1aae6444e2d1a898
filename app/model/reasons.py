"""Codes for why a delivery led to what it did."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a message goes to these agents, or nothing came of a delivery."""

    MENTIONED = "mentioned"
    REPLY = "reply"
    HANDED_OVER = "handed_over"
    HOLDER = "holder"
    ONLY_AGENT = "only_agent"
    ALL_LISTEN = "all_listen"
    LATEST = "latest"
    UNTAGGED_STOP = "untagged_stop"
    ANSWERS_ASK = "answers_ask"
    ANSWERED = "answered"
    CHORE = "chore"
    NEWS = "news"
    RATED = "rated"

    FROM_AGENT = "from_agent"
    NOT_MENTIONED = "not_mentioned"
    NONE_HERE = "none_here"
    SEVERAL_HERE = "several_here"
    NOT_FOR_US = "not_for_us"
    DECIDED_BEFORE = "decided_before"
    REPORTED_ELSEWHERE = "reported_elsewhere"
    NOTHING_PROPOSED = "nothing_proposed"
    NOTHING_NEW = "nothing_new"
    REFUSED = "refused"
