"""Asks as the store returns them: answers, grants, who decided, and the options of each; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal

from app.markdown.writing import fence
from app.model import ask_wording as wording
from app.model.keys import PlaceKey
from app.model.types import TurnRef
from app.model.updates import Ask, AskFact, AskOption, AskRequest, GrantExtent


@dataclass(frozen=True, slots=True)
class OpenedAsk:
    """What became of a request: an ask to wait for, or one that was answered before."""

    ask: Ask
    posts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TakenAnswer:
    """What followed from answers, or from the lack of them."""

    posts: tuple[int, ...] = ()
    turns: tuple[TurnRef, ...] = ()
    """Turns that can run now."""
    asks: tuple[int, ...] = ()
    """Asks that are closed now."""
    sessions: tuple[int, ...] = ()


GrantState = Literal["active", "expired", "ended"]
"""A grant ends when it is taken back, or when its conversation starts over."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person granted: it counts for all turns of one agent in one place."""

    id: int
    session: int
    agent: str
    place: PlaceKey
    kind: str
    extent: GrantExtent
    subject: str
    """What people saw; a known secret in it is hidden."""
    granted_by: str
    granted_at: float
    expires_at: float
    state: GrantState
    ended_at: float | None = None
    ended_by: str = ""
    """Who took it back."""
    ask: int | None = None
    """The ask whose answer it was."""


@dataclass(frozen=True, slots=True)
class WantedGrants:
    """Which grants are listed; None: all of them."""

    agent: str | None = None
    place: PlaceKey | None = None
    session: int | None = None
    state: GrantState | None = None


GRANT_SECONDS: Final = 30 * 86_400.0
"""How long a grant holds: longer than most work in one thread, shorter than people forget it."""


Decided = Mapping[str, Any]

NOT_ASKED: Final[Decided] = {"how": "not asked"}
UNANSWERED: Final[Decided] = {"how": "unanswered"}
WITHDRAWN: Final[Decided] = {"how": "withdrawn"}


def by_rule(rule: object, *, allowed: bool) -> Decided:
    """Record the decision of an operator's rule."""
    return {"how": "rule", "rule": str(rule), "allowed": allowed}


def by_grant(grant: Grant) -> Decided:
    """Record a person's grant: who gave it, when, and what it covers."""
    return {
        "how": "grant",
        "grant": grant.id,
        "who": grant.granted_by,
        "at": grant.granted_at,
        "what": wording.granted(grant.kind, grant.extent, grant.subject),
        "allowed": True,
    }


def by_person(ask: Ask) -> Decided:
    """Record what a person answered."""
    kind = next((option.kind for option in ask.options if option.id == ask.answer), "")
    allowed = {"allow": True, "reject": False}.get(kind.partition("_")[0])
    return {
        "how": "person",
        "who": ask.answered_by or "",
        "answer": ask.answer_name,
        "allowed": allowed if ask.kind == "permission" else None,
    }


OWN: Final = "bridge:"
"""Prefix of the ids of the bridge's own options."""
GO_ON: Final = "bridge:go-on"
CANCEL: Final = "bridge:cancel"
CHOICE: Final = "choice"
"""The kind of an option that is one of several choices, neither yes nor no."""
HAND_OVER: Final = "bridge:hand-over:"
"""Hands the message over to another agent, whose name follows."""
PAUSE_OPTIONS: Final = (
    AskOption(GO_ON, wording.CONTINUE, "allow_once"),
    AskOption(CANCEL, wording.STOP, "reject_once"),
)
LATE: Final = "late"
"""The id of the question whether something that was found late is still wanted."""
LATE_OPTIONS: Final = (
    AskOption(GO_ON, wording.DO_IT, "allow_once"),
    AskOption(CANCEL, wording.DROP_IT, "reject_once"),
)
COLLEAGUES: Final = 3
"""Agents offered for a handover at once: more buttons would hide the first two."""
OPTIONS: Final = 20
"""Buttons of one agent's ask; the most seen so far is six."""

TAKE: Final = "bridge:take"
LEAVE: Final = "bridge:leave"


def with_colleagues(request: AskRequest, agents: Mapping[str, str]) -> AskRequest:
    """Offer to hand the queue over to other agents, each with its name for people."""
    offers = (
        AskOption(f"{HAND_OVER}{agent}", wording.GIVE_TO.format(agent=name), "allow_once")
        for agent, name in islice(agents.items(), COLLEAGUES)
    )
    return replace(request, options=(*request.options, *offers))


def receiver(ask: Ask, agent: str) -> str:
    """Return what people call the agent that an ask offers to hand over to."""
    label = next((each.name for each in ask.options if each.id == f"{HAND_OVER}{agent}"), "")
    return label.removeprefix(wording.GIVE_TO.format(agent="")) or agent


def find_allowing(options: Sequence[AskOption]) -> AskOption | None:
    """Find the option that allows one call; None if there is none, or several to choose from."""
    found = [option for option in options if option.kind == "allow_once"]
    return found[0] if len(found) == 1 else None


def find_refusing(options: Sequence[AskOption]) -> AskOption | None:
    """Find the option that refuses one call, else one that refuses all of its kind."""
    refusals = sorted(
        (option for option in options if option.kind in {"reject_once", "reject_always"}),
        key=lambda option: option.kind != "reject_once",
    )
    return refusals[0] if refusals else None


def of_agent(options: Sequence[AskOption]) -> tuple[AskOption, ...]:
    """Leave out options with a bridge id: they would mean more than they say."""
    return tuple(option for option in options if not option.id.startswith(OWN))


def only_once(options: Sequence[AskOption]) -> tuple[AskOption, ...]:
    """Leave out what an agent would remember by itself, where it also offers that for one call.

    Agents keep an "always" in files of their own, also in the folders of people, and mean by it
    what they like. An ask with several ways to say yes is a choice, which stays as it is.
    """
    if find_allowing(options) is None:
        return tuple(options)
    no_once = all(option.kind != "reject_once" for option in options)
    return tuple(
        option
        for option in options
        if option.kind != "allow_always" and (no_once or option.kind != "reject_always")
    )


def shorten_names(options: Sequence[AskOption]) -> tuple[AskOption, ...]:
    """Replace a yes and a no that agents wrote for their own terminal, if they stay apart."""
    short = tuple(replace(option, name=_short_name(option)) for option in options)
    return short if len({option.name for option in short}) == len(short) else tuple(options)


def _short_name(option: AskOption) -> str:
    phrase, short = wording.PHRASES.get(option.kind, (None, ""))
    return short if phrase and phrase.fullmatch(option.name.strip()) else option.name


def shortlist(options: Sequence[AskOption]) -> Sequence[AskOption]:
    """Limit the number of buttons, but always keep a way to say no."""
    shown = options[:OPTIONS]
    no = find_refusing(options)
    return shown if no is None or no in shown else (*shown[:-1], no)


def offer(branch: str, title: str, excerpt: str, deed: str) -> AskRequest:
    """Offer to begin a turn about a branch; the excerpt becomes data for the agent."""
    options = (
        AskOption(TAKE, deed, "allow_once"),
        AskOption(LEAVE, wording.LEAVE_IT, "reject_once"),
    )
    facts = (AskFact("quote", excerpt),) if excerpt else ()
    return AskRequest(branch, title, options, kind="offer", subject=excerpt, facts=facts)


def only_on_page(options: Sequence[AskOption]) -> tuple[AskOption, ...]:
    """Allow a yes only where the whole ask is shown; a no is possible everywhere."""
    return tuple(
        replace(option, on_page=not option.kind.startswith("reject")) for option in options
    )


def text_of(title: str, subject: str) -> str:
    """Say what is asked, with its exact subject unless the title contains that.

    A title is the agent's own words: it may describe a command in any way.
    """
    if all(line in title for line in subject.splitlines()):
        return title
    return f"{title}\n{fence(subject)}"


def label_options(options: Sequence[AskOption]) -> list[str]:
    """Label options so that they can be told apart: a name that repeats gets a number."""
    labels: list[str] = []
    taken: set[str] = set()
    for option in options:
        name, number = option.name.strip(), 1
        label = name
        while label.casefold() in taken:
            number += 1
            label = f"{name} ({number})"
        taken.add(label.casefold())
        labels.append(label)
    return labels
