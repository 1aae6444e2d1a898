"""`serve`: runs the bridge, and shows what a person needs when it starts.

The last lines are those that matter: where to open the page.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from app.agents.exposure import shorten_isolation
from app.cli.browser import is_desktop, open_browser
from app.cli.invocation import command_name, hint
from app.cli.listing import exposed, show_command
from app.cli.login import second_way
from app.cli.running import local_address
from app.cli.tables import show_table
from app.config import Configuration, cautions
from app.errors import StoreUnavailable
from app.main import Bridge, Resources, bind_ports, open_resources, presence
from app.main import serve as serve_until_told
from app.model.availability import Availability
from app.server.application import VERSION
from app.server.login_links import LINK_SECONDS
from app.server.parts import AgentCard


def serve(configuration: Configuration, *, browser: bool | None = None) -> None:
    """Serve until told to stop; `browser` opens the page, None only on a desktop.

    Raises:
        BridgeError: it cannot start, or not go on.
    """
    with (
        open_resources(configuration) as base,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        runner.run(_serve(base, browser=browser))


async def _serve(base: Resources, *, browser: bool | None) -> None:
    configuration = base.configuration
    there = presence(base)
    bridge = Bridge(base, there.adapters, forge=there.forge, starts_agents=True)
    ports = bind_ports(configuration)
    link, words = await _log_in(bridge)
    wanted = is_desktop(configuration.surroundings) if browser is None else browser

    def listening() -> None:
        # Stdout may be closed; the bridge runs all the same.
        with suppress(OSError):
            welcome(configuration, bridge.cards, bridge.availability)
            sys.stdout.write(f"\n{words}\n")
            sys.stdout.flush()
        if link is not None and wanted:
            open_browser(link, configuration.surroundings)

    await serve_until_told(bridge, ports, listening=listening)


def welcome(
    configuration: Configuration,
    cards: Mapping[str, AgentCard],
    availability: Callable[[str], Availability],
) -> None:
    """Show the agents, what is missing and the addresses."""
    # The demo agent is hidden where it is only there for the threads it has.
    shown = {agent: card for agent, card in cards.items() if card.visible or card.source != "demo"}
    sys.stdout.write(f"Agent Bridge {VERSION}\n\n")
    show_table(
        ("agent", "name", "state", "command", "isolation", "services", "from"),
        [
            (
                f"{card.name} (default)" if card.default else card.name,
                f"{card.emoji} {card.display_name}".lstrip(),
                availability(card.id).label,
                show_command(configuration, card.id, card.command),
                shorten_isolation(card.isolation),
                ", ".join(card.services) or "none",
                card.origin,
            )
            for card in shown.values()
        ],
    )
    isolations = ((card.name, card.isolation) for card in shown.values())
    changed = (
        f"{card.name}: {card.isolation_change}" for card in shown.values() if card.isolation_change
    )
    for line in (*changed, *unable(shown, availability), *exposed(isolations)):
        sys.stdout.write(f"! {line}\n")
    for caution in cautions(configuration):
        sys.stdout.write(f"! {caution.subject}: {caution.problem}. {caution.remedy}\n")
    for line in addresses(configuration):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def unable(
    cards: Mapping[str, AgentCard], availability: Callable[[str], Availability]
) -> Iterator[str]:
    """List the agents that cannot work, and the remedy for each."""
    for agent, card in cards.items():
        if words := availability(agent).words:
            yield f"{card.name}: {hint(words)}"


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
        link = await bridge.door.make_link()
    except StoreUnavailable as error:
        return None, f"{later} once this is repaired: {error}"
    words = f"Open {link} (works once, for {LINK_SECONDS // 60:.0f} minutes)"
    plain = bridge.door.plain_link(link)
    return link, f"{words}\n{second_way(plain)}" if plain else words


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Choose uvloop where it is installed: it is faster; all tests of children pass on both."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop
