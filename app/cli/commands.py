"""Defines the command line; each command imports what it needs.

Nothing heavy is imported at the top: help must appear at once, and no command pays for another.
"""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli.agents.commands import agents
from app.cli.asking import Allow
from app.cli.conversations.commands import conversations
from app.cli.data_commands import add_data_commands
from app.cli.framing import HELP, Json, examples, in_one_line, read_all_agents, read_configuration
from app.cli.grant_commands import grants
from app.cli.operating.commands import operating
from app.cli.schedule_commands import schedules
from app.errors import Conflict, DataDirInUse
from app.model.types import SessionState

if TYPE_CHECKING:
    from app.server.shapes import NewSession


PRIVATE: Final = 0o077
"""The umask of the bridge: only the owner can use its files."""

app = typer.Typer(
    name="agent-bridge",
    help="Coding agents in the places where a team already talks.",
    epilog=examples("serve", 'ask claude "fix the failing test"', "doctor"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
sessions = typer.Typer(
    help="Show the work of agents in conversations.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(agents, name="agents")
app.add_typer(sessions, name="sessions")
app.add_typer(conversations, name="conversations")
app.add_typer(schedules, name="schedules")
app.add_typer(grants, name="grants")
app.add_typer(operating)


def main() -> None:
    """Run the command line."""
    # No other user may read what the bridge keeps.
    os.umask(PRIVATE)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


@app.callback(invoke_without_command=True)
def agent_bridge(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.")
    ] = False,
) -> None:
    """Coding agents in the places where a team already talks."""
    if show_version:
        typer.echo(f"agent-bridge {version('agent-bridge')}")
        raise typer.Exit


@app.command(epilog=examples("serve", "serve --port 8080 --no-open"))
def serve(
    *,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on, in place of HOST.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port, in place of PORT.")
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(metavar="all|front|worker", help="What this process does, in place of ROLE."),
    ] = None,
    browser: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser. By default only on a desktop: in a terminal with a "
            "screen, not over SSH.",
        ),
    ] = None,
) -> None:
    """Run the bridge until Ctrl-C or TERM.

    Settings come from the environment and from one file, which is shown at the start;
    .env.example lists them. The last line of the output is a link that opens the page.
    """
    with in_one_line():
        chosen = {"HOST": host, "PORT": port, "ROLE": role}
        configuration = read_configuration(
            {name: str(value) for name, value in chosen.items() if value is not None}
        )
        from app.cli.running import is_running  # noqa: PLC0415 - needs the settings, 0.4 s

        if is_running(configuration.data_dir):
            raise DataDirInUse(str(configuration.data_dir))
        from app.cli.serve import serve as run  # noqa: PLC0415 - 1.4 s

        run(configuration, browser=browser)


@app.command(
    epilog=examples(
        'ask claude "why does test_login fail?"',
        'ask "why does test_login fail?"',
        'ask claude --here "fix the failing test"',
        'ask claude --thread login "now fix it"',
        "ask claude - < prompt.md > answer.md",
    )
)
def ask(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT", help="The name of the agent, see `agents list`; else the default."
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="WORDS", help="The prompt; - reads it from stdin."),
    ] = None,
    *,
    thread: Annotated[
        str | None, typer.Option(help="The conversation to continue, or a name for a new one.")
    ] = None,
    here: Annotated[
        bool,
        typer.Option("--here", help="Work in the git work tree, or the folder, you are in."),
    ] = False,
    repo: Annotated[
        str | None, typer.Option(metavar="OWNER/NAME", help="Work in a clone of a repository.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Work in a folder of this machine.")
    ] = None,
    scratch: Annotated[bool, typer.Option("--scratch", help="Work in an empty folder.")] = False,
    allow: Annotated[
        Allow | None,
        typer.Option(
            help="How to answer when the agent asks for permission: once allows every request, "
            "reject none. By default the person at the terminal is asked; without a terminal, and "
            "with --quiet, every request is rejected."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the answer.")] = False,
) -> None:
    """Ask an agent something and follow what it does.

    The answer goes to stdout, everything else to stderr. The status is 0 only if the agent
    completed its turn. Works with a running bridge and without one. Ctrl-C stops the agent.

    A new conversation that is started inside a git work tree can work there: you are asked once
    for each work tree. Without a terminal, say --here.
    """
    if sum((here, repo is not None, folder is not None, scratch)) > 1:
        raise typer.BadParameter("--here, --repo, --folder and --scratch exclude each other.")
    if prompt is None:
        agent, prompt = None, agent
    if prompt is None:
        raise typer.BadParameter("WORDS are missing: say what to ask.")
    with in_one_line():
        from app.cli.ask import ask as run  # noqa: PLC0415 - 0.4 s
        from app.cli.asking import where  # noqa: PLC0415 - with the above

        words = sys.stdin.read() if prompt == "-" else prompt
        configuration = read_configuration()
        chosen = where.Where(
            where.named(repository=repo, folder=folder, here=here, scratch=scratch)
        )
        if chosen.repository is None and thread is None:
            can_ask = not quiet and sys.stdin.isatty() and sys.stderr.isatty()
            chosen = where.usual(configuration.data_dir, _confirm if can_ask else None)
        new = _new_session(agent or "", words, thread, chosen.repository)
        status = run(configuration, new, allow=allow, quiet=quiet, hint=chosen.hint)
    raise typer.Exit(status)


@app.command()
def login() -> None:
    """Print a link that opens the page of the running bridge.

    It works once, for 15 minutes. Needs the settings that the bridge was started with.
    """
    with in_one_line():
        from app.cli.login import login as run  # noqa: PLC0415 - 0.4 s

        run(read_configuration())


@app.command(
    epilog=examples("doctor", "doctor --json", "doctor --live slack claude --place C0123:U0456")
)
def doctor(
    live: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="SERVICE AGENT",
            help="Try on the real platform what the bridge assumes about it, in --place.",
        ),
    ] = None,
    place: Annotated[
        str | None,
        typer.Option(
            help="Where --live writes, and removes it again: CHANNEL:USER on Slack, OWNER/NAME on "
            "GitHub, an issue such as ENG-12 on Linear. Use one that is only for tests."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="STEP", help="A step to play; repeat for more.")
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --live writes.")] = False,
    as_json: Json = False,
) -> None:
    """Check this machine, the settings and the services.

    Each line has a verdict, a reason and, if something is wrong, a remedy. The status is 1 if there
    is a problem; warnings do not count. With --live it plays steps on one platform instead, and the
    status is 1 if something differs from what the bridge assumes.
    """
    with in_one_line():
        from app.cli.doctor import doctor as run  # noqa: PLC0415 - 0.6 s
        from app.cli.doctor import make_vault  # noqa: PLC0415 - as above

        if live is None:
            healthy = run(as_json=as_json)
        elif place is None:
            raise Conflict("--live needs --place, a place on the platform that is only for tests")
        else:
            from app.cli.live import Chosen, check_live  # noqa: PLC0415 - as above

            configuration = read_all_agents()
            vault = make_vault(configuration)
            healthy = check_live(configuration, vault, Chosen(*live, place, only or ()), yes=yes)
    raise typer.Exit(0 if healthy else 1)


@app.command(
    no_args_is_help=True,
    epilog=examples(
        "manifest slack claude",
        "manifest github codex --organization acme --port 8765",
        "manifest linear claude",
    ),
)
def manifest(
    service: Annotated[
        str, typer.Argument(metavar="SERVICE", help="The service, for example slack.")
    ],
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="The name of the agent; see `agents list`.")
    ],
    organization: Annotated[
        str | None,
        typer.Option(help="The organisation that owns the agent's application, if any."),
    ] = None,
    workflows: Annotated[
        bool,
        typer.Option(
            "--workflows", help="Let the agent push workflow files, after a person allowed it."
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="GitHub: the local port that the browser comes back to; forward it over SSH if "
            "the browser is on another machine.",
        ),
    ] = None,
) -> None:
    """Set up an agent on Slack, GitHub or Linear.

    Prints an address that fills in the platform's form, and the steps after it. The manifest goes
    to stdout, the steps to stderr.
    """
    with in_one_line():
        from app.cli.manifests import show  # noqa: PLC0415 - needs the settings, 0.4 s

        show(read_all_agents(), service, agent, organization, workflows=workflows, port=port)


@sessions.command("list")
def list_sessions(
    agent: Annotated[str | None, typer.Option(help="Only sessions of this agent.")] = None,
    state: Annotated[SessionState | None, typer.Option(help="Only sessions in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="The most sessions to list.")] = 50,
    *,
    as_json: Json = False,
) -> None:
    """List conversations, the one used last first."""
    with in_one_line():
        from app.cli.listing import sessions_table  # noqa: PLC0415 - 0.6 s

        sessions_table(read_configuration(), agent=agent, state=state, limit=limit, as_json=as_json)


@sessions.command("show")
def show_session(
    session: Annotated[int, typer.Argument(metavar="ID", help="Its number; see `sessions list`.")],
    *,
    as_json: Json = False,
) -> None:
    """Show a conversation: what was said and what was done."""
    with in_one_line():
        from app.cli.listing import transcript  # noqa: PLC0415 - 0.6 s

        transcript(read_configuration(), session, as_json=as_json)


def _confirm(question: str) -> bool:
    """Ask the person at the terminal once; Enter means yes."""
    return typer.confirm(f"{question} This is remembered.", default=True, err=True)


def _new_session(agent: str, text: str, thread: str | None, repository: str | None) -> NewSession:
    """Check a prompt by the rules of the API; breaking them is a usage error."""
    from pydantic import ValidationError  # noqa: PLC0415 - 0.2 s

    from app.server.shapes import TEXT_CHARACTERS, NewSession  # noqa: PLC0415 - 0.3 s

    try:
        return NewSession(agent=agent, text=text, thread=thread, repository=repository)
    except ValidationError as error:
        kind = error.errors(include_url=False, include_input=False)[0]["type"]
    match kind:
        case "string_too_short":
            raise typer.BadParameter("the prompt is empty.")
        case "string_too_long":
            raise typer.BadParameter(
                f"the prompt is too long (at most {TEXT_CHARACTERS} characters)."
            )
        case _:
            raise typer.BadParameter("a thread name has only letters, digits, '.', '_' and '-'.")


add_data_commands(app)
