"""Defines the phases of a running turn, the events that change them, and every transition; pure.

An event that a phase does not list leaves the phase as it is: a turn that was stopped cannot be
prompted, parked or shipped any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Phase(StrEnum):
    """What a running turn does now."""

    PREPARING = "preparing"
    """Finds its repository, waits for its folder, starts its agent, commits its prompt."""
    WORKING = "working"
    """The agent has its prompt."""
    PARKING = "parking"
    """The commit that lets it wait for people without a process is under way."""
    PARKED = "parked"
    """It waits for people without a process; this run is over."""
    OVERDUE = "overdue"
    """It reached its time limit; the agent was told to end."""
    UNASKED = "unasked"
    """The agent did something without asking, and was told to end."""
    SHIPPING = "shipping"
    """Its work is being delivered."""
    ENDING = "ending"
    """The agent has ended; only the end of the turn is left to write."""
    STOPPING = "stopping"
    """A person stopped it: nothing the agent still does is shown."""
    LEAVING = "leaving"
    """The bridge shuts down; the next start goes on with the turn."""


class Event(StrEnum):
    """What happens to a running turn."""

    PROMPT = "prompt"
    """The prompt is committed and goes to the agent now."""
    PARK = "park"
    """It has only waited for people for a while."""
    PARKED = "parked"
    """The store has it as parked."""
    ANSWERED = "answered"
    """The store did not park it: a person answered first."""
    OVERDUE = "overdue"
    """It took longer than a turn may take."""
    UNASKED = "unasked"
    """The agent did something without asking, and that ends the turn."""
    SHIP = "ship"
    """Its work is to be delivered."""
    END = "end"
    """The agent ended, or the turn cannot go on."""
    STOP = "stop"
    """A person stopped it."""
    DEFER = "defer"
    """The agent asks, and no answer can arrive before the next start."""
    SHUTDOWN = "shutdown"
    """The bridge shuts down."""


_ALWAYS: Final = {Event.STOP: Phase.STOPPING, Event.SHUTDOWN: Phase.LEAVING}
_PROMPTED: Final = {
    **_ALWAYS,
    Event.OVERDUE: Phase.OVERDUE,
    Event.UNASKED: Phase.UNASKED,
    Event.DEFER: Phase.LEAVING,
    Event.END: Phase.ENDING,
}
_TOLD_TO_END: Final = {**_ALWAYS, Event.PARKED: Phase.PARKED}
_OVER: Final = {Event.SHUTDOWN: Phase.LEAVING}

TRANSITIONS: Final[Mapping[Phase, Mapping[Event, Phase]]] = MappingProxyType(
    {
        Phase.PREPARING: {**_ALWAYS, Event.PROMPT: Phase.WORKING, Event.END: Phase.ENDING},
        Phase.WORKING: {**_PROMPTED, Event.PARK: Phase.PARKING},
        Phase.PARKING: {
            **_PROMPTED,
            Event.PARKED: Phase.PARKED,
            Event.ANSWERED: Phase.WORKING,
        },
        Phase.OVERDUE: _TOLD_TO_END,
        Phase.UNASKED: _TOLD_TO_END,
        Phase.ENDING: {**_ALWAYS, Event.SHIP: Phase.SHIPPING, Event.UNASKED: Phase.UNASKED},
        Phase.SHIPPING: {**_ALWAYS, Event.END: Phase.ENDING, Event.UNASKED: Phase.UNASKED},
        # A commit that parks a turn may still be under way when a person stops it.
        Phase.STOPPING: {**_OVER, Event.PARKED: Phase.PARKED},
        Phase.PARKED: _OVER,
        Phase.LEAVING: {},
    }
)

PROMPTED: Final = frozenset({Phase.WORKING, Phase.PARKING, Phase.OVERDUE, Phase.UNASKED})
"""The agent may be working on its prompt: a stop is sent to the agent."""
CANCELLABLE: Final = frozenset({Phase.PREPARING, Phase.SHIPPING})
"""A stop cancels the turn's task. Not in ENDING: an end that has begun is completed."""
STAGES: Final = {Phase.PREPARING: "start", Phase.WORKING: "prompt", Phase.SHIPPING: "ship"}
"""The names of phases in traces."""
MEASURED: Final = tuple(STAGES)
"""Phases whose duration is worth a look."""
CLOSED: Final = frozenset({Phase.STOPPING, Phase.PARKED, Phase.LEAVING})
"""Nothing the agent says or asks counts any more."""


def advance(phase: Phase, event: Event) -> Phase:
    """Return the phase that follows an event."""
    return TRANSITIONS[phase].get(event, phase)
