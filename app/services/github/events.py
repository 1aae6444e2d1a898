"""Parses a GitHub event once and routes it by its name and action; pure.

Three events tell what became of an agent's pull request: `check_suite`, once per App that runs
checks; `status`, each time that a service reports on a commit; and `push`, the only sign that the
base branch moved and may conflict.

GitHub reports a pressed button only to the App that owns the check, and the App names its buttons:
only what was shown can be pressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import ValidationError

from app.errors import DeliveryUnreadable
from app.model.inbound import Answered, Chore, Heard, Inbound, Naming, News
from app.model.keys import PlaceKey
from app.model.proposals import own_branches
from app.services.github import wording
from app.services.github.messages import (
    EventReader,
    correct,
    hear_comment,
    hear_description,
    hear_label,
)
from app.services.github.names import SERVICE, Spot
from app.services.github.payloads import (
    ButtonEvent,
    CommentEvent,
    GitHubEvent,
    IssueEvent,
    LineCommentEvent,
    NamingEvent,
    PullEvent,
    PushEvent,
    RepositoryEvent,
    ReviewEvent,
    StatusEvent,
    SuiteEvent,
)
from app.services.github.reviews import correct_piece, hear_edit, hear_piece

BRANCHES = "refs/heads/"
BUTTONS = "check_run"
"""The event that says that a button was pressed."""
RENAMES = ("renamed", "transferred")
"""The actions that give a repository another name; any other event may show it too."""
STOP = {"label": wording.STOP, "description": wording.STOP_WORK, "identifier": "stop"}

_ANSWER = re.compile(r"ask-([0-9]{1,12})-([0-9]{1,2})")
_OF_PULL = re.compile(r"([0-9]{1,12}):.*")

E = TypeVar("E", bound=GitHubEvent)
Handler = Callable[[E, EventReader], Inbound | None]
Kind = Literal["checked", "merged", "closed", "reopened", "moved", "reviewed"]


@dataclass(frozen=True, slots=True)
class EventRoute:
    """How events of one name are parsed, and what reads them, by action."""

    payload: type[GitHubEvent]
    handlers: Mapping[str, Handler[Any]]


@dataclass(frozen=True, slots=True)
class Rerun:
    """People want the App's checks of a commit to run again; only that App hears of it."""

    repository: str
    commit: str


def parse(event: str, body: bytes) -> GitHubEvent:
    """Parse an event; an event without a route is parsed only for where it comes from.

    Raises:
        DeliveryUnreadable: it is not a valid GitHub event.
    """
    try:
        return (ROUTES[event].payload if event in ROUTES else GitHubEvent).model_validate_json(body)
    except ValidationError as error:
        raise DeliveryUnreadable(f"not a valid GitHub {event} event") from error


def interpret(event: str, payload: GitHubEvent, reader: EventReader) -> Inbound | None:
    """Tell what an event means for an agent; None if nothing."""
    handler = ROUTES[event].handlers.get(payload.action) if event in ROUTES else None
    return handler(payload, reader) if handler is not None else None


def name_repository(payload: GitHubEvent, host: str) -> Naming | None:
    """Return the repository that an event is about, and its name; None if there is none."""
    where = payload.repository
    if where is None:
        return None
    before = ""
    if isinstance(payload, NamingEvent) and payload.action in RENAMES:
        owner, _, name = where.full_name.partition("/")
        owner = payload.old_organization or payload.old_user or owner
        before = f"{owner}/{payload.old_name or name}"
    return Naming(SERVICE, host, where.id, where.full_name, before)


def name_button(ask: int, number: int) -> str:
    """Name the button for one of the options of an ask."""
    return f"ask-{ask}-{number}"


def _hear_checks(event: SuiteEvent, reader: EventReader) -> News | None:
    suite = event.check_suite
    # A fork has no branch here; what our own Apps show does not check anything.
    if not suite.head_branch or reader.us.is_app(suite.app):
        return None
    return _news("checked", event, suite.head_branch, suite.head_sha)


def _hear_status(event: StatusEvent, reader: EventReader) -> News | None:
    if event.state == "pending":
        return None
    heads = [each.name for each in event.branches if each.sha == event.sha]
    mine = [name for name in heads if name.startswith(own_branches(reader.agent))]
    return _news("checked", event, mine[0], event.sha) if mine else None


def _hear_push(event: PushEvent, _reader: EventReader) -> News | None:
    if event.deleted or not event.ref.startswith(BRANCHES):
        return None
    return _news("moved", event, event.ref.removeprefix(BRANCHES), event.after)


def _hear_end(event: PullEvent, reader: EventReader) -> News | None:
    """Hear that the agent's own pull request, from a branch of the repository, is over or not."""
    pull, home = event.issue, event.issue.head.repo
    is_here = home is not None and home.id == event.repository.id
    if not is_here or reader.us.agent(pull.user) != reader.agent:
        return None
    if event.action == "reopened":
        return _news("reopened", event, pull.head.ref, pull.updated_at)
    kind: Kind = "merged" if pull.merged else "closed"
    return _news(kind, event, pull.head.ref, pull.closed_at or "", pull.html_url)


def _hear_verdict(event: ReviewEvent, reader: EventReader) -> News | None:
    """Hear a review without words, which starts nothing."""
    pull = event.pull
    if reader.us.agent(pull.user) != reader.agent or pull.head.repo is None:
        return None
    return _news("reviewed", event, pull.head.ref, str(event.part.id))


def _news(kind: Kind, event: RepositoryEvent, branch: str, mark: str, link: str = "") -> News:
    name = event.repository.full_name
    return News(kind, PlaceKey(SERVICE, f"{name} {branch}"), name, branch, mark, link)


def _hear_button(event: ButtonEvent, reader: EventReader) -> Answered | Heard | None:
    run = event.check_run
    if not reader.us.is_app(run.app, reader.agent):
        return None
    speaker = reader.us.speaker(event.sender)
    if answer := _ANSWER.fullmatch(event.pressed):
        return Answered(int(answer[1]), int(answer[2]), speaker)
    place = _OF_PULL.fullmatch(run.external_id or "")
    if event.pressed != STOP["identifier"] or place is None:
        return None
    spot = Spot(event.repository.full_name, int(place[1]))
    return Heard(
        place=spot.place,
        external=str(spot),
        message_id=f"stop-{run.id}-{event.sender.id}",
        speaker=speaker,
        text="stop",
        spoken="stop",
        mentions=(reader.agent,),
        only_agent_answers=False,
    )


def _hear_rerun(event: ButtonEvent | SuiteEvent, reader: EventReader) -> Chore | None:
    run = event.check_run if isinstance(event, ButtonEvent) else event.check_suite
    if not run.head_sha or not reader.us.is_app(run.app, reader.agent):
        return None
    return Chore(Rerun(event.repository.full_name, run.head_sha))


def _route(payload: type[E], handlers: Mapping[str, Handler[E]]) -> EventRoute:
    """Join a payload with its handlers, so that the type checker sees that they fit."""
    return EventRoute(payload, handlers)


def _first(*handlers: Handler[E]) -> Handler[E]:
    """Read an event by the first handler that it concerns."""

    def read(event: E, reader: EventReader) -> Inbound | None:
        found = (handler(event, reader) for handler in handlers)
        return next((each for each in found if each is not None), None)

    return read


ROUTES: Mapping[str, EventRoute] = {
    "issues": _route(
        IssueEvent,
        {
            "opened": hear_description,
            "edited": _first(hear_description, correct),
            "labeled": hear_label,
        },
    ),
    "issue_comment": _route(
        CommentEvent,
        {"created": hear_comment, "edited": _first(hear_comment, correct), "deleted": correct},
    ),
    "pull_request": _route(
        PullEvent,
        {
            "opened": hear_description,
            "edited": _first(hear_description, correct),
            "labeled": hear_label,
            "closed": _hear_end,
            "reopened": _hear_end,
        },
    ),
    "pull_request_review": _route(
        ReviewEvent,
        {
            "submitted": _first(hear_piece, _hear_verdict),
            "dismissed": _hear_verdict,
            "edited": _first(hear_edit, correct_piece),
        },
    ),
    "pull_request_review_comment": _route(
        LineCommentEvent,
        {
            "created": hear_piece,
            "edited": _first(hear_edit, correct_piece),
            "deleted": correct_piece,
        },
    ),
    "check_suite": _route(SuiteEvent, {"completed": _hear_checks, "rerequested": _hear_rerun}),
    "status": _route(StatusEvent, {"": _hear_status}),
    "push": _route(PushEvent, {"": _hear_push}),
    "repository": _route(NamingEvent, {}),
    BUTTONS: _route(ButtonEvent, {"requested_action": _hear_button, "rerequested": _hear_rerun}),
}
"""The events that an App subscribes to; `repository` events only give the name."""
