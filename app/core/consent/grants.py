"""Names exactly what a tool call would run or change, and what an "always" covers; pure.

What cannot be named word for word is never offered, and a call is covered only if everything
it claims has the digest of what people saw.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.model import ask_wording as wording
from app.model.asks import OWN, find_allowing
from app.model.calls import Call, short_path
from app.model.policy import ABOUT_FILES, locate
from app.model.updates import AskFact, AskOption, AskRequest, GrantExtent, GrantScope, ToolUpdate

HASH_VERSION = "2:"
"""Begins the hash over what people are shown. Hashes of earlier releases have no such beginning and
were made of what the agent sent alone, so an answer from back then allows nothing now."""
ALWAYS: Final = f"{OWN}always"
"""Allows this call, and from then on every call that is exactly the same."""
ALWAYS_EDITS: Final = f"{OWN}always-edits"
"""Allows this edit, and from then on every edit in the workspace."""
SUBJECT_CHARACTERS: Final = 2_000
"""What is kept of a subject to be shown; its digest is over all of it."""
_ABOUT: Final = frozenset(
    (
        *("description", "explanation", "justification", "reason", "timeout", "timeout_ms"),
        *("call_id", "turn_id", "item_id", "approval_id"),
    )
)
"""Keys next to a command that say why, how long or in which request it runs, but not what runs."""


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


def scopes_of(call: Call, *claims: ToolUpdate | None) -> Mapping[str, GrantScope]:
    """Name what an "always" for a call could cover, by the option for it, the exact one first."""
    said = [claim for claim in claims if claim is not None]
    if not said or len(call.kinds) > 1 or call.unclear:
        return {}
    kind = call.kinds[0] if call.kinds else ""
    if kind == "switch_mode":
        return {}
    if kind in ABOUT_FILES and call.paths:
        return dict(_cover_paths(kind, call))
    return dict(_cover_call(kind, call, said))


def offer_grants(request: AskRequest, scopes: Mapping[str, GrantScope]) -> AskRequest:
    """Offer the bridge's own "always" next to the agent's "once", with which it is answered."""
    once = find_allowing(request.options)
    if once is None or not scopes:
        return request
    offers = (
        AskOption(option, wording.offer_grant(scope), "allow_always")
        for option, scope in scopes.items()
    )
    after = request.options.index(once) + 1
    options = (*request.options[:after], *offers, *request.options[after:])
    return replace(request, options=options, scopes=scopes)


def without_grants(request: AskRequest) -> AskRequest:
    """Offer no "always"."""
    options = tuple(option for option in request.options if option.id not in request.scopes)
    return replace(request, options=options, scopes={})


def _cover_paths(kind: str, call: Call) -> Iterator[tuple[str, GrantScope]]:
    """Cover files by where they really are in the workspace."""
    placed = [locate(path, call.home) for path in call.paths] if call.home else [None]
    paths = sorted({each[0] or "." for each in placed if each and each[0] is not None})
    if not all(each and each[0] is not None for each in placed):
        return
    yield ALWAYS, _scope(kind, "paths", "\n".join(paths), paths)
    if kind == "edit":
        yield ALWAYS_EDITS, _scope(kind, "workspace", "", None)


def _cover_call(
    kind: str, call: Call, said: Sequence[ToolUpdate]
) -> Iterator[tuple[str, GrantScope]]:
    """Cover a command, or a call by its title and its whole input."""
    is_command = len(call.commands) == 1
    inputs = {_canonical(_essence(claim.input) if is_command else claim.input) for claim in said}
    inputs.discard("")
    if len(inputs) != 1:
        return  # nothing was said, or two things
    (exact,) = inputs
    if is_command:
        yield ALWAYS, _scope(kind, "command", call.commands[0], exact)
        return
    title = next((claim.title for claim in reversed(said) if claim.title), "")
    yield ALWAYS, _scope(kind, "call", f"{title} {exact}".strip(), [title, exact])


def _essence(value: Any) -> Any:
    """Leave out of a command's input what differs each time it is run."""
    if not isinstance(value, Mapping):
        return value
    return {name: inner for name, inner in value.items() if str(name).lower() not in _ABOUT}


def _canonical(value: Any) -> str:
    """Write an input in one way only; empty if there is none."""
    return json.dumps(value, sort_keys=True, default=repr) if value else ""


def _scope(kind: str, extent: GrantExtent, subject: str, exact: object) -> GrantScope:
    digest = hashlib.sha256(json.dumps([extent, kind, exact]).encode()).hexdigest()
    return GrantScope(kind, extent, subject[:SUBJECT_CHARACTERS], digest)
