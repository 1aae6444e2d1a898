"""Whether an agent can work, from what checks, probes and turns say."""

from __future__ import annotations

import pytest

from app.core.roster import Availabilities
from app.model.agents import Availability, passed, unmet
from tests.support.clock import START, ManualClock

MISSING = unmet("command", "'x' was not found.", "Install it.", "unavailable")
NO_LOGIN = unmet("key", "Not logged in.", "Log in.", "login_needed")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def found(clock: ManualClock) -> Availabilities:
    return Availabilities(clock)


def test_an_agent_of_which_nothing_is_known_counts_as_ready(found: Availabilities) -> None:
    assert found.of("claude") == Availability()


def test_the_worst_finding_decides_and_all_are_listed_in_order(found: Availabilities) -> None:
    found.note("claude", passed("initialize", "answers"), NO_LOGIN, MISSING, version="1.2")

    seen = found.of("claude")

    assert (seen.state, seen.words) == ("unavailable", "'x' was not found. Install it.")
    assert [check.name for check in seen.checks] == ["command", "key", "initialize"]
    assert (seen.version, seen.label) == ("1.2", "unavailable")


def test_a_finding_that_keeps_an_agent_from_nothing_leaves_it_ready(found: Availabilities) -> None:
    found.note("claude", unmet("isolation", "not isolated", ""))

    assert found.of("claude").state == "ready"
    assert not found.of("claude").checks[0].ok


def test_a_newer_finding_takes_the_place_of_the_last_of_its_name(found: Availabilities) -> None:
    found.note("claude", MISSING)
    found.note("claude", passed("command", "/bin/x"))

    assert found.of("claude").state == "ready"
    assert len(found.of("claude").checks) == 1


async def test_a_limit_is_over_at_its_time(found: Availabilities, clock: ManualClock) -> None:
    found.limited("claude", START + 600)

    before = found.of("claude")
    await clock.advance(601)

    assert (before.state, before.reason) == ("limited", "Hit its usage limit.")
    assert before.remedy.startswith("It resets at ")
    assert before.remedy.endswith("(in 10 min).")
    assert found.of("claude") == Availability()


async def test_a_limit_without_a_time_lasts_until_a_turn_works(
    found: Availabilities, clock: ManualClock
) -> None:
    found.limited("claude", None)
    await clock.advance(86400)
    assert found.of("claude").remedy == "When it resets is not known."

    found.worked("claude")

    assert found.of("claude").state == "ready"


def test_a_turn_that_worked_refutes_every_finding_against_its_agent(found: Availabilities) -> None:
    found.note("claude", MISSING, NO_LOGIN, passed("isolation", "isolated"))
    found.logged_out("claude")
    assert "agents login claude" in found.of("claude").checks[-1].remedy

    found.worked("claude")

    assert found.of("claude").state == "ready"
    assert [check.name for check in found.of("claude").checks] == ["isolation", "last turn"]


def test_a_failed_turn_is_remembered_and_a_failed_start_is_looked_into(clock: ManualClock) -> None:
    doubts: list[str] = []
    found = Availabilities(clock, lambda text: text.replace("secret", "***"))
    found.on_doubt = doubts.append

    found.failed("claude", "It crashed: secret", started=True)
    found.failed("codex", "It was not found.", started=False)

    assert found.of("claude").state == "ready"
    assert found.of("claude").checks[0].words == "Failed at Jan 15, 08:00 UTC: It crashed: ***"
    assert doubts == ["codex"]


def test_a_removed_agent_is_forgotten(found: Availabilities) -> None:
    found.note("claude", MISSING)

    found.drop("claude")
    found.forget("claude", "command")

    assert found.of("claude") == Availability()
