"""Words what people and agents read about schedules; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from app.features.schedules.model import MOST_MISSED, Schedule
from app.model.asks import LEAVE, TAKE
from app.model.inbound import PauseReason
from app.model.text import count
from app.model.updates import AskFact, AskOption, AskRequest

HELP = (
    '`schedule "0 9 * * 1-5" TEXT` runs TEXT at these times · `schedule` lists · '
    "`schedule remove N`"
)
EXAMPLE = '`schedule "0 9 * * 1-5" Summarise the open pull requests.`'
REFUSED = "Not scheduled: {why}. Example: {example} runs on weekdays at 9:00."
HOW = (
    "Write the time as a cron expression in quotes, then what to do. Example: {example} runs on "
    "weekdays at 9:00. A time zone may follow the expression inside the quotes."
)
NO_WORDS = "it does not say what to do"
FROM_BOT = "only people can make schedules"
TOO_MANY = "{agent} has {most} schedules here already, the most for one place; remove one first"
MADE = (
    "Schedule {number} for {agent}: {words}\n"
    "{expression} ({zone}), next: {times}. To end it, send `schedule remove {number}`."
)
LISTED = "{number}. {agent}, {expression} ({zone}), by {creator}: {words} ({state})"
NEXT = "next: {time}"
NONE_HERE = "There are no schedules here. Example: {example} runs on weekdays at 9:00."
PROPOSAL = (
    "{agent} would like to be asked this again and again: {expression} ({zone}), next: {times}. "
    "Each run has the rights of the person who agrees."
)
AGREE = "Schedule it"
DECLINE = "Don't"
UNKNOWN = "There is no schedule {number} here. Send `schedule` for a list."
REMOVED = "Schedule {number} was removed."
PAUSED = "Schedule {number} is paused. To go on, send `schedule resume {number}`."
RESUMED = "Schedule {number} is active again, next: {time}."
RUNS = "Schedule {number} runs now."
BY = "By {by}: {words}"
PAUSES = {
    PauseReason.PERSON: "paused",
    PauseReason.FAILURES: "paused after three failures in a row",
    PauseReason.UNREACHABLE: "paused because the place cannot be reached",
    PauseReason.ABSENT: "paused because the agent is no longer available in the place",
    PauseReason.NO_TIMES: "paused because it has no further times",
}
ANNOUNCED = "Schedule {number} by {creator} ({rule}): {words}"
POINTED = "run of schedule {number} ({rule}), made by {creator}, who is not waiting for the answer"
MADE_UP = "{missed} missed while the bridge was not running; this run makes up for {them}."
SHOWN_CHARACTERS = 200
"""Of the words of a schedule, where they are quoted."""
SCHEDULE_CREATE = (
    "Propose that you are asked something again and again, here, by the clock. A person is asked "
    "first and becomes its creator: every run has that person's rights. Use it only when people "
    "want something regularly. Returns state: asked, and next, when it would run; you need not "
    "wait. Not more often than every {minutes} minutes; at most {most} schedules in one place."
)
SCHEDULE_ASKED = (
    "People are asked whether it is made. If a person agrees, it is made and they are told."
)
TOO_MANY_SCHEDULES = "You have {most} schedules here, the most for one place."
NOT_FOR_AGENTS = (
    "Another agent asked you: only the agent that people talk to can propose a schedule."
)


def refused(why: str) -> str:
    """Say why a schedule was not made, with an example."""
    return REFUSED.format(why=why, example=EXAMPLE)


def how() -> str:
    """Say how a schedule is made."""
    return HOW.format(example=EXAMPLE)


def moment(at: float, zone: str) -> str:
    """Write a time in a zone."""
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%a %Y-%m-%d %H:%M %Z}"


def proposal(
    agent: str, expression: str, zone: str, words: str, times: Sequence[float]
) -> AskRequest:
    """Ask people whether an agent gets a schedule that it proposes."""
    when = ", ".join(moment(at, zone) for at in times)
    title = PROPOSAL.format(agent=agent, expression=expression, zone=zone, times=when)
    options = (
        AskOption(TAKE, AGREE, "allow_once"),
        AskOption(LEAVE, DECLINE, "reject_once"),
    )
    rule = f"{expression} {zone}"
    facts = (AskFact("input", words),)
    return AskRequest(rule, title, options, kind="schedule", subject=words, facts=facts)


def made(schedule: Schedule, agent: str, times: Sequence[float]) -> str:
    """Say what was made, and when it runs."""
    return MADE.format(
        number=schedule.id,
        agent=agent,
        words=_shorten(schedule.words),
        expression=schedule.expression,
        zone=schedule.zone,
        times=", ".join(moment(at, schedule.zone) for at in times),
    )


def state(schedule: Schedule) -> str:
    """Say when a schedule runs next, or why it does not."""
    if schedule.state == "active":
        return NEXT.format(time=moment(schedule.due_at, schedule.zone))
    return PAUSES[PauseReason(schedule.reason)]


def listed(schedules: Iterable[tuple[Schedule, str]]) -> str:
    """List the schedules of a place, each with its agent's name."""
    lines = [
        LISTED.format(
            number=each.id,
            agent=agent,
            expression=each.expression,
            zone=each.zone,
            creator=each.creator.name,
            words=_shorten(each.words),
            state=state(each),
        )
        for each, agent in schedules
    ]
    return "\n".join(lines) or NONE_HERE.format(example=EXAMPLE)


def resumed(schedule: Schedule) -> str:
    """Say that a schedule is active again."""
    return RESUMED.format(number=schedule.id, time=moment(schedule.due_at, schedule.zone))


def announcement(number: int, creator: str, rule: str, missed: int, *, words: str) -> str:
    """Show people what is asked of an agent now, and why."""
    said = ANNOUNCED.format(number=number, creator=creator, rule=rule, words=_shorten(words))
    return "\n".join(filter(None, (said, _made_up(missed))))


def pointed(number: int, creator: str, rule: str, missed: int) -> str:
    """Tell an agent where its prompt comes from, in one line."""
    said = POINTED.format(number=number, creator=creator, rule=rule)
    return "; ".join(filter(None, (said, _made_up(missed))))


def _made_up(missed: int) -> str:
    if not missed:
        return ""
    runs = f"{count(min(missed, MOST_MISSED), 'run')} {'was' if missed == 1 else 'were'}"
    runs = f"More than {runs}" if missed > MOST_MISSED else runs
    return MADE_UP.format(missed=runs, them="it" if missed == 1 else "them")


def _shorten(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"
