"""Reads DATABASE_URL: where the store is, and the password in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pydantic import SecretStr

from app.errors import ConfigurationError

_SETTING = "DATABASE_URL"
_FILE = "bridge.db"
_POSTGRESQL = ("postgresql://", "postgres://")


def read_database_url(given: SecretStr | None, data_dir: Path) -> str:
    """Return the address of the store; by default a file in DATA_DIR.

    Raises:
        ConfigurationError: it is not an address of a database that the bridge can use.
    """
    if given is None:
        return f"sqlite:///{quote(str(data_dir / _FILE))}"
    address = given.get_secret_value()
    if address.startswith(_POSTGRESQL):
        _check(address)
        return f"{_POSTGRESQL[0]}{address.partition('://')[2]}"
    if not address.startswith("sqlite:"):
        raise ConfigurationError(
            _SETTING,
            "is not an address of PostgreSQL or SQLite",
            "Write postgresql://user:password@host/name or sqlite:////path.",
        )
    if not address.startswith("sqlite:////"):
        raise ConfigurationError(
            _SETTING,
            "does not name a file by its absolute path",
            "Write sqlite:////path with four slashes, or remove it.",
        )
    return address


def check_role(role: str, address: str) -> None:
    """Refuse to share the work where there is no one to share it with.

    Raises:
        ConfigurationError: the database is a file.
    """
    if role != "all" and not address.startswith(_POSTGRESQL):
        raise ConfigurationError(
            "ROLE", "needs a PostgreSQL", "Set DATABASE_URL=postgresql://..., or remove ROLE."
        )


def find_database_passwords(given: SecretStr | None) -> Iterator[SecretStr]:
    """Yield the password in an address, as it is written there and as it is sent."""
    if given is None or not (address := given.get_secret_value()).startswith(_POSTGRESQL):
        return
    parts = urlsplit(address)
    for password in (parts.password, *parse_qs(parts.query).get("password", ())):
        if password:
            yield from map(SecretStr, {password, unquote(password)})


def _check(address: str) -> None:
    try:
        parts = urlsplit(address)
        valid = parts.port is None or parts.port > 0
    except ValueError:
        valid = False
    if not valid or not parts.path.strip("/"):
        raise ConfigurationError(
            _SETTING,
            "is not an address of a PostgreSQL database",
            "Write postgresql://user:password@host/name; a special character of the password as"
            " %40 and the like.",
        )
