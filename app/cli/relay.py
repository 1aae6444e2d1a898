"""`relay`: lets a bridge on another machine use an agent of this one."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path
from typing import Annotated, Final

import typer
from typer import Argument, Option

from app.config.fields import is_loopback
from app.config.relay import read_relay_environment
from app.errors import ConfigurationError
from app.terminal.framing import commands, examples

COMMANDS = commands()
PORT: Final = 8765
"""Free on most machines, and in no browser's list of blocked ports."""


@COMMANDS.command(
    no_args_is_help=True,
    # Options after the command are the agent's.
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "relay claude-agent-acp",
        "relay --host 0.0.0.0 --certificate relay.pem --key relay.key codex-acp",
    ),
)
def relay(
    command: Annotated[
        list[str], Argument(metavar="COMMAND...", help="The agent's command, which speaks ACP.")
    ],
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65535, help="The port to listen on.")] = PORT,
    connections: Annotated[
        int, Option(min=1, max=1000, help="How many processes run at once, at most.")
    ] = 8,
    hold: Annotated[
        float,
        Option(min=1, max=3600, help="How many seconds a process waits for a cut connection."),
    ] = 60,
    certificate: Annotated[
        Path | None, Option(help="A PEM file with the certificate, for TLS.")
    ] = None,
    key: Annotated[Path | None, Option(help="A PEM file with its private key.")] = None,
    plaintext: Annotated[
        bool,
        Option("--plaintext", help="Listen beyond this machine without TLS, as behind a proxy."),
    ] = False,
) -> None:
    """Let a bridge on another machine use an agent of this one.

    Listens for the WebSocket of a bridge whose agent has this machine's address as its `url`, and
    starts the command once for each conversation, in the current folder. RELAY_TOKEN or
    RELAY_TOKEN_FILE holds the token that the bridge must send.
    """
    environment = read_relay_environment()
    if shutil.which(command[0], path=environment.child.get("PATH")) is None:
        raise ConfigurationError(
            "relay", "its command was not found", "Check COMMAND, or install the agent."
        )
    tls = _read_certificate(certificate, key)
    if tls is None and not is_loopback(host) and not plaintext:
        raise ConfigurationError(
            "relay",
            "would send the token and every word over the network without TLS",
            "Give it --certificate and --key, or --plaintext if a proxy in front of it has them.",
        )
    from aiohttp import web  # noqa: PLC0415 - `--help` needs none of this

    from app import logs  # noqa: PLC0415
    from app.acp.relay import Relay, RelayedCommand  # noqa: PLC0415
    from app.vault import Vault  # noqa: PLC0415

    logs.configure("info", "console", Vault([environment.token.get_secret_value()]))
    behind = RelayedCommand(tuple(command), environment.child, environment.folder)
    served = Relay(behind, environment.token, connections=connections, hold_seconds=hold)
    scheme = "ws" if tls is None else "wss"
    words = f"Relaying {command[0]} at {scheme}://{host}:{port}, until Ctrl-C or TERM."
    web.run_app(
        served.application(),
        host=host,
        port=port,
        ssl_context=tls,
        print=lambda _: typer.echo(words, err=True),
        access_log=None,
        handle_signals=True,
    )


def _read_certificate(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigurationError(
            "relay", "TLS needs a certificate and a key", "Give it both --certificate and --key."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError):
        raise ConfigurationError(
            "relay",
            "its certificate and key cannot be used together",
            "Name two readable PEM files that belong to each other, the chain in the first one.",
        ) from None
    return context
