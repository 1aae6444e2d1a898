"""`agents`: adds, changes, probes and logs in agents.

The running bridge checks every change; its words are shown as they are.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Argument, Option

from app.acp.card import card_path, read_card
from app.agents.isolation import shorten_isolation
from app.agents.registry import label_origin
from app.config import Configuration
from app.config.agents import EXTENDS
from app.config.records import merge
from app.errors import Conflict
from app.features.agents.entries import NotAnEntry, parse_assignments, parse_removals, read_object
from app.features.agents.shapes import AgentDetail
from app.model.types import SessionState
from app.model.wording import AVAILABILITY
from app.server.agent_shapes import AgentOut
from app.server.shapes import Page, SessionOut
from app.terminal.agents import describe_agents, find_problems, is_here, show_command
from app.terminal.api import MOST_LISTED, REMOVAL, Api, BridgeRefused, agent_path, find_bridge
from app.terminal.framing import (
    Json,
    add_group,
    commands,
    count,
    examples,
    read_all_agents,
    read_configuration,
    say,
    show_json,
    show_table,
)

STDIN: Final = "-"

COMMANDS = commands()
agents = add_group(COMMANDS, "agents", "List, add, change, probe and log in agents.")
Name = Annotated[str, Argument(metavar="NAME", help="The name of the agent; see `agents list`.")]


@agents.command("list")
def list_agents(
    *,
    every: Annotated[bool, Option("--all", help="Hidden agents too.")] = False,
    as_json: Json = False,
) -> None:
    """List agents, their commands and isolation."""
    configuration = read_all_agents()
    bridge = find_bridge(configuration)
    cards = describe_agents(configuration) if bridge is None else bridge.items(AgentOut, "/agents")
    if as_json:
        show_json(
            [
                {
                    **card.model_dump(mode="json"),
                    "found": is_here(configuration, card.id, card.command),
                    "probe": _probed(configuration, card.id),
                }
                for card in cards
            ]
        )
        return
    shown = [card for card in cards if every or card.visible]
    show_table(
        ("agent", "name", "state", "command", "version", "isolation", "services", "from", "probe"),
        [
            (
                f"{card.name} (default)" if card.default else card.name,
                f"{card.emoji} {card.display_name}".lstrip(),
                AVAILABILITY[card.availability.state],
                show_command(configuration, card.id, card.command),
                card.version or "-",
                shorten_isolation(card.isolation),
                ", ".join(card.services),
                label_origin(card.source, configuration.agents_source),
                _probed(configuration, card.id),
            )
            for card in shown
        ],
    )
    for line in find_problems(shown):
        sys.stderr.write(f"! {line}\n")
    if len(shown) < len(cards):
        sys.stderr.write(f"{len(cards) - len(shown)} more with --all.\n")


@agents.command("probe")
def probe_agent(name: Name) -> None:
    """Try what an agent can do, and save the results.

    Runs the agent in its own HOME and isolation; a real one sends its model a handful of short
    prompts. What fails here is not used later. The status is 1 if something failed.
    """
    from app.features.agents.visits import probe  # noqa: PLC0415 - 1.3 s

    raise typer.Exit(0 if probe(read_all_agents(), name) else 1)


@agents.command("login")
def log_in_agent(
    name: Name,
    method: Annotated[str | None, Option(help="The login method, if it has several.")] = None,
) -> None:
    """Log an agent in by one of its own methods.

    The login runs in the agent's own HOME and isolation; addresses and codes are shown here.
    """
    from app.features.agents.visits import login  # noqa: PLC0415 - 1.3 s

    login(read_all_agents(), name, method)


@agents.command(
    "add",
    epilog=examples(
        "agents add helper --driver codex",
        "agents add claude",
        "agents add reviewer --set extends=claude --set permissions=read-only",
        'agents add tester --command "my-agent --acp" --env LEVEL=2',
    ),
)
def add_agent(
    name: Annotated[str, Argument(metavar="NAME", help="Its name, such as helper.")],
    *,
    command: Annotated[
        str | None, Option(help="The program that speaks ACP, with its arguments.")
    ] = None,
    driver: Annotated[str | None, Option(help="The known agent it is.")] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="A key of its entry; repeat for more."),
    ] = None,
    env: Annotated[
        list[str] | None, Option(metavar="KEY=VALUE", help="A variable it gets; repeat for more.")
    ] = None,
    source: Annotated[
        str | None, Option("--json", metavar="FILE", help="A file with its entry; - is stdin.")
    ] = None,
) -> None:
    """Add an agent to the running bridge; it works at once.

    The name of an agent that was found on PATH is enough: it gets an entry and is isolated. The
    keys are those of AGENTS_JSON. What others may not read is best put in --json -: they can see
    the words of a command while it runs.
    """
    api = Api()
    entry = read_object(_read(source)) if source is not None else {}
    given = {"command": command, "driver": driver}
    options = {key: value for key, value in given.items() if value is not None}
    typed = parse_assignments((*(settings or ()), *(f"env.{word}" for word in env or ())))
    added = _add(api, name, merge(merge(entry, options), typed))
    say(f"{name} was added: {shorten_isolation(added.isolation)}.")


@agents.command(
    "set",
    epilog=examples(
        "agents set helper model=opus env.LEVEL=2",
        "agents set helper limits.max_turns=2 display_name='The Helper'",
        "agents set helper credentials.slack.bot_token=xoxb-...",
    ),
)
def set_keys(
    name: Name, settings: Annotated[list[str], Argument(metavar="KEY=VALUE", help="What to set.")]
) -> None:
    """Change keys of an agent's entry, from its next turn.

    A value is JSON if it parses, else text. A dot leads into env, options, limits or credentials:
    what is not named there stays.
    """
    _change(Api(), name, parse_assignments(settings))


@agents.command("unset", epilog=examples("agents unset helper model env.LEVEL credentials.slack"))
def unset_keys(
    name: Name, keys: Annotated[list[str], Argument(metavar="KEY", help="What to remove.")]
) -> None:
    """Remove keys from an agent's entry, from its next turn."""
    _change(Api(), name, parse_removals(keys))


@agents.command("remove")
def remove_agent(
    name: Name, *, yes: Annotated[bool, Option("--yes", help="Do not ask first.")] = False
) -> None:
    """Remove an agent: its work stops, its history stays readable.

    Its home and memory go to the folder archive of DATA_DIR. A later agent of that name begins
    with nothing.
    """
    if not yes and not sys.stdin.isatty():
        raise Conflict("`agents remove` asks first. Without a terminal, say --yes")
    api = Api()
    found = api.all_items(SessionOut, "/sessions", by="before", agent=name, limit=MOST_LISTED)
    work = count(sum(each.state != SessionState.REMOVED for each in found), "session")
    question = (
        f"Remove {name}? It has {work}: running work is stopped, the history stays readable, "
        "and its home is archived."
    )
    if not yes and not typer.confirm(question, err=True):
        say("Nothing was removed.")
        return
    api.request("DELETE", agent_path(name), timeout=REMOVAL)
    say(f"{name} was removed. Its home is in the folder archive of DATA_DIR.")


@agents.command("rename")
def rename_agent(
    old: Annotated[str, Argument(metavar="OLD", help="Its name now.")],
    new: Annotated[str, Argument(metavar="NEW", help="Its name from now on.")],
) -> None:
    """Give an agent another name; its conversations stay with it."""
    Api().post(AgentOut, f"{agent_path(old)}/rename", to=new)
    say(f"{old} is now called {new}. Its conversations stay with it.")


@agents.command("default")
def choose_default(name: Name) -> None:
    """Let requests without a name go to an agent."""
    Api().post(AgentOut, f"{agent_path(name)}/default")
    say(f"{name} is the default agent.")


@agents.command("show")
def show_agent(name: Name, *, as_json: Json = False) -> None:
    """Show an agent's entry, without the values of its secrets."""
    configuration = read_configuration()
    found = Api(configuration).get(AgentDetail, agent_path(name))
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


@agents.command("export", epilog=examples("agents export > agents.json"))
def export_agents(
    names: Annotated[
        list[str] | None, Argument(metavar="NAME", help="Which agents; else all.")
    ] = None,
) -> None:
    """Print entries as JSON, in the form of AGENTS_JSON.

    The values of variables and credentials are left out, and named on stderr.
    """
    api = Api()
    wanted = names or [each.name for each in api.items(AgentOut, "/agents")]
    found = [api.get(AgentDetail, agent_path(name)) for name in wanted]
    entries = {}
    for each in found:
        kept = {key: value for key, value in each.entry.items() if key != "env"}
        entries[each.name] = kept | ({"default": True} if each.default else {})
    show_json(entries)
    for each in found:
        owned = each.credentials.items()
        missing = [
            *(f"env.{name}" for name in each.entry.get("env", ())),
            *(f"credentials.{service}.{field}" for service, fields in owned for field in fields),
        ]
        if missing:
            say(f"{each.name}: left out {', '.join(missing)}.")


@agents.command("import", epilog=examples("agents import agents.json"))
def import_agents(
    source: Annotated[str, Argument(metavar="FILE", help="The file; - reads it from stdin.")],
) -> None:
    """Add or change agents from JSON in the form of AGENTS_JSON.

    Of an agent that exists, what the file does not name stays. The status is 1 if an entry was
    refused; the others are saved.
    """
    api = Api()
    entries = read_object(_read(source))
    if not all(isinstance(entry, dict) for entry in entries.values()):
        raise NotAnEntry('an agent is not an object. Write {"name": {"command": "..."}}.')
    there = {each.name for each in api.items(AgentOut, "/agents") if each.source != "found"}
    healthy = True
    # An entry that extends another one comes after it.
    for name, entry in sorted(entries.items(), key=lambda each: EXTENDS in each[1]):
        try:
            if name in there:
                api.send(AgentOut, "PATCH", agent_path(name), json=entry)
            else:
                _add(api, name, entry)
        except BridgeRefused as refused:
            healthy = False
            say(f"{name}: {refused}")
        else:
            say(f"{name}: {'changed' if name in there else 'added'}.")
    raise typer.Exit(0 if healthy else 1)


@agents.command("reload")
def reload_agents() -> None:
    """Let the running bridge read AGENTS_JSON_FILE again.

    A file that cannot be used changes nothing. SIGHUP does the same.
    """
    api = Api()
    before = {each.name for each in api.items(AgentOut, "/agents")}
    read = api.send(Page[AgentOut], "POST", "/agents/reload", timeout=REMOVAL)
    after = {each.name for each in read.items}
    for name in sorted(after - before):
        say(f"{name}: added.")
    for name in sorted(before - after):
        say(f"{name}: removed.")
    say("The agents were read again. What changed holds from the next turn.")


def _add(api: Api, name: str, entry: Mapping[str, Any]) -> AgentOut:
    if "name" in entry:
        raise Conflict("an entry has no key name: the name is given before it. Remove the key.")
    return api.send(AgentOut, "POST", "/agents", json={"name": name, **entry})


def _change(api: Api, name: str, changes: Mapping[str, Any]) -> None:
    api.send(AgentOut, "PATCH", agent_path(name), json=changes)
    say(f"{name} was changed. This holds from its next turn.")


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


def _probed(configuration: Configuration, agent: str) -> str:
    """Summarise the last probe of an agent, if it was of the command that is set now."""
    entry = configuration.agents.get(agent)
    card = read_card(card_path(configuration.shared_dir, agent))
    return card.words if card and entry and card.is_about(entry.argv) else "not yet"
