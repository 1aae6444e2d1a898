"""The level of service is summed up by service and day, from what was measured."""

from __future__ import annotations

from app.features.outcomes.level import Times, sum_up, times
from app.model.keys import PlaceKey
from app.model.outcomes import Handling, MessageOutcome, TracedMessage
from app.model.types import Speaker


def message(service: str, at: float, **more: object) -> TracedMessage:
    """Make a message that was sent a second before it was decided on."""
    given = {
        "place": PlaceKey(service, "here"),
        "message_id": "1",
        "speaker": Speaker("ann", "Ann"),
        "link": "",
        "adapter": f"{service}:claude",
        "sent_at": at - 1.0,
        "received_at": at,
        "decided_at": at,
        "outcome": MessageOutcome.ANSWERED,
        "rule": "mentioned",
    }
    return TracedMessage(**{**given, **more})  # type: ignore[arg-type]  # of many types


def answered(service: str, at: float, sign: float, end: float) -> TracedMessage:
    """Make a message that one agent answered."""
    done = Handling("claude", MessageOutcome.ANSWERED, 1, at, at - 1.0 + sign, at - 1.0 + end)
    return message(service, at, handlings=(done,))


def test_days_and_services_are_apart_and_outcomes_and_times_are_counted() -> None:
    refused = message("slack", 86_400.0 + 3, outcome=MessageOutcome.REFUSED, late=True)
    said = [
        *(answered("slack", 86_400.0 + n, sign=float(n), end=2.0 * n) for n in range(1, 21)),
        refused,
        answered("github", 10.0, 1.0, 5.0),
    ]

    newest, oldest = sum_up(said, lambda at: f"day {int(at // 86_400)}")

    assert (newest.day, newest.service, newest.messages, newest.late) == ("day 1", "slack", 21, 1)
    assert newest.outcomes == ((MessageOutcome.ANSWERED, 20), (MessageOutcome.REFUSED, 1))
    assert newest.first_sign == Times(11.0, 20.0)
    assert newest.answer == Times(22.0, 40.0)
    assert (oldest.service, oldest.answer) == ("github", Times(5.0, 5.0))


def test_a_message_that_one_of_two_agents_answered_has_no_answer_yet() -> None:
    done = Handling("claude", MessageOutcome.ANSWERED, 1, 10.0, 11.0, 12.0)
    working = Handling("codex", MessageOutcome.WORKING, 2, 10.0, 11.5, None)

    found = message("slack", 10.0, handlings=(done, working))

    assert found.first_sign_seconds == 2.0
    assert found.answer_seconds is None
    assert times([None]) is None
