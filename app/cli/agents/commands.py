"""Defines the commands about agents; each imports what it needs."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from app.cli.framing import Json, examples, in_one_line, read_all_agents, read_configuration
from app.errors import Conflict

agents = typer.Typer(
    help="List, add, change, probe and log in agents.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of the agent; see `agents list`.")
]


class FileAction(StrEnum):
    """What to do with an agent's files."""

    LIST = "list"
    SHOW = "show"
    PUT = "put"
    REMOVE = "remove"
    UNDO = "undo"


@agents.command("list")
def list_agents(
    *,
    every: Annotated[bool, typer.Option("--all", help="Hidden agents too.")] = False,
    as_json: Json = False,
) -> None:
    """List agents, their commands and isolation."""
    with in_one_line():
        from app.cli.listing import agents_table  # noqa: PLC0415 - 0.6 s

        agents_table(read_all_agents(), hidden=every, as_json=as_json)


@agents.command("probe")
def probe_agent(
    name: Name,
) -> None:
    """Try what an agent can do, and save the results.

    Runs the agent in its own HOME and isolation; a real one sends its model a handful of short
    prompts. What fails here is not used later. The status is 1 if something failed.
    """
    with in_one_line():
        from app.cli.agents.probing import probe  # noqa: PLC0415 - 1.9 s

        healthy = probe(read_all_agents(), name)
    raise typer.Exit(0 if healthy else 1)


@agents.command("login")
def log_in_agent(
    name: Name,
    method: Annotated[str | None, typer.Option(help="The login method, if it has several.")] = None,
) -> None:
    """Log an agent in by one of its own methods.

    The login runs in the agent's own HOME and isolation; addresses and codes are shown here.
    """
    with in_one_line():
        from app.cli.agents.login import login  # noqa: PLC0415 - 1.9 s

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
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, such as helper.")],
    *,
    command: Annotated[
        str | None, typer.Option(help="The program that speaks ACP, with its arguments.")
    ] = None,
    driver: Annotated[str | None, typer.Option(help="The known agent it is.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A key of its entry; repeat for more."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A variable it gets; repeat for more."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="A file with its entry; - is stdin."),
    ] = None,
) -> None:
    """Add an agent to the running bridge; it works at once.

    The name of an agent that was found on PATH is enough: it gets an entry and is isolated. The
    keys are those of AGENTS_JSON. What others may not read is best put in --json -: they can see
    the words of a command while it runs.
    """
    with in_one_line():
        from app.cli.agents.changing import add  # noqa: PLC0415 - 0.6 s

        given = {"command": command, "driver": driver}
        add(
            read_configuration(), name, given, settings=settings or (), env=env or (), source=source
        )


@agents.command(
    "set",
    epilog=examples(
        "agents set helper model=opus env.LEVEL=2",
        "agents set helper limits.max_turns=2 display_name='The Helper'",
        "agents set helper credentials.slack.bot_token=xoxb-...",
    ),
)
def set_keys(
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="What to set.")],
) -> None:
    """Change keys of an agent's entry, from its next turn.

    A value is JSON if it parses, else text. A dot leads into env, options, limits or credentials:
    what is not named there stays.
    """
    with in_one_line():
        from app.cli.agents.changing import change  # noqa: PLC0415 - 0.6 s

        change(read_configuration(), name, settings=settings)


@agents.command("unset", epilog=examples("agents unset helper model env.LEVEL credentials.slack"))
def unset_keys(
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="What to remove.")],
) -> None:
    """Remove keys from an agent's entry, from its next turn."""
    with in_one_line():
        from app.cli.agents.changing import change  # noqa: PLC0415 - 0.6 s

        change(read_configuration(), name, removals=keys)


@agents.command("remove")
def remove_agent(
    name: Name,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
) -> None:
    """Remove an agent: its work stops, its history stays readable.

    Its home and memory go to the folder archive of DATA_DIR. A later agent of that name begins
    with nothing.
    """
    with in_one_line():
        from app.cli.agents.changing import remove  # noqa: PLC0415 - 0.6 s

        if not yes and not sys.stdin.isatty():
            raise Conflict("`agents remove` asks first. Without a terminal, say --yes")
        remove(read_configuration(), name, None if yes else _confirm)


@agents.command("rename")
def rename_agent(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Its name now.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its name from now on.")],
) -> None:
    """Give an agent another name; its conversations stay with it."""
    with in_one_line():
        from app.cli.agents.changing import rename  # noqa: PLC0415 - 0.6 s

        rename(read_configuration(), old, new)


@agents.command("default")
def choose_default(name: Name) -> None:
    """Let requests without a name go to an agent."""
    with in_one_line():
        from app.cli.agents.changing import choose_default as choose  # noqa: PLC0415 - 0.6 s

        choose(read_configuration(), name)


@agents.command("show")
def show_agent(name: Name, *, as_json: Json = False) -> None:
    """Show an agent's entry, without the values of its secrets."""
    with in_one_line():
        from app.cli.agents.changing import show  # noqa: PLC0415 - 0.6 s

        show(read_configuration(), name, as_json=as_json)


@agents.command(
    "files",
    epilog=examples(
        "agents files reviewer",
        "agents files reviewer put SOUL.md < soul.md",
        "agents files reviewer undo SOUL.md",
        "agents files - put USER.md --from user.md",
    ),
)
def agent_files(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the agent; - for all agents.")
    ],
    action: Annotated[
        FileAction, typer.Argument(metavar="ACTION", help="list, show, put, remove or undo.")
    ] = FileAction.LIST,
    path: Annotated[str, typer.Argument(metavar="FILE", help="Such as SOUL.md.")] = "",
    *,
    source: Annotated[
        str, typer.Option("--from", metavar="PATH", help="What to put; - reads stdin.")
    ] = "-",
    as_json: Json = False,
) -> None:
    """Show and change who an agent is and what it is told.

    The files are IDENTITY.md, SOUL.md, AGENTS.md, TOOLS.md, MEMORY.md and memory/YYYY-MM-DD.md;
    for all agents AGENTS.md, TOOLS.md and USER.md.
    """
    with in_one_line():
        from app.cli.agents import files  # noqa: PLC0415 - 0.6 s

        if action is not FileAction.LIST and not path:
            raise Conflict(f"`agents files {name} {action}` needs a file, such as SOUL.md")
        configuration = read_configuration()
        match action:
            case FileAction.LIST:
                files.list_files(configuration, name, as_json=as_json)
            case FileAction.SHOW:
                files.show(configuration, name, path)
            case FileAction.PUT:
                files.put(configuration, name, path, source)
            case FileAction.REMOVE:
                files.remove(configuration, name, path)
            case FileAction.UNDO:
                files.undo(configuration, name, path)


@agents.command("export", epilog=examples("agents export > agents.json"))
def export_agents(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Which agents; else all.")
    ] = None,
) -> None:
    """Print entries as JSON, in the form of AGENTS_JSON.

    The values of variables and credentials are left out, and named on stderr.
    """
    with in_one_line():
        from app.cli.agents.changing import export  # noqa: PLC0415 - 0.6 s

        export(read_configuration(), names or ())


@agents.command("import", epilog=examples("agents import agents.json"))
def import_agents(
    source: Annotated[str, typer.Argument(metavar="FILE", help="The file; - reads it from stdin.")],
) -> None:
    """Add or change agents from JSON in the form of AGENTS_JSON.

    Of an agent that exists, what the file does not name stays. The status is 1 if an entry was
    refused; the others are saved.
    """
    with in_one_line():
        from app.cli.agents.changing import import_entries  # noqa: PLC0415 - 0.6 s

        healthy = import_entries(read_configuration(), source)
    raise typer.Exit(0 if healthy else 1)


@agents.command("reload")
def reload_agents() -> None:
    """Let the running bridge read AGENTS_JSON_FILE again.

    A file that cannot be used changes nothing. SIGHUP does the same.
    """
    with in_one_line():
        from app.cli.agents.changing import reload  # noqa: PLC0415 - 0.6 s

        reload(read_configuration())


@agents.command(
    "memory", epilog=examples("agents memory claude", "agents memory claude --search staging")
)
def remembered(
    name: Name,
    *,
    search: Annotated[str, typer.Option(help="Only notes that have all these words.")] = "",
    remove: Annotated[
        str | None, typer.Option(metavar="NOTE", help="Remove this note, named as in the list.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what an agent remembers, the newest first, or remove a note."""
    with in_one_line():
        from app.cli.agents.memory import remove_note, show_memory  # noqa: PLC0415 - 0.6 s

        if remove is not None:
            remove_note(read_configuration(), name, remove)
        else:
            show_memory(read_configuration(), name, search, as_json=as_json)


def _confirm(question: str) -> bool:
    """Ask the person at the terminal; Enter means no."""
    return typer.confirm(question, err=True)
