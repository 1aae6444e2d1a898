"""What the simulated Linear refuses: content, signals and plans of another shape than published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    "thought": frozenset({"body"}),
    "action": frozenset({"action", "parameter"}),
    "elicitation": frozenset({"body"}),
    "response": frozenset({"body"}),
    "error": frozenset({"body"}),
}
_OPTIONAL: Final[Mapping[str, frozenset[str]]] = {"action": frozenset({"result"})}
_PLAN_STATES: Final = {"pending", "inProgress", "completed", "canceled"}


class LinearRefusal(Exception):
    """What Linear answers instead of doing something."""

    def __init__(self, message: str, code: str = "INPUT_ERROR") -> None:
        self.code = code
        super().__init__(message)


def check_content(content: Any, *, ephemeral: bool) -> None:
    """Refuse content of another shape than the published one.

    Raises:
        LinearRefusal: it is.
    """
    kind = str(content.get("type")) if isinstance(content, dict) else "none"
    if kind not in _REQUIRED:
        raise LinearRefusal(f"content.type {kind!r} is not one that agents may create")
    given = set(content) - {"type"}
    if not _REQUIRED[kind] <= given <= _REQUIRED[kind] | _OPTIONAL.get(kind, frozenset()):
        raise LinearRefusal(f"content of type {kind} has the fields {sorted(given)}")
    if not all(isinstance(content[name], str) for name in given):
        raise LinearRefusal(f"content of type {kind} must be made of text")
    if not content[min(_REQUIRED[kind])].strip():
        raise LinearRefusal(f"content of type {kind} is empty")
    if ephemeral and kind not in {"thought", "action"}:
        raise LinearRefusal("only thoughts and actions may be ephemeral")


def check_signal(kind: str, signal: str | None, metadata: Any) -> None:
    """Refuse a signal that agents may not give, or not like that.

    Raises:
        LinearRefusal: it is one.
    """
    if signal is None:
        return
    if kind != "elicitation" or signal not in {"select", "auth"}:
        raise LinearRefusal(f"the signal {signal} is not for agents' activities of type {kind}")
    if signal == "select":
        options = (metadata or {}).get("options")
        if not options or any(
            not {"value"} <= set(option) <= {"label", "value"} for option in options
        ):
            raise LinearRefusal("select needs options with a value")
        if len({option["value"] for option in options}) < len(options):
            raise LinearRefusal("select needs options that differ in their value")
    else:
        given = metadata or {}
        if not str(given.get("url", "")).startswith(("https://", "http://")):
            raise LinearRefusal("auth needs a url")
        if not set(given) <= {"url", "userId", "providerName"}:
            raise LinearRefusal(f"auth does not know {sorted(given)}")


def checked_plan(plan: Any) -> list[dict[str, str]]:
    """Refuse a plan that is no list of steps.

    Raises:
        LinearRefusal: it is none.
    """
    right = isinstance(plan, list) and all(
        isinstance(step, dict)
        and set(step) == {"content", "status"}
        and step["status"] in _PLAN_STATES
        for step in plan
    )
    if not right:
        raise LinearRefusal("plan must be a list of steps with content and status")
    return list(plan)
