"""Lists exactly what a tool call would run or change, and binds answers to it; pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.model.calls import Call, short_path
from app.model.updates import AskFact, AskRequest, ToolUpdate

HASH_VERSION = "2:"
"""Begins the hash over what people are shown. Hashes of earlier releases have no such beginning and
were made of what the agent sent alone, so an answer from back then allows nothing now."""


def facts_of(call: Call, *claims: ToolUpdate | None) -> tuple[AskFact, ...]:
    """List what a call is about: commands, changes, paths, else the tool's whole input."""
    said = [claim for claim in claims if claim is not None]
    diffs = dict.fromkeys(diff for claim in said for diff in claim.diffs or ())
    changes = [
        AskFact("change", diff.new, short_path(diff.path, call.roots), diff.old) for diff in diffs
    ]
    changed = {diff.path for diff in diffs}
    paths = dict.fromkeys(
        short_path(path, call.roots) for path in call.paths if path not in changed
    )
    inputs: dict[str, None] = {}
    if not call.commands and not changes:
        known = {*call.paths, *call.titles}
        inputs = dict.fromkeys(
            _format(claim.input) for claim in said if not known.issuperset(_leaves(claim.input))
        )
    return (
        *(AskFact("command", command) for command in call.commands),
        *changes,
        *(AskFact("path", path) for path in paths),
        *(AskFact("input", text) for text in inputs),
    )


def bind(request: AskRequest) -> str:
    """Hash what the agent sent together with all that people are shown of it."""
    if not request.arguments_hash:
        return ""  # it cannot be told apart from others
    shown = [[fact.kind, fact.path, fact.old, fact.text] for fact in request.facts]
    whole = json.dumps([request.arguments_hash, request.title, shown])
    return HASH_VERSION + hashlib.sha256(whole.encode()).hexdigest()


def _format(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _leaves(value: Any) -> Iterator[Any]:
    """List the single values in a tool's input, text or not."""
    match value:
        case None | "":
            return
        case Mapping():
            for inner in value.values():
                yield from _leaves(inner)
        case list():
            for inner in value:
                yield from _leaves(inner)
        case _:
            yield value
