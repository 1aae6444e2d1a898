"""Keeps known secrets out of the database: redacts columns that are shown, seals the others.

It applies to every write: a column's type decides whether it is redacted or sealed. Raw deliveries
are sealed without a search for secrets: to encrypt one takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

from pydantic import SecretStr
from sqlalchemy import JSON, Connection, Dialect, LargeBinary, Text, TypeDecorator

from app.vault import MASK, Vault

_MARK = "sealed:"
"""Marks sealed text; text from people that starts with it is sealed too, so it is unambiguous."""
_BYTES_MARK = b"sealed\0"
"""Marks sealed bytes; earlier versions stored them as sealed text, or as they were."""
_NAME = "store"
_ATTRIBUTE = "agent_bridge_guard"


class Seals(Protocol):
    """Seals and opens texts and bytes, each under a name."""

    def seal(self, name: str, secret: str) -> str:
        """Make of a text what may be kept."""
        ...

    def open(self, name: str, sealed: str) -> str | None:
        """Return the original text; None if it was sealed with another key."""
        ...

    def seal_bytes(self, name: str, secret: bytes) -> bytes:
        """Make of bytes what may be kept."""
        ...

    def open_bytes(self, name: str, sealed: bytes) -> bytes | None:
        """Return the original bytes; None if they were sealed with another key."""
        ...


class Guard:
    """Turns texts and bytes into what may be stored, and back."""

    def __init__(self, vault: Vault, make_seals: Callable[[], Seals]) -> None:
        self.vault = vault
        self._make_seals = make_seals

    def must_seal(self, text: str) -> bool:
        """Tell whether a text holds a secret, or looks like sealed text."""
        return text.startswith(_MARK) or self.vault.contains(text)

    def seal(self, text: str) -> str:
        """Make of a text what may be kept."""
        return _MARK + self._seals.seal(_NAME, text)

    def open(self, text: str) -> str:
        """Return the original text; a mask if it was sealed with another key."""
        opened = self._seals.open(_NAME, text.removeprefix(_MARK))
        return MASK if opened is None else opened

    def seal_bytes(self, value: bytes) -> bytes:
        """Make of bytes what may be kept."""
        return _BYTES_MARK + self._seals.seal_bytes(_NAME, value)

    def open_bytes(self, value: bytes) -> bytes:
        """Return the original bytes; a mask if they were sealed with another key."""
        opened = self._seals.open_bytes(_NAME, value.removeprefix(_BYTES_MARK))
        return MASK.encode() if opened is None else opened

    @cached_property
    def _seals(self) -> Seals:
        return self._make_seals()


def guard_of(connection: Connection) -> Guard | None:
    """Return the guard of a connection, if it has one."""
    return _find_guard(connection.dialect)


def put_on_guard(dialect: Dialect, guard: Guard) -> None:
    """Make a guard check everything written and read through a dialect."""
    # On the dialect itself: it is looked up for every value that is written.
    vars(dialect)[_ATTRIBUTE] = guard


def _find_guard(dialect: Dialect) -> Guard | None:
    return vars(dialect).get(_ATTRIBUTE)


class Shown(TypeDecorator[str]):
    """A text that people see, without secrets."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Take secrets out."""
        guard = _find_guard(dialect)
        return value if guard is None or value is None else guard.vault.redact(value)


class ShownJson(TypeDecorator[Any]):
    """A JSON value that people see, without secrets."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Take secrets out."""
        guard = _find_guard(dialect)
        return value if guard is None else guard.vault.redact_json(value)


class Kept(TypeDecorator[str]):
    """A text that an agent gets unchanged: sealed if it holds a secret."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Seal what holds a secret."""
        guard = _find_guard(dialect)
        if guard is None or value is None or not guard.must_seal(value):
            return value
        return guard.seal(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Open what is sealed."""
        if value is None or not value.startswith(_MARK):
            return value
        guard = _find_guard(dialect)
        return MASK if guard is None else guard.open(value)


class KeptBytes(TypeDecorator[bytes]):
    """The raw bytes of a delivery, sealed."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Seal them."""
        guard = _find_guard(dialect)
        return value if guard is None or value is None else guard.seal_bytes(value)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> bytes | None:
        """Open what is sealed."""
        if value is None or not value.startswith((_BYTES_MARK, _MARK.encode())):
            return value
        guard = _find_guard(dialect)
        if guard is None:
            return MASK.encode()
        if value.startswith(_BYTES_MARK):
            return guard.open_bytes(value)
        return guard.open(value.decode("latin-1")).encode("latin-1")


def make_sealer(secret_key: SecretStr) -> Seals:
    """Make what seals; late, since the import takes 0.05 s and the port listens first."""
    from app.config.process import Sealer  # noqa: PLC0415

    return Sealer(secret_key)
