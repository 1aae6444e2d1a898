"""Changes the registry of the running bridge, and shows what is in it.

The bridge checks every change; its words are shown as they are.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from app.agents.exposure import shorten_isolation
from app.agents.origin import label_origin
from app.cli.agents.assignments import NotAnEntry, parse_assignments, parse_removals, read_object
from app.cli.client import Client, connected_to_running
from app.cli.connection import BridgeRefused
from app.cli.invocation import hint
from app.cli.lines import one_line
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.config.agents import EXTENDS
from app.config.records import merge
from app.errors import Conflict
from app.server.agent_shapes import AgentDetail, AgentOut

T = TypeVar("T")
STDIN: Final = "-"


def add(
    configuration: Configuration,
    name: str,
    given: Mapping[str, Any],
    *,
    settings: Iterable[str] = (),
    env: Iterable[str] = (),
    source: str | None = None,
) -> None:
    """Add an agent from what was typed, on top of the entry in a file.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    entry = read_object(_read(source)) if source is not None else {}
    options = {key: value for key, value in given.items() if value is not None}
    typed = parse_assignments((*settings, *(f"env.{word}" for word in env)))
    entry = merge(merge(entry, options), typed)
    added = _run(configuration, lambda bridge: _add(bridge, name, entry))
    _say(f"{name} was added: {shorten_isolation(added.isolation)}.")


def change(
    configuration: Configuration,
    name: str,
    *,
    settings: Iterable[str] = (),
    removals: Iterable[str] = (),
) -> None:
    """Change or remove some keys of an entry.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    changes = parse_assignments(settings) | parse_removals(removals)
    _run(configuration, lambda bridge: bridge.change_agent(name, changes))
    _say(f"{name} was changed. This holds from its next turn.")


def set_credentials(
    configuration: Configuration, name: str, service: str, given: Mapping[str, str]
) -> None:
    """Give an agent what it has on a service.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    changes = {"credentials": {service: dict(given)}}
    _run(configuration, lambda bridge: bridge.change_agent(name, changes))


def remove(
    configuration: Configuration, name: str, confirm: Callable[[str], bool] | None = None
) -> None:
    """Remove an agent, once `confirm` has said yes to what that means.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    count = _run(configuration, lambda bridge: bridge.count_sessions(name))
    sessions = f"{count} session{'' if count == 1 else 's'}"
    question = (
        f"Remove {name}? It has {sessions}: running work is stopped, the history stays readable, "
        "and its home is archived."
    )
    if confirm is not None and not confirm(question):
        _say("Nothing was removed.")
        return
    _run(configuration, lambda bridge: bridge.remove_agent(name))
    _say(f"{name} was removed. Its home is in the folder archive of DATA_DIR.")


def rename(configuration: Configuration, name: str, to: str) -> None:
    """Give an agent another name.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    _run(configuration, lambda bridge: bridge.rename_agent(name, to))
    _say(f"{name} is now called {to}. Its conversations stay with it.")


def choose_default(configuration: Configuration, name: str) -> None:
    """Let requests without a name go to an agent.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    _run(configuration, lambda bridge: bridge.choose_default(name))
    _say(f"{name} is the default agent.")


def show(configuration: Configuration, name: str, *, as_json: bool = False) -> None:
    """Show an agent's entry; of its variables and credentials only the names.

    Raises:
        BridgeError: there is no such agent, or no bridge runs.
    """
    found = _run(configuration, lambda bridge: bridge.agent(name))
    if as_json:
        show_json(found.model_dump(mode="json"))
        return
    rows = [
        ("name", found.name),
        ("entry", label_origin(found.source, configuration.agents_source)),
        ("default", "yes" if found.default else "no"),
        *((key, _show_value(key, value)) for key, value in found.entry.items()),
        *(
            (f"credentials.{service}", ", ".join(fields))
            for service, fields in found.credentials.items()
        ),
    ]
    show_table(("key", "value"), rows)


def export(configuration: Configuration, names: Iterable[str]) -> None:
    """Print entries in the form of AGENTS_JSON, and name the secrets that are left out.

    Raises:
        BridgeError: there is no such agent, or no bridge runs.
    """

    async def read(bridge: Client) -> list[AgentDetail]:
        wanted = tuple(names) or [each.name for each in await bridge.agents()]
        return [await bridge.agent(name) for name in wanted]

    found = _run(configuration, read)
    entries = {}
    for each in found:
        kept = {key: value for key, value in each.entry.items() if key != "env"}
        entries[each.name] = kept | ({"default": True} if each.default else {})
    show_json(entries)
    for each in found:
        if missing := _secrets(each):
            _say(f"{each.name}: left out {', '.join(missing)}.")


def import_entries(configuration: Configuration, source: str) -> bool:
    """Add or change agents from a file in the form of AGENTS_JSON; returns whether all went well.

    Raises:
        BridgeError: the file cannot be used, or no bridge runs.
    """
    entries = read_object(_read(source))
    if not all(isinstance(entry, dict) for entry in entries.values()):
        raise NotAnEntry('an agent is not an object. Write {"name": {"command": "..."}}.')

    async def save(bridge: Client) -> bool:
        there = {each.name for each in await bridge.agents() if each.source != "found"}
        healthy = True
        # An entry that extends another one comes after it.
        for name, entry in sorted(entries.items(), key=lambda each: EXTENDS in each[1]):
            try:
                if name in there:
                    await bridge.change_agent(name, entry)
                else:
                    await _add(bridge, name, entry)
            except BridgeRefused as refused:
                healthy = False
                _say(f"{name}: {refused}")
            else:
                _say(f"{name}: {'changed' if name in there else 'added'}.")
        return healthy

    return _run(configuration, save)


def reload(configuration: Configuration) -> None:
    """Let the bridge read the file with the agents of its settings again.

    Raises:
        BridgeError: the file was refused, or no bridge runs.
    """

    async def read(bridge: Client) -> tuple[set[str], set[str]]:
        before = {each.name for each in await bridge.agents()}
        return before, {each.name for each in await bridge.reload_agents()}

    before, after = _run(configuration, read)
    for name in sorted(after - before):
        _say(f"{name}: added.")
    for name in sorted(before - after):
        _say(f"{name}: removed.")
    _say("The agents were read again. What changed holds from the next turn.")


async def _add(bridge: Client, name: str, entry: Mapping[str, Any]) -> AgentOut:
    if "name" in entry:
        raise Conflict("an entry has no key name: the name is given before it. Remove the key.")
    return await bridge.add_agent({"name": name, **entry})


def _secrets(agent: AgentDetail) -> list[str]:
    """List the secrets of an entry, as `agents set` calls them."""
    owned = agent.credentials.items()
    return [
        *(f"env.{name}" for name in agent.entry.get("env", ())),
        *(f"credentials.{service}.{field}" for service, fields in owned for field in fields),
    ]


def _show_value(key: str, value: object) -> str:
    if key == "env" and isinstance(value, list):
        return f"{', '.join(value)} (values are not shown)"
    if key == "command" and isinstance(value, list):
        return shlex.join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read(source: str) -> str:
    if source == STDIN:
        return sys.stdin.read()
    return Path(source).read_bytes().decode(errors="replace")


def _run(configuration: Configuration, work: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connected_to_running(configuration) as bridge:
            return await work(bridge)

    return asyncio.run(run())


def _say(words: str) -> None:
    sys.stderr.write(f"{one_line(hint(words))}\n")
