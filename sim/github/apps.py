"""What an App calls as itself: who it is, where it is installed, tokens, its delivery log."""

from __future__ import annotations

from sim.github.answers import Refused, Reply, not_found
from sim.github.calls import LEVELS, Asked, Routes
from sim.github.hooks import Attempt
from sim.github.state import Installation, stamp

TOKEN_SECONDS = 3600

routes = Routes()


@routes.on("GET", "/app")
def _app(asked: Asked) -> Reply:
    return Reply(200, asked.app.json())


@routes.on("GET", "/app/hook/config")
def _hook_config(asked: Asked) -> Reply:
    return Reply(200, {"url": asked.app.hook_url, "content_type": "json"})


@routes.on("GET", "/app/installations")
def _installations(asked: Asked) -> Reply:
    return asked.page([each.json() for each in _own(asked)])


@routes.on("POST", "/app/installations/{number}/access_tokens")
def _make_token(asked: Asked) -> Reply:
    found = [each for each in _own(asked) if str(each.id) == asked.part("number")]
    if not found:
        raise not_found()
    installation = found[0]
    if installation.suspended:
        raise Refused(403, "This installation has been suspended")
    reached = {asked.github.by_id[each].name: each for each in installation.repositories}
    names = asked.request.data.get("repositories", list(reached))
    if not set(names) <= set(reached):
        raise Refused(
            422,
            "There is at least one repository that does not exist or is not accessible to the "
            "parent installation.",
        )
    wanted = asked.request.data.get("permissions") or asked.app.permissions
    if not all(is_granted(asked.app.permissions, name, level) for name, level in wanted.items()):
        raise Refused(422, "The permissions requested are not granted to this installation.")
    reach = {reached[name] for name in names}
    token = asked.github.make_token(installation, reach, wanted, TOKEN_SECONDS)
    made = {"token": token.value, "expires_at": stamp(token.until), "permissions": wanted}
    return Reply(201, made)


@routes.on("GET", "/installation/repositories", "metadata", "read")
def _opened(asked: Asked) -> Reply:
    assert asked.token is not None, "its route wants one"
    found = [asked.github.by_id[each] for each in sorted(asked.token.repositories)]
    shown = asked.page([each.json() for each in found])
    return Reply(200, {"total_count": len(found), "repositories": shown.body}, shown.headers)


@routes.on("GET", "/app/hook/deliveries")
def _deliveries(asked: Asked) -> Reply:
    return asked.page([each.json() for each in asked.github.hooks.of(asked.app)])


@routes.on("GET", "/app/hook/deliveries/{number}")
def _delivery(asked: Asked) -> Reply:
    attempt = _attempt(asked)
    sent = {"headers": attempt.event.headers(), "payload": attempt.event.payload}
    return Reply(200, attempt.json() | {"request": sent, "response": {}})


@routes.on("POST", "/app/hook/deliveries/{number}/attempts")
def _redeliver(asked: Asked) -> Reply:
    attempt, hooks = _attempt(asked), asked.github.hooks
    asked.github.later(lambda: hooks.deliver(attempt.event, redelivery=True))
    return Reply(202, {})


@routes.on("GET", "/repos/{owner}/{name}/installation")
def _installation(asked: Asked) -> Reply:
    name = f"{asked.part('owner')}/{asked.part('name')}".lower()
    repository = asked.github.repositories.get(name)
    for each in _own(asked):
        if repository is not None and repository.id in each.repositories:
            return Reply(200, each.json())
    raise not_found()


def is_granted(granted: dict[str, str], name: str, level: str) -> bool:
    """Tell whether a permission is among those granted."""
    held = granted.get(name, "")
    return held in LEVELS and LEVELS.index(held) >= LEVELS.index(level)


def _own(asked: Asked) -> list[Installation]:
    return [each for each in asked.github.installations if each.app is asked.app]


def _attempt(asked: Asked) -> Attempt:
    for attempt in asked.github.hooks.of(asked.app):
        if str(attempt.id) == asked.part("number"):
            return attempt
    raise not_found()
