"""Every pair of a phase and an event of a running turn, and every way that a turn may take."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.phase import CANCELLABLE, CLOSED, PROMPTED, TRANSITIONS, Event, Phase, advance

PAIRS = list(product(Phase, Event))
CHANGES: dict[tuple[str, str], str] = {
    ("preparing", "prompt"): "working",
    ("preparing", "end"): "ending",
    ("working", "park"): "parking",
    ("working", "overdue"): "overdue",
    ("working", "unasked"): "unasked",
    ("working", "defer"): "leaving",
    ("working", "end"): "ending",
    ("parking", "parked"): "parked",
    ("parking", "answered"): "working",
    ("parking", "overdue"): "overdue",
    ("parking", "unasked"): "unasked",
    ("parking", "defer"): "leaving",
    ("parking", "end"): "ending",
    ("overdue", "parked"): "parked",
    ("unasked", "parked"): "parked",
    ("stopping", "parked"): "parked",
    ("ending", "ship"): "shipping",
    ("ending", "unasked"): "unasked",
    ("shipping", "end"): "ending",
    ("shipping", "unasked"): "unasked",
    **{
        (phase, "stop"): "stopping"
        for phase in ("preparing", "working", "parking", "overdue", "unasked", "ending", "shipping")
    },
    **{(phase, "shutdown"): "leaving" for phase in Phase if phase != "leaving"},
}
"""All that may change; whatever is not here changes nothing."""

ways = st.lists(st.sampled_from(Event), max_size=30)


def follow(events: list[Event], phase: Phase = Phase.PREPARING) -> list[Phase]:
    """List the phases that a turn goes through."""
    phases = [phase]
    for event in events:
        phases.append(advance(phases[-1], event))
    return phases


@pytest.mark.parametrize(("phase", "event"), PAIRS, ids=lambda each: each.value)
def test_every_event_leads_from_every_phase_where_it_should(phase: Phase, event: Event) -> None:
    assert advance(phase, event) == CHANGES.get((phase, event), phase)


def test_every_phase_is_listed_and_can_be_reached() -> None:
    reached = {Phase.PREPARING}
    while more := {advance(*pair) for pair in product(reached, Event)} - reached:
        reached |= more

    assert set(TRANSITIONS) == reached == set(Phase)


def test_a_shutdown_ends_every_way() -> None:
    assert {advance(phase, Event.SHUTDOWN) for phase in Phase} == {Phase.LEAVING}
    assert {advance(Phase.LEAVING, event) for event in Event} == {Phase.LEAVING}


@given(before=ways, after=ways)
def test_a_turn_that_was_stopped_is_never_prompted_shipped_or_done(
    before: list[Event], after: list[Event]
) -> None:
    stopped = follow([*before, Event.STOP])[-1]

    later = follow(after, stopped)

    assert set(later) <= CLOSED


@given(ways)
def test_what_is_closed_stays_closed(events: list[Event]) -> None:
    phases = follow(events)
    closed = [phase in CLOSED for phase in phases]

    assert closed == sorted(closed)


@given(ways)
def test_only_a_turn_that_was_prompted_is_overdue_or_being_parked(
    events: list[Event],
) -> None:
    phases = follow(events)
    first = phases.index(Phase.WORKING) if Phase.WORKING in phases else len(phases)

    assert not {Phase.PARKING, Phase.OVERDUE} & set(phases[:first])


def test_a_stop_has_one_effect_in_each_phase() -> None:
    assert not CANCELLABLE & PROMPTED
    assert not CLOSED & (CANCELLABLE | PROMPTED)
    assert set(Phase) - CLOSED - CANCELLABLE - PROMPTED == {Phase.ENDING}
