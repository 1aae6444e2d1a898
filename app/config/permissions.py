"""Parses the permissions of an agent's entry: a preset, or rules in their order."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal, get_args

from pydantic import PlainValidator

from app.config.sources import refusal

Preset = Literal["read-only", "careful", "trusted"]
Decision = Literal["allow", "ask", "deny"]
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One rule of an agent's policy: a decision and the tool calls it applies to."""

    decision: Decision
    """What happens to a call that the rule matches."""
    kind: tuple[str, ...] = ()
    """The tool kinds it matches; none means all."""
    title: tuple[str, ...] = ()
    """Globs on the call's title; none means all."""
    path: tuple[str, ...] = ()
    """Globs on the paths the call touches; none means all."""
    command: tuple[str, ...] = ()
    """Globs on the command the call runs; none means all."""


_MATCHERS = tuple(field.name for field in fields(PermissionRule))[1:]
_RULE_REMEDY = (
    'Write a preset (read-only, careful, trusted) or a list of rules such as {"allow": "read"} or '
    '{"ask": {"kind": "edit", "path": "docs/**"}}.'
)


def _permissions(value: object) -> object:
    if isinstance(value, str) and value in get_args(Preset):
        return value
    if not isinstance(value, list):
        raise refusal("is neither a preset nor a list of rules", _RULE_REMEDY)
    return tuple(_rule(rule, number) for number, rule in enumerate(value, start=1))


def _rule(rule: object, number: int) -> PermissionRule:
    problem = f"rule {number} is not valid"
    if not isinstance(rule, dict) or len(rule) != 1:
        raise refusal(problem, _RULE_REMEDY)
    (decision, match) = next(iter(rule.items()))
    matchers = match if isinstance(match, dict) else {"kind": match}
    if decision not in get_args(Decision) or not set(matchers) <= set(_MATCHERS):
        raise refusal(problem, _RULE_REMEDY)
    globs = {name: _globs(value) for name, value in matchers.items()}
    if not all(globs.values()) or not set(globs.get("kind", ())) <= set(get_args(ToolKind)):
        raise refusal(problem, f"{_RULE_REMEDY} Kinds are {', '.join(get_args(ToolKind))}.")
    if decision == "allow" and "title" in globs and "kind" not in globs:
        raise refusal(
            f"rule {number} allows by title alone, and the agent writes the title",
            'Add the kind, such as {"allow": {"kind": "other", "title": "..."}}.',
        )
    return PermissionRule(decision, **globs)


def _globs(value: object) -> tuple[str, ...]:
    globs = [value] if isinstance(value, str) else value
    if not isinstance(globs, list) or not all(isinstance(glob, str) and glob for glob in globs):
        return ()
    return tuple(globs)


Permissions = Annotated[Preset | tuple[PermissionRule, ...], PlainValidator(_permissions)]
