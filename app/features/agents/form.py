"""Fills in the form of an agent's entry, and reads what people write in it; pure.

No value of a variable is ever shown. What is wrong with a value says the registry, not the form.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.errors import ConfigurationError
from app.features.agents.fields import FIELDS, GROUPS, RULES, AgentField, Group, Offered
from app.model.agents import Choices

ENV = "env"
_OF_ENTRIES = ("agents", "AGENTS_JSON")
"""What errors name as the setting when the entry itself is wrong."""
NONE = "none"
"""What people write for a list of what is allowed that is empty."""
_AT_KEY = re.compile(r"agent '[^']*': (?P<words>(?P<key>[a-z_]+).*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Around:
    """What fields offer that the entry itself does not say."""

    drivers: Offered = ()
    agents: Sequence[str] = ()
    """The names of agents that can be extended."""
    command: str = ""
    """The command of its driver."""
    offers: Choices = Choices()  # noqa: RUF009 - frozen


def groups(
    entry: Mapping[str, Any],
    around: Around,
    *,
    former: Mapping[str, Any] | None = None,
    problems: Mapping[str, str] | None = None,
) -> Iterator[Group]:
    """Fill in the fields from an entry."""
    for group in GROUPS:
        yield replace(
            group,
            fields=tuple(
                _fill(_offer(field, around), entry, former or {}, problems or {})
                for field in group.fields
            ),
        )


def _fill(
    field: AgentField,
    entry: Mapping[str, Any],
    former: Mapping[str, Any],
    problems: Mapping[str, str],
) -> AgentField:
    value = entry.get(field.key)
    return replace(
        field,
        value=show(field, value),
        rules=_json(value) if field.kind == "permissions" and isinstance(value, list) else "",
        problem=problems.get(field.key, ""),
        former=show(field, former[field.key]) if field.key in former else None,
    )


def _offer(field: AgentField, around: Around) -> AgentField:
    offers = around.offers
    match field.key:
        case "driver":
            return replace(field, choices=around.drivers)
        case "extends":
            return replace(field, choices=tuple((name, f"@{name}") for name in around.agents))
        case "command":
            return replace(field, usual=around.command)
        case "model" if offers.models:
            return replace(field, choices=tuple((each.id, each.name) for each in offers.models))
        case "mode" if offers.modes:
            return replace(field, choices=tuple((each.id, each.name) for each in offers.modes))
        case "options" if offers.options:
            listed = "; ".join(
                f"{each.id}={'|'.join(value.id for value in each.values) or 'true|false'}"
                for each in offers.options
            )
            return replace(field, hint=f"{field.hint} It offers {listed}.")
    return field


def show(field: AgentField, value: Any) -> str:
    """Show a value of an entry as people write it."""
    match field.kind:
        case "flag":
            return "" if value is False else "on"
        case "command" if isinstance(value, list | tuple):
            return shlex.join(map(str, value))
        case "permissions" if isinstance(value, list):
            return RULES
        case "allowed" if isinstance(value, list | tuple) and not value:
            return NONE
        case "words" | "allowed" if isinstance(value, list | tuple):
            return "\n".join(map(str, value))
        case "pairs" if isinstance(value, Mapping):
            return "\n".join(f"{key}={_json_word(each)}" for key, each in value.items())
        case "number" if isinstance(value, int | float):
            return f"{value:g}"
    return "" if value is None else str(value)


def read(field: AgentField, form: Mapping[str, str]) -> Any:
    """Read what people wrote in a field; None if it is empty.

    Raises:
        ConfigurationError: a line is not NAME=value.
    """
    text = form.get(field.key, "").replace("\r\n", "\n").strip()
    match field.kind:
        case "flag":
            return None if text else False
        case "allowed" if text.casefold() == NONE:
            return []
        case "words" | "allowed":
            return re.split(r"[\s,]+", text) if text else None
        case "pairs":
            return {name: _word(value) for name, value in pairs(text, field.key).items()} or None
        case "number":
            return _number(text) if text else None
        case "permissions" if text == RULES:
            return _rules(form.get(RULES, ""))
    return text or None


def pairs(text: str, key: str = ENV) -> dict[str, str]:
    """Read lines of NAME=value.

    Raises:
        ConfigurationError: a line is something else.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        name, sign, value = line.strip().partition("=")
        if not line.strip():
            continue
        if not sign or not name.strip():
            problem = f"{key} line {number} is not NAME=value"
            raise ConfigurationError("agents", problem, "Write one variable per line.")
        found[name.strip()] = value.strip()
    return found


def read_variables(form: Mapping[str, str]) -> dict[str, str | None]:
    """Read the variables that a form adds, replaces or, with None, removes.

    Raises:
        ConfigurationError: there is none, a value is empty, or a line is not NAME=value.
    """
    if not (variable := form.get("variable", "")):
        if not (given := pairs(form.get(ENV, ""))):
            raise ConfigurationError("agents", "env is empty", "Write NAME=value.")
        return {**given}
    if form.get("do") == "remove":
        return {variable: None}
    if not (value := form.get("value", "").strip()):
        raise ConfigurationError("agents", "env value is empty", "Write the new one, or remove it.")
    return {variable: value}


def patch(now: Any, then: Any) -> Any:
    """Return the change that makes a key what it was; a table is changed name by name."""
    if isinstance(now, Mapping) and isinstance(then, Mapping | None):
        return {**dict.fromkeys(now), **(then or {})}
    return then


def locate(error: Exception) -> tuple[str, str]:
    """Return the key that an error is about, empty if it names none, and its words."""
    if not isinstance(error, ConfigurationError):
        return "", _sentence(str(error))
    found = _AT_KEY.match(error.problem)
    words = found["words"] if found else error.problem
    key = found["key"] if found else error.problem.partition(" ")[0]
    if error.setting not in _OF_ENTRIES:
        words = f"{_name(error.setting)} {words}"
    if key in FIELDS:
        words = words.replace(key, FIELDS[key].label, 1)
    return key if key in FIELDS or key == ENV else "", f"{_sentence(words)} {error.remedy}"


def _name(setting: str) -> str:
    """Name a setting as the form does: `slack.bot_token` is the field of that service."""
    return setting.rpartition(".")[2].replace("_", " ") if setting.islower() else setting


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _word(text: str) -> str | bool:
    return {"true": True, "false": False}.get(text, text)


def _json_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rules(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
