"""From an event of GitHub to news of a pull request that an agent may have opened; pure.

Checks are heard of by `check_suite`, once per App that runs some, and by `status`, each time that a
service says something about a commit; conflicts by `push`, since nothing else says that the branch
moved which a pull request is for.
"""

from __future__ import annotations

from typing import Literal

from app.core.inbound import News
from app.core.keys import PlaceKey
from app.core.workspaces import own_branches
from app.services.github.envelope import opened
from app.services.github.mentions import Identities
from app.services.github.names import SERVICE
from app.services.github.naming import NameOf, as_given
from app.services.github.payloads import Payload, Repository

NEWS: dict[str, tuple[str, ...]] = {
    "pull_request": ("closed", "reopened"),
    "check_suite": ("completed",),
    "status": ("",),
    "push": ("",),
}
"""The events that can be news."""
BRANCHES = "refs/heads/"

Kind = Literal["checked", "merged", "closed", "reopened", "moved"]


def read(
    event: str,
    body: bytes,
    agent: str,
    us: Identities,
    installation: str | None = None,
    name_of: NameOf = as_given,
) -> News | None:
    """Understand an event; None if it is no news for this agent.

    Raises:
        DeliveryUnreadable: it is not what GitHub sends.
    """
    payload = opened(event, body, NEWS, installation, name_of)
    where = payload.repository if payload is not None else None
    if payload is None or where is None:
        return None
    match event:
        case "check_suite":
            return _checked(payload, where, us)
        case "status":
            return _reported(payload, where, agent)
        case "push":
            return _moved(payload, where)
        case _:
            return _ended(payload, where, agent, us)


def _checked(payload: Payload, where: Repository, us: Identities) -> News | None:
    suite = payload.check_suite
    # Of a fork there is no branch; what our own Apps show is no check of anything.
    if suite is None or not suite.head_branch or (suite.app and us.is_app(suite.app.slug)):
        return None
    return _news("checked", where, suite.head_branch, suite.head_sha)


def _reported(payload: Payload, where: Repository, agent: str) -> News | None:
    if payload.state == "pending":
        return None
    heads = [each.name for each in payload.branches if each.commit.sha == payload.sha]
    mine = [name for name in heads if name.startswith(own_branches(agent))]
    return _news("checked", where, mine[0], payload.sha) if mine else None


def _moved(payload: Payload, where: Repository) -> News | None:
    if payload.deleted or not payload.ref.startswith(BRANCHES):
        return None
    return _news("moved", where, payload.ref.removeprefix(BRANCHES), payload.after)


def _ended(payload: Payload, where: Repository, agent: str, us: Identities) -> News | None:
    pull = payload.pull_request
    if pull is None or pull.user is None or pull.head.repo is None or pull.head.repo.id != where.id:
        return None
    author = us.agent(bot_id=pull.user.id, login=pull.user.login, is_bot=pull.user.is_bot)
    if author != agent:
        return None
    if payload.action == "reopened":
        return _news("reopened", where, pull.head.ref, pull.updated_at)
    kind: Kind = "merged" if pull.merged else "closed"
    return _news(kind, where, pull.head.ref, pull.closed_at or "", pull.html_url)


def _news(kind: Kind, where: Repository, branch: str, mark: str, link: str = "") -> News:
    place = PlaceKey(SERVICE, f"{where.full_name} {branch}")
    return News(kind, place, where.full_name, branch, mark, link)
