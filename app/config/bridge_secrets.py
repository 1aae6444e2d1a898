"""Provides the bridge's own two secrets: from settings, or generated once and kept in DATA_DIR.

The file `secrets` there appears whole or not at all, and only its owner can read it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from app.config.configuration import Configuration
from app.config.settings import SHORTEST_ADMIN_TOKEN, SHORTEST_SECRET_KEY
from app.errors import ConfigurationError

FILE_NAME = "secrets"

_TOKEN = "BRIDGE_ADMIN_TOKEN"  # noqa: S105 - a name
_KEY = "BRIDGE_SECRET_KEY"


@dataclass(frozen=True, slots=True)
class BridgeSecrets:
    """The token for the API and the page, and the key that signs and encrypts."""

    admin_token: SecretStr
    """The API's bearer token."""
    secret_key: SecretStr
    """The key for cookies and stored secrets."""

    @classmethod
    def parse(cls, text: str) -> BridgeSecrets | None:
        """Read both from the text of a secrets file; None if one is missing or too short."""
        kept = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        token, key = kept.get(_TOKEN, ""), kept.get(_KEY, "")
        if len(token) < SHORTEST_ADMIN_TOKEN or len(key) < SHORTEST_SECRET_KEY:
            return None
        return cls(SecretStr(token), SecretStr(key))

    def write(self) -> str:
        """Write both as the text of a secrets file."""
        token, key = self.values()
        return f"{_TOKEN}={token}\n{_KEY}={key}\n"

    def values(self) -> Iterator[str]:
        """Yield both, for the vault."""
        yield self.admin_token.get_secret_value()
        yield self.secret_key.get_secret_value()


def ensure_secrets(configuration: Configuration) -> BridgeSecrets:
    """Return the bridge's secrets; generate those not given, once per DATA_DIR.

    Raises:
        ConfigurationError: DATA_DIR is not writable, or its secrets file is unusable.
    """
    token, key = configuration.admin_token, configuration.secret_key
    if token is not None and key is not None:
        return BridgeSecrets(token, key)
    kept = _load_or_create(configuration.shared_dir)
    return BridgeSecrets(token or kept.admin_token, key or kept.secret_key)


def find_secret_key(configuration: Configuration) -> SecretStr | None:
    """Return the key of this DATA_DIR without generating one; None if there is none yet.

    Raises:
        ConfigurationError: the secrets file of DATA_DIR is unusable.
    """
    if configuration.secret_key is None and (configuration.shared_dir / FILE_NAME).exists():
        return ensure_secrets(configuration).secret_key
    return configuration.secret_key


def _load_or_create(data_dir: Path) -> BridgeSecrets:
    path = data_dir / FILE_NAME
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _create(path)
        text = _read(path)
    except OSError:
        problem, remedy = (
            "the bridge cannot write or read its secrets file",
            "Let the bridge own DATA_DIR.",
        )
    else:
        if (kept := BridgeSecrets.parse(text)) is not None:
            return kept
        problem = "its secrets file is damaged"
        remedy = f"Restore it, or set {_TOKEN} and {_KEY}; new values end every login."
    raise ConfigurationError("DATA_DIR", problem, remedy)


def _create(path: Path) -> None:
    """Write a draft and link it into place, so two bridges at once never leave half a file."""
    draft = path.with_name(f".{FILE_NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            new = (SecretStr(secrets.token_urlsafe(32)) for _ in range(2))
            file.write(BridgeSecrets(*new).write())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        if os.fstat(descriptor).st_mode & 0o077:
            raise ConfigurationError(
                "DATA_DIR",
                "its secrets file is readable by other users",
                "Run chmod 600 on it. If someone may have read it, delete it.",
            )
        return file.read()
