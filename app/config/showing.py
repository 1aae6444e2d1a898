"""Shows an agent's entry in the form of AGENTS_JSON, without the values of its variables; pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from app.config.agents import KEYS, AgentConfig, PermissionRule
from app.config.records import AgentRecord

ENV = "env"


def show_entry(entry: AgentConfig, record: AgentRecord | None) -> dict[str, Any]:
    """Return the keys of an entry, with the names of its variables only.

    What people stored is shown as they gave it, the settings as they were understood.
    """
    if entry.source == "stored" and record is not None and record.entry is not None:
        keys = dict(record.entry)
    else:
        keys = _given(entry)
        keys.pop("default", None)
    return keys | ({ENV: sorted(keys[ENV])} if ENV in keys else {})


def _given(table: BaseModel) -> dict[str, Any]:
    """Return the keys that differ from their defaults."""
    usual = {
        key: field.get_default(call_default_factory=True)
        for key, field in type(table).model_fields.items()
        if key in KEYS or not isinstance(table, AgentConfig)
    }
    return {
        key: _plain(value)
        for key, default in usual.items()
        if (value := getattr(table, key)) != default
    }


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    match value:
        case PermissionRule():
            globs = {
                name: list(words)
                for name in PermissionRule.__slots__
                if name != "decision" and (words := getattr(value, name))
            }
            return {value.decision: globs}
        case BaseModel():
            return _given(value)
        case Path():
            return str(value)
        case tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return dict(value)
        case _:
            return value
