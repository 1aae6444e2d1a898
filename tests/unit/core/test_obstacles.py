"""What agents say when their provider wants to be left alone, or a log-in."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.turns.failure import Obstacle, obstacle, pause, spoken_obstacle
from app.model.wording import limit_reset

NOW = 1_800_000_000.0
INTERNAL = -32603


@pytest.mark.parametrize(
    ("code", "message", "data", "found"),
    [
        (INTERNAL, "Usage limit reached; it resets in 90 seconds.", None, NOW + 90),
        (
            INTERNAL,
            "Internal error",
            {"errorKind": "rate_limit", "resetsAt": int(NOW) + 60, "retryAfterSeconds": 61},
            NOW + 60,
        ),
        (INTERNAL, "Internal error", {"errorKind": "rate_limit", "retryAfterSeconds": 5}, NOW + 5),
        (
            INTERNAL,
            "x",
            {"errorKind": "rate_limit", "resetsAt": "2027-01-15T08:30:00Z"},
            NOW + 1800,
        ),
        (INTERNAL, "x", {"errorKind": "rate_limit", "resetsAt": (NOW + 7) * 1000}, NOW + 7),
        (INTERNAL, f"Claude AI usage limit reached|{int(NOW) + 3600}", None, NOW + 3600),
        (INTERNAL, "You've hit your session limit · resets 9am (UTC)", None, NOW + 3600),
        (INTERNAL, "You've hit your session limit · resets 7:30am (UTC)", None, NOW + 84_600),
        (INTERNAL, "You've hit your limit · resets 3pm (Asia/Tokyo)", None, NOW + 79_200),
        (INTERNAL, "You've hit your weekly limit · resets Jan 16, 8am (UTC)", None, NOW + 86_400),
        (INTERNAL, "You've hit your weekly limit · resets Jan 14, 8am (UTC)", None, None),
        (INTERNAL, "You've hit your limit · resets 25pm (UTC)", None, None),
        (INTERNAL, "You've hit your limit · resets 9am (Mars/Olympus)", None, None),
        (
            INTERNAL,
            "You've hit your usage limit. Try again at Jan 15th, 2027 8:05 AM (UTC).",
            None,
            NOW + 300,
        ),
        (
            INTERNAL,
            "You've hit your usage limit. Try again in 1 day 2 hours 3 minutes.",
            None,
            NOW + 86400 + 7200 + 180,
        ),
        (INTERNAL, "Rate limit reached for gpt-x. Please try again in 20s.", None, NOW + 20),
        (429, "Resource has been exhausted (e.g. check quota).", None, None),
        (429, "Please retry in 32.5s", None, NOW + 32.5),
        (INTERNAL, "You exceeded your current quota, please check your plan", None, None),
        (INTERNAL, "usage limit reached, resets in 99999 days", None, None),
        (INTERNAL, "x", {"errorKind": "rate_limit", "resetsAt": True}, None),
    ],
)
def test_a_limit_is_recognised_with_its_time(
    code: int, message: str, data: object, found: float | None
) -> None:
    assert obstacle(code, message, data, NOW) == Obstacle("limited", found)


def test_a_time_without_a_zone_is_one_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "<+03>-03")
    time.tzset()
    try:
        found = obstacle(INTERNAL, "You've hit your session limit · resets 12:30pm", None, NOW)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert found == Obstacle("limited", NOW + 5_400)  # it is eleven there


@pytest.mark.parametrize(
    ("code", "message", "data"),
    [
        (-32000, "Authentication required", None),
        (INTERNAL, "Invalid API key · Please run /login", None),
        (INTERNAL, "Internal error", {"errorKind": "authentication_failed"}),
        (INTERNAL, "OAuth token has expired", None),
    ],
)
def test_a_missing_login_is_recognised(code: int, message: str, data: object) -> None:
    assert obstacle(code, message, data, NOW) == Obstacle("login")


@pytest.mark.parametrize(
    "message",
    ["The demo agent failed, as it was told to.", "Internal error", "prompt is too long", ""],
)
def test_other_errors_are_failures(message: str) -> None:
    assert obstacle(INTERNAL, message, {"details": "x"}, NOW) is None


def test_an_answer_that_is_nothing_but_such_an_error_is_recognised() -> None:
    words = "You've hit your usage limit. Try again in 3 hours."

    assert spoken_obstacle(words, NOW) == Obstacle("limited", NOW + 10800)
    assert spoken_obstacle("Error: 401 Invalid API key", NOW) == Obstacle("login")
    assert spoken_obstacle("I added a rate limit; too many requests give 429.", NOW) is None
    assert spoken_obstacle(words + " " * 10 + "x" * 700, NOW) is None


@given(
    st.integers(),
    st.text(),
    st.dictionaries(
        st.sampled_from(["errorKind", "resetsAt", "retryAfterSeconds", "retryAfter"]),
        st.one_of(
            st.sampled_from(["rate_limit", "authentication_failed"]),
            st.text(),
            st.integers(),
            st.floats(),
            st.none(),
            st.lists(st.integers()),
        ),
    )
    | st.none()
    | st.text(),
)
def test_whatever_an_agent_says_a_time_lies_ahead_and_can_be_told(
    code: int, message: str, data: object
) -> None:
    found = obstacle(code, message, data, NOW)

    if found is not None and found.until is not None:
        assert NOW <= found.until <= NOW + 33 * 86400
        assert "UTC" in limit_reset(found.until, NOW, resumes=False)


def test_the_words_name_the_time_or_the_command() -> None:
    limited = pause("codex", Obstacle("limited", NOW + 7200), NOW, resumes=False, name="Codex")
    resumed = pause("codex", Obstacle("limited", NOW + 2 * 86400), NOW, resumes=True)
    login = pause("codex", Obstacle("login"), NOW, resumes=False, name="Codex")

    assert limited.title == "Codex hit its usage limit. It resets at 10:00 UTC (in 2 h)."
    assert "It resets at Jan 17, 08:00 UTC (in 48 h) and continues then." in resumed.title
    assert login.title.startswith("Codex isn't signed in.")
    assert "`agent-bridge agents login codex`" in login.title
    assert [option.name for option in limited.options] == ["Continue", "Stop"]


def test_a_kind_that_the_agent_names_decides_and_not_its_words() -> None:
    words = "Usage limit reached; it resets in 90 seconds."

    assert obstacle(INTERNAL, words, {"errorKind": "billing_error"}, NOW) is None
    assert obstacle(INTERNAL, words, {"errorKind": "unknown"}, NOW) is not None
    assert obstacle(INTERNAL, words, {"errorKind": ["rate_limit"]}, NOW) is not None
