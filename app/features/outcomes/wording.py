"""Words what became of a message, why nobody answered it, and what to do; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.model.gap_wording import gap_words
from app.model.inbound import Gap, Reason
from app.model.outcomes import Handling, MessageOutcome, Obstacle, Sighting, TracedMessage

HELP: Final = "`why`: what became of the message before; `why LINK`: of the one with that link"

OUTCOMES: Final[dict[MessageOutcome, str]] = {
    MessageOutcome.ANSWERED: "answered",
    MessageOutcome.STEERED: "taken into a running turn",
    MessageOutcome.JOINED: "answered together with an earlier message",
    MessageOutcome.QUEUED: "waiting for its turn",
    MessageOutcome.WORKING: "being worked on",
    MessageOutcome.WAITING: "waiting for a person to answer what the agent asked",
    MessageOutcome.CARRIED_OUT: "carried out",
    MessageOutcome.REFUSED: "refused",
    MessageOutcome.NOBODY_MEANT: "for no agent",
    MessageOutcome.STOPPED: "stopped",
    MessageOutcome.FAILED: "failed",
    MessageOutcome.UNSETTLED: "not decided yet",
}
RULES: Final[dict[str, str]] = {
    Reason.MENTIONED: "it mentions the agent",
    Reason.REPLY: "it replies to the agent",
    Reason.HANDED_OVER: "it hands the conversation over",
    Reason.HOLDER: "the conversation was handed over to the agent",
    Reason.ONLY_AGENT: "the agent is the only one there",
    Reason.ALL_LISTEN: "all agents listen there",
    Reason.LATEST: "the agent was addressed last",
    Reason.UNTAGGED_STOP: "it stops all work there",
    Reason.ANSWERS_ASK: "it answers what an agent asked",
    Reason.FROM_AGENT: "an agent wrote it",
    Reason.NOT_MENTIONED: "no agent was mentioned",
    Reason.NONE_HERE: "no agent was mentioned and none is there",
    Reason.SEVERAL_HERE: "several agents are there and none was mentioned",
    Reason.REFUSED: "its author may not use the agent",
}
_ENDS: Final[dict[MessageOutcome, str]] = {
    MessageOutcome.ANSWERED: "{agent} answered it.",
    MessageOutcome.STEERED: "It went into a turn of {agent} that was running, which answered it.",
    MessageOutcome.JOINED: "{agent} answered it together with an earlier message.",
    MessageOutcome.QUEUED: "It waits for {agent}, which has other work before it.",
    MessageOutcome.WORKING: "{agent} works on it.",
    MessageOutcome.WAITING: "{agent} waits until a person answers what it asked.",
    MessageOutcome.STOPPED: "The work of {agent} on it was stopped.",
    MessageOutcome.FAILED: "{agent} failed: {error}",
}
_REMEDIES: Final[dict[MessageOutcome, str]] = {
    MessageOutcome.QUEUED: "Send `queue now` there to have it done at once, or wait.",
    MessageOutcome.WAITING: "Answer the question in the conversation, or on the bridge's page.",
    MessageOutcome.STOPPED: "Send it again if it is still wanted.",
    MessageOutcome.FAILED: "Send it again; `agent-bridge doctor` tells whether the agent can work.",
    MessageOutcome.NOBODY_MEANT: "Mention the agent that is to answer, or send `listen all` there.",
    MessageOutcome.REFUSED: "Ask the operator: ALLOWED_USERS lists who may use agents besides.",
}
_OBSTACLES: Final[dict[Obstacle, tuple[str, str]]] = {
    Obstacle.ABSENT: (
        "The app of {agent} is not there, so {service} sends it nothing of {about}.",
        "Add the app there (Slack: `/invite` it into the channel; GitHub: install the App for the "
        "repository; Linear: give it access to the team), then send the message again.",
    ),
    Obstacle.NOT_SUBSCRIBED: (
        "{service} does not send such messages to the app of {agent}: it lacks {about}.",
        "Compare the app with `agent-bridge manifest {service} {name}`, add what is missing and "
        "install it again; then send the message again.",
    ),
    Obstacle.HOOK_OFF: (
        "{service} has no address to send the events of {agent} to: its webhook is off.",
        "Turn the webhook on in the app's settings; `agent-bridge doctor` shows its address.",
    ),
    Obstacle.GONE: (
        "{service} has no such message: it was deleted, or the link leads elsewhere.",
        "Copy the link of the message once more.",
    ),
    Obstacle.UNMENTIONED: (
        "It names none of the agents, so it is for no agent.",
        "Mention the agent that is to answer.",
    ),
    Obstacle.BY_BOT: (
        "A bot wrote it, and agents listen only to bots that ALLOWED_BOTS lists.",
        "Add the bot to ALLOWED_BOTS if agents should listen to it.",
    ),
    Obstacle.NOT_LISTENING: (
        "The bridge does not hear from {service} as {agent} now: {about}",
        "Do what it says; what was sent meanwhile is looked for afterwards.",
    ),
    Obstacle.UNKNOWN: (
        "{service} does not say what became of it: {about}",
        "Try again later; `agent-bridge doctor` checks the connection.",
    ),
}
NEVER_SENT: Final = (
    "{service} has the message and {agent} is there, but {service} never sent it to the bridge."
)
CHECK_EVENTS: Final = (
    "Send it again. If that happens more often, compare the app's events with "
    "`agent-bridge manifest {service} {name}`: without the event for such messages none arrives."
)
GAP: Final = "It never arrived: {gap}, and it was sent at {at}."
LOOKED_FOR: Final = "Such messages are looked for and answered late. Send it again to be sure."
UNKNOWN_MESSAGE: Final = "The bridge knows no such message, and no service knows the link."
COPY_LINK: Final = (
    "Give the link that the platform copies for the message, or its id. Links of the page, of "
    "Slack, GitHub and Linear are known, where an agent is connected."
)
NOTHING_BEFORE: Final = "No message before this one reached the bridge here."


@dataclass(frozen=True, slots=True)
class Step:
    """One moment of a message."""

    at: float
    what: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a message, in plain words."""

    outcome: str
    """A code: that of an outcome or of an obstacle, `never_sent`, `gap` or `unknown`."""
    words: str
    remedy: str = ""
    steps: tuple[Step, ...] = ()
    link: str = ""
    service: str = ""

    def lines(self, clock: Callable[[float], str]) -> Iterator[str]:
        """Write it for a conversation."""
        yield self.words
        for step in self.steps:
            yield f"• {clock(step.at)} {step.what}"
        if self.remedy:
            yield self.remedy


def explain(message: TracedMessage, title: Callable[[str], str]) -> Explanation:
    """Say what became of a message that reached the bridge."""
    handled = [_end(each, title) for each in message.handlings]
    if message.outcome is MessageOutcome.REFUSED:
        why = message.why or f"{RULES.get(message.rule, message.rule)}."
        handled = [f"It was refused: {why}"]
    elif message.outcome is MessageOutcome.NOBODY_MEANT:
        handled = [f"It is for no agent: {RULES.get(message.rule, message.rule)}."]
    elif message.outcome is MessageOutcome.CARRIED_OUT:
        handled = ["It was carried out: it is a command, or the answer to a question."]
    elif not handled:
        handled = [message.why or f"It failed: {message.rule}."]
    if message.late:
        handled.insert(0, "It did not arrive by itself: the bridge found it late.")
    return Explanation(
        outcome=message.outcome,
        words=" ".join(handled),
        remedy=_REMEDIES.get(message.outcome, ""),
        steps=tuple(_steps(message, title)),
        link=message.link,
        service=message.place.service,
    )


def _end(handling: Handling, title: Callable[[str], str]) -> str:
    error = handling.error or "see the conversation"
    return _ENDS[handling.outcome].format(agent=title(handling.agent), error=error)


def _steps(message: TracedMessage, title: Callable[[str], str]) -> Sequence[Step]:
    """List the moments of a message in order."""
    moments = [
        (message.sent_at, "sent"),
        (message.received_at, "received, stored and acknowledged"),
        (message.decided_at, f"decided: {RULES.get(message.rule, message.rule)}"),
    ]
    for each in message.handlings:
        who = title(each.agent)
        taken = max(each.queued_at or 0.0, message.decided_at)
        words = "joined a turn" if (each.queued_at or 0.0) < message.decided_at else "got a turn"
        moments += [
            (taken, f"{words} of {who}"),
            (each.first_sign_at, f"first sign of {who}"),
            (each.ended_at, f"{who}: {OUTCOMES[each.outcome]}"),
        ]
    return sorted((Step(at, what) for at, what in moments if at), key=lambda step: step.at)


def explain_sighting(sighting: Sighting, *, service: str, agent: str, name: str) -> Explanation:
    """Say why a message that the bridge does not have never arrived; `name` is in the settings."""
    known = {"service": service.capitalize(), "agent": agent, "about": sighting.about or "it"}
    steps = (Step(sighting.sent_at, "sent"),) if sighting.sent_at else ()
    if sighting.obstacle is None:
        words, remedy = NEVER_SENT.format(**known), CHECK_EVENTS.format(service=service, name=name)
        return Explanation("never_sent", words, remedy, steps, service=service)
    words, remedy = _OBSTACLES[sighting.obstacle]
    remedy = remedy.format(service=service, name=name)
    return Explanation(sighting.obstacle, words.format(**known), remedy, steps, service=service)


def explain_gap(sighting: Sighting, gap: Gap, clock: Callable[[float], str]) -> Explanation:
    """Say that a message was sent while the bridge could not hear."""
    assert sighting.sent_at is not None, "it lies in the gap"
    words = GAP.format(gap=gap_words(gap, clock), at=clock(sighting.sent_at))
    service = gap.adapter.partition(":")[0]
    steps = (
        Step(gap.began, "not heard from here on"),
        Step(sighting.sent_at, "sent"),
        Step(gap.ended, "heard again"),
    )
    return Explanation("gap", words, LOOKED_FOR, steps, service=service)
