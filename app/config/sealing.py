"""Encrypts secrets that others gave the bridge, so its database holds none in plain text.

Each is bound to its name: a secret moved to another name cannot be opened there.
"""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

NONCE_BYTES = 12
"""The size AES-GCM expects; random ones are safe for four billion values under one key."""
KEY_BYTES = 32


class Sealer:
    """Seals and opens with its own key, derived from BRIDGE_SECRET_KEY."""

    def __init__(self, secret_key: SecretStr) -> None:
        drawn = HKDF(
            algorithm=SHA256(), length=KEY_BYTES, salt=None, info=b"agent-bridge stored secrets"
        )
        self._cipher = AESGCM(drawn.derive(secret_key.get_secret_value().encode()))

    def seal(self, name: str, secret: str) -> str:
        """Encrypt a secret for storage under a name."""
        return base64.urlsafe_b64encode(self.seal_bytes(name, secret.encode())).decode()

    def open(self, name: str, sealed: str) -> str | None:
        """Decrypt a secret; None if it was sealed with another key or under another name."""
        try:
            opened = self.open_bytes(name, base64.b64decode(sealed, altchars=b"-_", validate=True))
        except ValueError:  # also binascii's own
            return None
        return None if opened is None else opened.decode()

    def seal_bytes(self, name: str, secret: bytes) -> bytes:
        """Encrypt bytes for storage under a name."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, name.encode())

    def open_bytes(self, name: str, sealed: bytes) -> bytes | None:
        """Decrypt bytes; None if they were sealed with another key or under another name."""
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], name.encode())
        except (InvalidTag, ValueError):
            return None
