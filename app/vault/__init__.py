"""Holds the secret values the bridge knows and redacts them from everything that leaves.

A value registered here is never given back: text goes in, text without secrets comes out. Known
secrets are found in their usual forms; an invented code gets past any filter.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from app.vault.finding import SHORTEST_SECRET as SHORTEST_SECRET
from app.vault.finding import ExactIndex, FoldedIndex, Span, exact_forms, is_foldable

MASK = "[secret]"

# A chain of overlapping matches may hold back this many times the longest form, not more.
_LONGEST_HOLD = 4

# What has left is remembered this far: three letters of a secret and the widest gaps between them.
_REMEMBERED = 128

# Between texts that are searched at once: ends whatever may hide letters from one into the next,
# so that a secret that is found in a text alone is found there too.
_BETWEEN = "\x07\n>"


class Vault:
    """The secrets the bridge knows; nothing that went through it holds one of them."""

    __slots__ = ("_exact", "_folded", "_lock", "_values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self._exact: ExactIndex | None = None
        self._folded = FoldedIndex()
        self._lock = threading.Lock()
        self.register(*values)

    def __repr__(self) -> str:
        return f"Vault({len(self._values)} secrets)"

    def register(self, *values: str) -> None:
        """Remember secrets; values too short to be told from ordinary text are ignored."""
        secrets = {value for value in values if len(value) >= SHORTEST_SECRET}
        with self._lock:
            new = secrets - self._values
            foldable = {value for value in new if is_foldable(value)}
            for value in foldable:
                self._folded.add(value)
            if new - foldable:
                forms = (form for value in new - foldable for form in exact_forms(value))
                # Readers hold either the old index or the new one, never one in the making.
                self._exact = ExactIndex.of(forms, self._exact)
            self._values |= secrets

    def contains(self, *texts: str) -> bool:
        """Say whether a known secret may be in one of the texts, in any of its forms.

        Several are searched at once. That is sure of a text alone, and never misses one; of
        several it may take the end of one and the beginning of the next for a secret.
        """
        return bool(self._look(_BETWEEN.join(texts))[0])

    @property
    def is_folded(self) -> bool:
        """Whether all that is known is found by its letters and digits alone."""
        return self._exact is None

    def spans(self, text: str) -> list[Span]:
        """Return where in the text known secrets are: start and end of each, in order."""
        return self._look(text)[0]

    def redact(self, text: str) -> str:
        """Return the text with every known secret replaced by a mask."""
        return _masked(text, self._look(text)[0])

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value with every known secret in its texts replaced by a mask."""
        if self._values and self.contains(*_texts_of(value)):
            return self._redact_json(value)
        return value

    def _redact_json(self, value: Any) -> Any:
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {
                    self._redact_json(key): self._redact_json(item) for key, item in value.items()
                }
            case list() | tuple():
                return [self._redact_json(item) for item in value]
            case _:
                return value

    def hold_back(self, text: str, final: bool = False, *, before: str = "") -> tuple[str, str]:
        """Split a growing text into what may leave now, redacted, and what must wait.

        The second part goes in front of the next piece, so that a secret that comes in two
        pieces never leaves in two pieces. `before` is the end of what has left already: up to
        three letters of a secret may be there.
        """
        border = len(before)
        found, pending = self._look(before + text, growing=not final)
        spans = [(max(0, start - border), end - border) for start, end in found if end > border]
        pending = max(0, pending - border)
        # Half of a match must not leave while the other half waits.
        cut = next((start for start, end in spans if start < pending < end), pending)
        longest = max(self._folded.longest, self._exact.longest if self._exact else 0)
        if len(text) - cut > _LONGEST_HOLD * longest:
            return _masked(text[:cut], spans) + MASK, text[pending:]
        return _masked(text[:cut], spans), text[cut:]

    def _look(self, text: str, *, growing: bool = False) -> tuple[list[Span], int]:
        """Find the secrets of a text, and where one may begin that goes on after its end."""
        if len(text) < SHORTEST_SECRET and not growing:
            return [], len(text)
        spans: list[Span] = []
        pending = len(text)
        exact = self._exact
        if exact is not None:
            spans += exact.spans(text)
            pending = exact.unfinished(text) if growing else pending
        if self._folded:
            found, unfinished = self._folded.look(text, growing=growing)
            spans += found
            pending = min(pending, unfinished)
        return _joined(spans) if spans else spans, pending


class GrowingText:
    """A text that leaves piece by piece; what may be the beginning of a secret waits."""

    __slots__ = ("_left", "_vault", "waiting")

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._left = ""
        self.waiting = ""
        """What has come and may not leave yet, as it came."""

    def split(self, piece: str, *, final: bool = False) -> tuple[str, str]:
        """Return what may leave with another piece, and what must wait; it is not taken yet."""
        return self._vault.hold_back(self.waiting + piece, final=final, before=self._left)

    def take(self, safe: str, waiting: str, *, final: bool = False) -> None:
        """Take what was split."""
        self.waiting = waiting
        # The first letters of a secret may have left already, perhaps right behind another one.
        self._left = "" if final else (self._left + safe).rpartition(MASK)[2][-_REMEMBERED:]


def _texts_of(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield from _texts_of(key)
                yield from _texts_of(item)
        case list() | tuple():
            for item in value:
                yield from _texts_of(item)


def _joined(spans: list[Span]) -> list[Span]:
    """Put spans in order, overlapping ones as one."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _masked(text: str, spans: Iterable[Span]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        if end > len(text):
            break
        parts += (text[done:start], MASK)
        done = end
    if not parts:
        return text
    return "".join((*parts, text[done:]))


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
        # One character of each byte, so that positions in the text are those of the bytes.
        text = seen.translate(_PLAIN).decode() if vault.is_folded else seen.decode("latin-1")
        yield from ((begin + a, begin + b) for a, b in vault.spans(text))
        at += len(piece)
        seam = seen[-SEAM_BYTES:]


def cross_out(vault: Known, name: str) -> str:
    """Write `x` over a secret in the name of a branch, which stays a name that git takes."""
    for start, end in vault.spans(name):
        name = name[:start] + CROSS * (end - start) + name[end:]
    return name


def is_in(vault: Known, pieces: Iterable[bytes]) -> bool:
    """Tell whether the pieces hold a secret."""
    return next(find_spans(vault, pieces), None) is not None
