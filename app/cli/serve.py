"""`serve` and `login`: runs the bridge, and shows where to open the page.

The last lines of `serve` are those that matter: where to open the page.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

from typer import BadParameter, Option

from app.agents.isolation import shorten_isolation
from app.agents.registry import label_origin
from app.config import Configuration, cautions
from app.errors import DataDirInUse, StoreUnavailable
from app.model.people import Role
from app.model.wording import AVAILABILITY
from app.server.agent_shapes import AgentOut
from app.server.login_links import LINK_SECONDS
from app.server.shapes import LinkOut
from app.terminal.agents import find_problems, show_command
from app.terminal.api import Api, is_running, local_address
from app.terminal.framing import (
    command_name,
    commands,
    examples,
    read_configuration,
    show_table,
)

if TYPE_CHECKING:
    from app.main import Bridge, Resources

OPEN_SECONDS: Final = 5.0
"""The shell only starts the browser and ends."""
# In the background of a shell that ends at once: a browser outlives the bridge and belongs to
# the desktop.
_START: Final = '"$0" "$1" >/dev/null 2>&1 </dev/null &'
_ELSEWHERE: Final = ("SSH_CONNECTION", "SSH_TTY", "CI")

COMMANDS = commands()


@COMMANDS.command(epilog=examples("serve", "serve --port 8080 --no-open"))
def serve(
    *,
    host: Annotated[str | None, Option(help="The address to listen on, in place of HOST.")] = None,
    port: Annotated[
        int | None, Option(min=1, max=65535, help="The port, in place of PORT.")
    ] = None,
    role: Annotated[
        str | None,
        Option(metavar="all|front|worker", help="What this process does, in place of ROLE."),
    ] = None,
    browser: Annotated[
        bool | None,
        Option(
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
    chosen = {"HOST": host, "PORT": port, "ROLE": role}
    configuration = read_configuration(
        {name: str(value) for name, value in chosen.items() if value is not None}
    )
    if is_running(configuration.data_dir):
        raise DataDirInUse(str(configuration.data_dir))
    from app.main import open_resources  # noqa: PLC0415 - 1.4 s that help does not need

    with (
        open_resources(configuration) as base,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        runner.run(_serve(base, browser=browser))


@COMMANDS.command(epilog=examples("login", "login --as Kim --role member"))
def login(
    name: Annotated[
        str, Option("--as", metavar="NAME", help="Whom it signs in; else the page asks for a name.")
    ] = "",
    role: Annotated[
        Role | None,
        Option(
            metavar="ROLE",
            help="Their role from now on: viewer, member or admin. Someone new is an admin "
            "without it.",
        ),
    ] = None,
) -> None:
    """Print a link that opens the page of the running bridge.

    It works once, for 15 minutes. Needs the settings that the bridge was started with.
    """
    if role is not None and not name:
        raise BadParameter("say whose role it is with --as")
    made = Api().post(LinkOut, "/login-links", name=name, role=role)
    sys.stdout.write(f"{made.url}\n")
    if made.plain:
        # Not on stdout: a pipe gets the link alone.
        sys.stderr.write(f"{_second_way(made.plain)}\n")


async def _serve(base: Resources, *, browser: bool | None) -> None:
    from app.main import Bridge, bind_ports, presence  # noqa: PLC0415 - as above
    from app.main import serve as serve_until_told  # noqa: PLC0415 - as above
    from app.server.api import agent_out  # noqa: PLC0415 - as above

    configuration = base.configuration
    there = presence(base)
    bridge = Bridge(base, there.adapters, forge=there.forge, starts_agents=True)
    ports = bind_ports(configuration)
    link, words = await _log_in(bridge)
    wanted = is_desktop(configuration.surroundings) if browser is None else browser

    def listening() -> None:
        # Stdout may be closed; the bridge runs all the same.
        with suppress(OSError):
            agents = bridge.runtime.agents.values()
            welcome(configuration, [agent_out(bridge.runtime, each) for each in agents])
            sys.stdout.write(f"\n{words}\n")
            sys.stdout.flush()
        if link is not None and wanted:
            open_browser(link, configuration.surroundings)

    await serve_until_told(bridge, ports, listening=listening)


def welcome(configuration: Configuration, agents: Iterable[AgentOut]) -> None:
    """Show the agents, what is missing and the addresses."""
    from app.server.application import VERSION  # noqa: PLC0415 - 0.5 s that `login` does not need

    # The demo agent is hidden where it is only there for the threads it has.
    shown = [each for each in agents if each.visible or each.source != "demo"]
    sys.stdout.write(f"Agent Bridge {VERSION}\n\n")
    show_table(
        ("agent", "name", "state", "command", "isolation", "services", "from"),
        [
            (
                f"{each.name} (default)" if each.default else each.name,
                f"{each.emoji} {each.display_name}".lstrip(),
                AVAILABILITY[each.availability.state],
                show_command(configuration, each.id, each.command),
                shorten_isolation(each.isolation),
                ", ".join(each.services) or "none",
                label_origin(each.source, configuration.agents_source),
            )
            for each in shown
        ],
    )
    for line in find_problems(shown):
        sys.stdout.write(f"! {line}\n")
    for caution in cautions(configuration):
        sys.stdout.write(f"! {caution.subject}: {caution.problem}. {caution.remedy}\n")
    for line in addresses(configuration):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def addresses(configuration: Configuration) -> Iterator[str]:
    """List the addresses of the bridge and how to get in."""
    address = local_address(configuration)
    token = (
        "BRIDGE_ADMIN_TOKEN as you set it"
        if configuration.settings.bridge_admin_token is not None
        else f"BRIDGE_ADMIN_TOKEN in {configuration.shared_dir / 'secrets'}"
    )
    default = configuration.agents[configuration.default_agent]
    yield ""
    yield f"Settings     {configuration.dotenv or 'from the environment only'}"
    yield f"Listening on {address}"
    if configuration.base_url != address:
        yield f"Reached at   {configuration.base_url}"
    yield f"API          {address}/api/v1 with the bearer token {token}"
    yield f'Ask          {command_name()} ask {default.name} "hello"'
    yield "Stop         Ctrl-C"


async def _log_in(bridge: Bridge) -> tuple[str | None, str]:
    """Make a log-in link, and the line that says how to open the page.

    Only a terminal shows a link: agents may be able to read a file. A bridge whose store cannot
    write now runs all the same.
    """
    later = f"To open the page, run `{command_name()} login`"
    if not sys.stdout.isatty():
        return None, f"{later}."
    try:
        link = await bridge.links.make_link()
    except StoreUnavailable as error:
        return None, f"{later} once this is repaired: {error}"
    words = f"Open {link} (works once, for {LINK_SECONDS // 60:.0f} minutes)"
    plain = bridge.links.plain_link(link)
    return link, f"{words}\n{_second_way(plain)}" if plain else words


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Choose uvloop where it is installed: it is faster; all tests of children pass on both."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


def _second_way(link: str) -> str:
    """Say how to open the page in a browser that does not resolve its name."""
    return f"Or, if your browser does not find that name, {link}"


def is_desktop(environment: Mapping[str, str]) -> bool:
    """Tell whether a person sits at this machine, in front of a screen."""
    if not sys.stdout.isatty() or any(environment.get(name) for name in _ELSEWHERE):
        return False
    return sys.platform == "darwin" or any(
        environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def open_browser(address: str, environment: Mapping[str, str]) -> bool:
    """Open an address in the default browser; returns whether there is one to start."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = shutil.which(name, path=environment.get("PATH"))
    if program is None:
        return False
    try:
        subprocess.run(
            ["/bin/sh", "-c", _START, program, address],
            env=dict(environment),
            start_new_session=True,
            timeout=OPEN_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True
