"""Seals secrets that others gave the bridge, so that its database holds none that can be read.

Each is sealed under its name: one that is moved under another name cannot be opened there.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

NONCE_BYTES = 12
"""What AES-GCM wants; random, since one key seals few secrets."""
KEY_BYTES = 32


class Sealer:
    """Seals and opens with a key of its own, drawn from BRIDGE_SECRET_KEY."""

    def __init__(self, secret_key: SecretStr) -> None:
        drawn = HKDF(
            algorithm=SHA256(), length=KEY_BYTES, salt=None, info=b"agent-bridge stored secrets"
        )
        self._cipher = AESGCM(drawn.derive(secret_key.get_secret_value().encode()))

    def seal(self, name: str, secret: str) -> str:
        """Make of a secret what may be kept under a name."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, secret.encode(), name.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode()

    def open(self, name: str, sealed: str) -> str | None:
        """Give a secret back; None if it was sealed with another key or under another name."""
        try:
            given = base64.b64decode(sealed, altchars=b"-_", validate=True)
            opened = self._cipher.decrypt(given[:NONCE_BYTES], given[NONCE_BYTES:], name.encode())
        except (InvalidTag, binascii.Error, ValueError):
            return None
        return opened.decode()
