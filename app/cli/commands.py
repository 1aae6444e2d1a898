"""What can be typed, and what it means; each command brings what it needs.

Nothing heavy is imported at the top: help must appear at once, and no command pays for another.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli.asking import Allow
from app.core.types import SessionState
from app.errors import BridgeError, DataDirInUse

if TYPE_CHECKING:
    from app.config import Configuration
    from app.server.shapes import NewSession

INTERRUPTED: Final = 130
"""What a shell expects after Ctrl-C."""

app = typer.Typer(
    name="agent-bridge",
    help="Coding agents in the places where a team already talks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
agents = typer.Typer(
    help="Show, try and log in agents.", no_args_is_help=True, rich_markup_mode=None
)
sessions = typer.Typer(help="Show conversations.", no_args_is_help=True, rich_markup_mode=None)
manifest = typer.Typer(
    help="Say how to put an agent into a service.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(agents, name="agents")
app.add_typer(sessions, name="sessions")
app.add_typer(manifest, name="manifest")


def main() -> None:
    """Run the command line."""
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


@app.command()
def serve() -> None:
    """Run the bridge until Ctrl-C or TERM.

    Settings come from the environment and from .env in this folder; .env.example lists them.
    """
    with _in_one_line():
        configuration = _configuration()
        from app.cli.running import is_running  # noqa: PLC0415 - needs the settings, 0.4 s

        if is_running(configuration.data_dir):
            raise DataDirInUse(str(configuration.data_dir))
        from app.cli.serve import serve as run  # noqa: PLC0415 - 1.4 s

        run(configuration)


@app.command()
def ask(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="The name of the agent; see `agents list`.")
    ],
    prompt: Annotated[
        str, typer.Argument(metavar="WORDS", help="What to say to it; - reads it from stdin.")
    ],
    *,
    thread: Annotated[
        str | None, typer.Option(help="The conversation to go on with, or a name for a new one.")
    ] = None,
    allow: Annotated[
        Allow | None,
        typer.Option(
            help="How to answer when the agent asks for permission: once allows each time, reject "
            "never. Without it the person at the terminal is asked; where nobody is, and with "
            "--quiet, everything is rejected."
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show nothing but the answer.")
    ] = False,
) -> None:
    """Ask an agent something and follow what it does.

    The answer goes to stdout, everything else to stderr. The status is 0 only if the agent
    completed its turn. Works with a running bridge and without one. Ctrl-C stops the agent.
    """
    with _in_one_line():
        from app.cli.ask import ask as run  # noqa: PLC0415 - 0.4 s

        words = sys.stdin.read() if prompt == "-" else prompt
        status = run(_configuration(), _new_session(agent, words, thread), allow=allow, quiet=quiet)
    raise typer.Exit(status)


@app.command()
def login() -> None:
    """Print a link that opens the page of the running bridge.

    It works once, for 15 minutes. Needs the settings that the bridge was started with.
    """
    with _in_one_line():
        from app.cli.login import login as run  # noqa: PLC0415 - 0.4 s

        run(_configuration())


@app.command()
def doctor() -> None:
    """Check this machine and the configuration: verdict, reason, remedy.

    The status is 1 if there is a problem; warnings do not count.
    """
    with _in_one_line():
        from app.cli.doctor import doctor as run  # noqa: PLC0415 - 0.6 s

        healthy = run()
    raise typer.Exit(0 if healthy else 1)


@manifest.command("linear")
def manifest_linear(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="The name of the agent; see `agents list`.")
    ],
) -> None:
    """Say what to fill in where Linear asks about an agent's application."""
    with _in_one_line():
        from app.cli.manifests import linear  # noqa: PLC0415 - 0.6 s

        typer.echo(linear(_configuration(), agent))


@agents.command("list")
def list_agents() -> None:
    """List the agents, how they are started and how they are kept apart."""
    with _in_one_line():
        from app.cli.listing import agents_table  # noqa: PLC0415 - 0.6 s

        agents_table(_configuration())


@agents.command("probe")
def probe_agent(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the agent; see `agents list`.")
    ],
) -> None:
    """Try everything that the bridge would use of an agent, and keep what was seen.

    Runs the agent in its own HOME and isolation; a real one asks its model a handful of short
    questions. What fails here is not used later. The status is 1 if something failed.
    """
    with _in_one_line():
        from app.cli.agents.probing import probe  # noqa: PLC0415 - 1.9 s

        healthy = probe(_configuration(), name)
    raise typer.Exit(0 if healthy else 1)


@agents.command("login")
def log_in_agent(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the agent; see `agents list`.")
    ],
    method: Annotated[
        str | None, typer.Option(help="Which of its ways to log in, where it has several.")
    ] = None,
) -> None:
    """Log an agent in, the way the agent itself offers it.

    Its login runs in the agent's own HOME and isolation; addresses and codes are shown here.
    """
    with _in_one_line():
        from app.cli.agents.login import login  # noqa: PLC0415 - 1.9 s

        login(_configuration(), name, method)


@sessions.command("list")
def list_sessions(
    agent: Annotated[str | None, typer.Option(help="Only those of one agent.")] = None,
    state: Annotated[SessionState | None, typer.Option(help="Only those in one state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at most.")] = 50,
) -> None:
    """List conversations, the one used last first."""
    with _in_one_line():
        from app.cli.listing import sessions_table  # noqa: PLC0415 - 0.6 s

        sessions_table(_configuration(), agent=agent, state=state, limit=limit)


@sessions.command("show")
def show_session(
    session: Annotated[int, typer.Argument(metavar="ID", help="Its number; see `sessions list`.")],
) -> None:
    """Show a conversation: what was said and what was done."""
    with _in_one_line():
        from app.cli.listing import transcript  # noqa: PLC0415 - 0.6 s

        transcript(_configuration(), session)


@manifest.command("github")
def github_manifest(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent; see `agents list`.")],
    organization: Annotated[
        str | None,
        typer.Option(help="The organisation that owns the App; without it you do."),
    ] = None,
) -> None:
    """Make an agent's GitHub App with one click.

    A page on this machine leads to GitHub and back; the App's credentials go into .env.
    """
    with _in_one_line():
        from app.cli.github_app import make_app  # noqa: PLC0415 - 0.3 s

        make_app(_configuration(), name, organization)


@manifest.command("slack")
def slack_manifest(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent; see `agents list`.")],
) -> None:
    """Print the manifest of an agent's Slack app.

    The manifest goes to stdout, what to do with it and why it asks for what it asks to stderr.
    """
    with _in_one_line():
        from app.cli.manifests import slack  # noqa: PLC0415 - needs the settings, 0.4 s

        slack(_configuration(), name)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Turn a failure that has words of its own into one line and a status."""
    try:
        yield
    except BridgeError as error:
        words = str(error)
    except BrokenPipeError:
        # Whoever read the output has seen enough; click ends quietly on its own.
        raise
    except OSError as error:
        place = error.filename or "this machine"
        words = f"{place}: {error.strerror or error}. Check who may write there, and the disk."
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    else:
        return
    from app.cli.lines import one_line  # noqa: PLC0415 - 0.2 s

    typer.echo(f"agent-bridge: {one_line(words)}", err=True)
    raise typer.Exit(1)


def _configuration() -> Configuration:
    from app.agents.catalog import known_agents  # noqa: PLC0415 - 0.3 s
    from app.config import from_process  # noqa: PLC0415 - 0.4 s

    return from_process(known_agents())


def _new_session(agent: str, text: str, thread: str | None) -> NewSession:
    """Check a message by the rules of the API; what breaks them is a wrong use of the command."""
    from pydantic import ValidationError  # noqa: PLC0415 - 0.2 s

    from app.server.shapes import TEXT_CHARACTERS, NewSession  # noqa: PLC0415 - 0.3 s

    try:
        return NewSession(agent=agent, text=text, thread=thread)
    except ValidationError as error:
        kind = error.errors(include_url=False, include_input=False)[0]["type"]
    match kind:
        case "string_too_short":
            raise typer.BadParameter("there are no words to say.")
        case "string_too_long":
            raise typer.BadParameter(f"more than {TEXT_CHARACTERS} characters cannot be said.")
        case _:
            raise typer.BadParameter("a thread is named with letters, digits, '.', '_' and '-'.")
