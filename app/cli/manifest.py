"""`manifest`: shows how to set up an agent on a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from typer import Argument, Option

from app.agents.registry import Registry
from app.config import Configuration
from app.errors import NotFound
from app.services import registered_services
from app.services.service import ManifestRequest
from app.terminal.agents import set_credentials
from app.terminal.api import is_running, not_running
from app.terminal.framing import commands, examples, hint, read_all_agents

COMMANDS = commands()


@COMMANDS.command(
    no_args_is_help=True,
    epilog=examples(
        "manifest slack claude",
        "manifest github codex --organization acme --port 8765",
        "manifest linear claude",
    ),
)
def manifest(
    service: Annotated[str, Argument(metavar="SERVICE", help="The service, for example slack.")],
    agent: Annotated[
        str, Argument(metavar="AGENT", help="The name of the agent; see `agents list`.")
    ],
    organization: Annotated[
        str | None, Option(help="The organisation that owns the agent's application, if any.")
    ] = None,
    workflows: Annotated[
        bool,
        Option("--workflows", help="Let the agent push workflow files, after a person allowed it."),
    ] = False,
    port: Annotated[
        int | None,
        Option(
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
    show(read_all_agents(), service, agent, organization, workflows=workflows, port=port)


def show(
    configuration: Configuration,
    service: str,
    agent: str,
    organization: str | None,
    *,
    workflows: bool = False,
    port: int | None = None,
) -> None:
    """Let a service show how to set up an agent on it.

    Raises:
        NotFound: there is no such service or agent, or nothing is to be done there.
    """
    shown = {each.name: each.manifest for each in registered_services()}.get(service)
    if shown is None:
        raise NotFound("service with a manifest called", service)
    found = Registry(configuration).find(agent)

    def keep() -> Callable[[Mapping[str, str]], None]:
        """Let the running bridge store the credentials."""
        if not is_running(configuration.data_dir):
            raise not_running(configuration)
        return lambda given: set_credentials(configuration, found.name, service, given)

    shown(
        ManifestRequest(
            configuration=configuration,
            agent=found.config,
            title=found.title,
            organization=organization,
            workflows=workflows,
            port=port,
            # An agent of the settings keeps its credentials there.
            keeping=keep if found.config.source == "stored" else None,
            write=lambda text: typer.echo(hint(text)),
            explain=lambda text: typer.echo(hint(text), err=True),
        )
    )
