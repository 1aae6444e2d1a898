"""The options of an ask: which of the agent's fits a decision, and those of the bridge; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.core.updates import AskOption, AskRequest

OWN: Final = "bridge:"
"""How the ids of the bridge's own options begin."""
SESSION: Final = "bridge:session"
"""Answers yes, and so to every further call of this kind until the conversation begins afresh."""
GO_ON: Final = "bridge:go-on"
CANCEL: Final = "bridge:cancel"
CHOICE: Final = "choice"
"""The kind of an option that is one of many things, and neither a yes nor a no."""
HAND_OVER: Final = "bridge:hand-over:"
"""Gives the words to another agent, whose name follows."""
PAUSE_OPTIONS: Final = (
    AskOption(GO_ON, "Go on", "allow_once"),
    AskOption(CANCEL, "Cancel", "reject_once"),
)
COLLEAGUES: Final = 3
"""Agents that a limited one can hand over to at once: more buttons would hide the first two."""

OPTIONS: Final = 20
"""Buttons of one ask of an agent; the most that one was seen to offer is six."""

TAKE: Final = "bridge:take"
LEAVE: Final = "bridge:leave"

_KINDS: Final = {
    "read": "reading",
    "edit": "edits",
    "delete": "deletions",
    "move": "moves",
    "search": "searches",
    "execute": "commands",
    "fetch": "fetches",
}


def with_colleagues(request: AskRequest, agents: Sequence[str]) -> AskRequest:
    """Offer to give what waits to one of some other agents."""
    offers = (
        AskOption(f"{HAND_OVER}{agent}", f"Hand over to {agent}", "allow_once")
        for agent in agents[:COLLEAGUES]
    )
    return replace(request, options=(*request.options, *offers))


def allowing(options: Sequence[AskOption]) -> AskOption | None:
    """Find the option that allows one call; None if there is none, or several to choose from."""
    found = [option for option in options if option.kind == "allow_once"]
    return found[0] if len(found) == 1 else None


def refusing(options: Sequence[AskOption]) -> AskOption | None:
    """Find the option that refuses one call, else one that refuses all of its kind."""
    refusals = sorted(
        (option for option in options if option.kind in {"reject_once", "reject_always"}),
        key=lambda option: option.kind != "reject_once",
    )
    return refusals[0] if refusals else None


def of_agent(options: Sequence[AskOption]) -> tuple[AskOption, ...]:
    """Leave out what calls itself one of the bridge's own: it would mean more than it says."""
    return tuple(option for option in options if not option.id.startswith(OWN))


def shortlist(options: Sequence[AskOption]) -> Sequence[AskOption]:
    """Leave out what would be too many buttons, but never the last way to say no."""
    shown = options[:OPTIONS]
    no = refusing(options)
    return shown if no is None or no in shown else (*shown[:-1], no)


def with_session_offer(request: AskRequest) -> AskRequest:
    """Offer to allow a kind of call for this session, where the agent itself offers no always."""
    words = _KINDS.get(request.tool_kind)
    always = any(option.kind == "allow_always" for option in request.options)
    if words is None or always or allowing(request.options) is None:
        return request
    offer = AskOption(SESSION, f"Allow {words} for this session", "allow_always")
    return replace(request, options=(*request.options, offer))


def offer(branch: str, title: str, excerpt: str, deed: str) -> AskRequest:
    """Offer to begin a turn about a branch; what it is about becomes data for the agent."""
    options = (AskOption(TAKE, deed, "allow_once"), AskOption(LEAVE, "Leave it", "reject_once"))
    return AskRequest(branch, title, options, kind="offer", subject=excerpt)


def unsaid(title: str, subject: str) -> str:
    """Tell what exactly an ask is about, unless its title says that.

    A title is the agent's own words: it may call a command whatever it likes.
    """
    return "" if all(line in title for line in subject.splitlines()) else subject


def text_of(title: str, subject: str) -> str:
    """Say what is asked, with exactly what it is about unless the title says that."""
    if not unsaid(title, subject):
        return title
    fence = "```"
    while fence in subject:
        fence += "`"
    return f"{title}\n{fence}\n{subject}\n{fence}"


def meant(text: str, options: Sequence[AskOption]) -> str | None:
    """Find the option that a whole message names, by its name or by its id.

    Of `owner/name` the name alone will do, if no other choice ends so.
    """
    word = text.strip().casefold()
    for option in options:
        if word and word in {option.name.strip().casefold(), option.id.casefold()}:
            return option.id
    ending = [
        option.id
        for option in options
        if option.kind == CHOICE and word == option.id.casefold().rpartition("/")[2]
    ]
    return ending[0] if len(ending) == 1 else None
