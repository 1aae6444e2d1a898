"""Encrypts a stream of bytes into a file, and decrypts it piece by piece, each after its check.

The file begins with one line of JSON in plain text, which every later piece confirms. Each piece
has its number, and the last one says that it is the last: a file that was cut, joined or changed
is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Final, Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.errors import BackupUnusable

NAME: Final = "agent-bridge backup"
VERSION: Final = 1
"""The version of the format: of this file, and of what is in it."""
PIECE_BYTES: Final = 1024 * 1024
HEADER_BYTES: Final = 4096
"""The longest first line."""
_TAG_BYTES: Final = 16
_SALT_BYTES: Final = 16
_SCRYPT: Final = {"n": 2**16, "r": 8, "p": 1, "maxmem": 2**27}
"""64 MiB and a fifth of a second per guess of a passphrase."""

Sealing = Literal["passphrase", "secret key"]
"""What opens a backup."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What seals a backup: a passphrase, or BRIDGE_SECRET_KEY."""

    kind: Sealing
    value: str

    def derive(self, salt: bytes) -> bytes:
        """Return the key for one file."""
        words = self.value.encode()
        if self.kind == "passphrase":
            return hashlib.scrypt(words, salt=salt, dklen=32, **_SCRYPT)
        # The secret key is long and random: it needs no slowing down.
        return hmac.digest(words, b"agent-bridge backup:" + salt, "sha256")


class SealedWriter:
    """Writes an encrypted stream to a file."""

    def __init__(self, file: IO[bytes], secret: Secret) -> None:
        salt = os.urandom(_SALT_BYTES)
        header = {"format": NAME, "version": VERSION, "sealed with": secret.kind}
        self._header = json.dumps({**header, "salt": salt.hex()}).encode() + b"\n"
        self._cipher = AESGCM(secret.derive(salt))
        self._file = file
        self._number = 0
        self._rest = bytearray()
        self._file.write(self._header)

    def write(self, data: bytes) -> int:
        """Add bytes."""
        self._rest += data
        # The last piece is never empty by accident: one full piece waits for the end.
        while len(self._rest) > PIECE_BYTES:
            self._seal(bytes(self._rest[:PIECE_BYTES]), is_last=False)
            del self._rest[:PIECE_BYTES]
        return len(data)

    def finish(self) -> None:
        """Write the last piece."""
        self._seal(bytes(self._rest), is_last=True)

    def _seal(self, piece: bytes, *, is_last: bool) -> None:
        nonce = _nonce(self._number, is_last=is_last)
        self._file.write(self._cipher.encrypt(nonce, piece, self._header))
        self._number += 1


class SealedReader:
    """Reads an encrypted stream from a file."""

    def __init__(self, file: IO[bytes], secret: Secret) -> None:
        """Read the first line.

        Raises:
            BackupUnusable: it is not a backup, or opened in another way.
        """
        self._header, header = _read_header(file)
        self._secret = secret
        self._cipher = AESGCM(secret.derive(bytes.fromhex(header["salt"])))
        self._file = file
        self._number = 0
        self._opened = b""
        self._next = file.read(PIECE_BYTES + _TAG_BYTES)
        self._is_over = False

    def read(self, size: int = -1) -> bytes:
        """Read bytes; fewer than asked for only at the end.

        Raises:
            BackupUnusable: the secret is another one, or the file is damaged.
        """
        while not self._is_over and (size < 0 or len(self._opened) < size):
            self._open_next()
        cut = len(self._opened) if size < 0 else size
        found, self._opened = self._opened[:cut], self._opened[cut:]
        return found

    def _open_next(self) -> None:
        piece, self._next = self._next, self._file.read(PIECE_BYTES + _TAG_BYTES)
        self._is_over = not self._next
        nonce = _nonce(self._number, is_last=self._is_over)
        try:
            self._opened += self._cipher.decrypt(nonce, piece, self._header)
        except InvalidTag:
            if self._number:
                raise BackupUnusable("the backup is damaged: use another one") from None
            raise BackupUnusable(
                f"the {self._secret.kind} is not the one that it was sealed with, or it is damaged"
            ) from None
        self._number += 1


def read_sealing(file: IO[bytes]) -> Sealing:
    """Tell what opens a backup; leaves the file at its beginning.

    Raises:
        BackupUnusable: it is not a backup of this version.
    """
    _, header = _read_header(file)
    file.seek(0)
    return "passphrase" if header["sealed with"] == "passphrase" else "secret key"


def _read_header(file: IO[bytes]) -> tuple[bytes, Mapping[str, Any]]:
    line = file.readline(HEADER_BYTES)
    try:
        header = json.loads(line)
        is_ours = header["format"] == NAME and bool(bytes.fromhex(header["salt"]))
        version = int(header["version"])
    except (ValueError, KeyError, TypeError):
        is_ours, version = False, 0
    if not is_ours:
        raise BackupUnusable("it is not a backup of Agent Bridge")
    if version != VERSION:
        raise BackupUnusable(
            f"it has version {version} of the format, and this release reads {VERSION}. "
            "Use the release that made it, or a newer one"
        )
    return line, header


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])
