"""Finds secrets in bytes that are read piece by piece: files and objects of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from app.vault import Vault
from app.vault.folded import Span

PIECE_BYTES = 1024 * 1024
"""How much is read at once."""
CROSS = "x"
"""What is written over a secret where git reads names: it takes neither stars nor brackets."""
SEAM_BYTES = 64 * 1024
"""How much of a piece is looked at again with the next one: more than any form of a secret."""
# Much faster to search than what looks like letters and is none.
_PLAIN = bytes(range(128)) + bytes(128)


class Known(Protocol):
    """What is looked for in texts: secrets, or names."""

    @property
    def is_folded(self) -> bool:
        """Whether all of it is found by its letters and digits alone."""
        ...

    def contains(self, text: str) -> bool:
        """Tell whether a text holds something of it."""
        ...

    def spans(self, text: str) -> list[Span]:
        """Return where in a text it is."""
        ...

    def redact(self, text: str) -> str:
        """Return a text without it."""
        ...

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value without it."""
        ...


def vault_of(text: str) -> Vault:
    """Look for one text, also as the bytes of its UTF-8 are read here."""
    return Vault({text, text.encode().decode("latin-1")})


def find_spans(vault: Known, pieces: Iterable[bytes]) -> Iterator[Span]:
    """Yield where secrets are in all the pieces together, in order; some may come twice."""
    seam, at = b"", 0
    for piece in pieces:
        seen = seam + piece
        begin = at - len(seam)
        yield from ((begin + a, begin + b) for a, b in vault.spans(_as_text(seen, vault)))
        at += len(piece)
        seam = seen[-SEAM_BYTES:]


def cross_out(vault: Known, name: str) -> str:
    """Write `x` over a secret in the name of a branch, which stays a name that git takes."""
    for start, end in vault.spans(name):
        name = name[:start] + CROSS * (end - start) + name[end:]
    return name


def _as_text(octets: bytes, vault: Known) -> str:
    """Make one character of each byte, so that positions in the text are those of the bytes."""
    return octets.translate(_PLAIN).decode() if vault.is_folded else octets.decode("latin-1")


def is_in(vault: Known, pieces: Iterable[bytes]) -> bool:
    """Tell whether the pieces hold a secret."""
    return next(find_spans(vault, pieces), None) is not None
