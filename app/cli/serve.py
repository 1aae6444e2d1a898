"""`serve`: runs the bridge, and shows what a person needs when it starts."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.cli.running import local_address
from app.cli.tables import show_table
from app.config import Configuration, cautions
from app.errors import StoreUnavailable
from app.main import Bridge, Resources, open_resources, presence
from app.main import serve as serve_until_told
from app.server.application import VERSION
from app.server.listener import bound
from app.server.parts import AgentCard


def serve(configuration: Configuration) -> None:
    """Serve until told to stop.

    Raises:
        BridgeError: it cannot start, or not go on.
    """
    with (
        open_resources(configuration) as base,
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        runner.run(_serve(base))


async def _serve(base: Resources) -> None:
    configuration = base.configuration
    there = presence(base)
    bridge = Bridge(base, there.adapters, forge=there.forge)
    port = bound(configuration.host, configuration.port)
    link = await _log_in_link(bridge)

    def listening() -> None:
        # Stdout may be closed; the bridge runs all the same.
        with suppress(OSError):
            welcome(configuration, bridge.cards)
            sys.stdout.write(f"Log in       {link}\n")
            sys.stdout.flush()

    await serve_until_told(bridge, port, listening=listening)


def welcome(configuration: Configuration, cards: Mapping[str, AgentCard]) -> None:
    """Show the agents, what is missing and the addresses."""
    registry = Registry(configuration, known_agents())
    sys.stdout.write(f"Agent Bridge {VERSION}\n\n")
    show_table(
        ("agent", "command", "isolation", "services"),
        [
            (
                f"{card.name} (default)" if card.default else card.name,
                _shown(configuration, card.command),
                card.isolation,
                ", ".join(card.services) or "none",
            )
            for card in cards.values()
        ],
    )
    for line in missing(configuration, registry, cards):
        sys.stdout.write(f"! {line}\n")
    for caution in cautions(configuration):
        sys.stdout.write(f"! {caution.subject}: {caution.problem}. {caution.remedy}\n")
    for line in addresses(configuration):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def missing(
    configuration: Configuration, registry: Registry, cards: Mapping[str, AgentCard]
) -> Iterator[str]:
    """List commands that are missing, and the remedy for each."""
    for card in cards.values():
        if shutil.which(card.command, path=configuration.path) is None:
            program = registry.program(card.name)
            remedy = f"Install it: {program.install}" if program else "Check its command."
            yield f"{card.name}: {card.command!r} was not found on PATH. {remedy}"


def addresses(configuration: Configuration) -> Iterator[str]:
    """List the addresses of the bridge and how to get in."""
    address = local_address(configuration)
    token = (
        "BRIDGE_ADMIN_TOKEN as you set it"
        if configuration.admin_token is not None
        else f"BRIDGE_ADMIN_TOKEN in {configuration.data_dir / 'secrets'}"
    )
    yield ""
    yield f"Settings     {configuration.dotenv or 'from the environment only'}"
    yield f"Listening on {address}"
    if configuration.base_url != address:
        yield f"Reached at   {configuration.base_url}"
    yield f"API          {address}/api/v1 with the bearer token {token}"
    yield f'Try          agent-bridge ask {configuration.default_agent} "hello"'
    yield "Stop         Ctrl-C"


async def _log_in_link(bridge: Bridge) -> str:
    """Make a log-in link, but only on a terminal: agents may be able to read a file.

    A bridge whose store cannot write now runs all the same.
    """
    if not sys.stdout.isatty():
        return "run `agent-bridge login` for a link"
    try:
        return await bridge.door.make_link()
    except StoreUnavailable as error:
        return f"not possible now: {error}"


def _shown(configuration: Configuration, command: str) -> str:
    """Show the name of a program, and whether it was found."""
    found = shutil.which(command, path=configuration.path) is not None
    return Path(command).name if found else f"{command} (not found)"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Choose uvloop where it is installed: it is faster; all tests of children pass on both."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop
