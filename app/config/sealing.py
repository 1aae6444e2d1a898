"""Encrypts secrets that others gave the bridge, so its database holds none in plain text.

Each is bound to its name: a secret moved to another name cannot be opened there.
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
"""The size AES-GCM expects; random nonces are safe, since one key seals few secrets."""
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
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, secret.encode(), name.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode()

    def open(self, name: str, sealed: str) -> str | None:
        """Decrypt a secret; None if it was sealed with another key or under another name."""
        try:
            given = base64.b64decode(sealed, altchars=b"-_", validate=True)
            opened = self._cipher.decrypt(given[:NONCE_BYTES], given[NONCE_BYTES:], name.encode())
        except (InvalidTag, binascii.Error, ValueError):
            return None
        return opened.decode()
