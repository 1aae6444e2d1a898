"""The secret values the bridge holds, and the sieve that keeps them out of whatever leaves.

A value registered here is never given back: text goes in, text without secrets comes out.
"""

from __future__ import annotations

import base64
import html
import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "[secret]"

# Shorter values occur in ordinary words: hiding them would shred text and hide nothing.
SHORTEST_SECRET = 8

# Text is looked at in samples of this many characters; fewer would match ordinary prose.
_GRAM = 4

# A wider step would save little time and cost memory for every form.
_WIDEST_STEP = 32

# From this length on, four fifths of a secret are as good as the whole.
_CUTTABLE = 20

# What people and agents put between characters to slip past a filter.
_SEPARATORS = (" ", "-", ".", "\n")

# A chain of overlapping matches may hold back this many times the longest form, not more.
_LONGEST_HOLD = 4


@dataclass(frozen=True, slots=True, repr=False)
class _Index:
    """Every form of every secret, arranged so that a long text is read in a few samples.

    An occurrence of a form at p covers a sampled position p + offset with offset < step, and
    the gram there is form[offset : offset + 4]; so looking up the sampled grams finds them all.
    """

    forms: tuple[str, ...]
    heads: frozenset[str]
    grams: dict[str, tuple[tuple[int, str], ...]]
    step: int
    longest: int

    @classmethod
    def of(cls, forms: Iterable[str], known: _Index | None = None) -> _Index:
        """Arrange the forms; build upon what is known already where the step allows it."""
        new = set(forms)
        step = min(min(map(len, new)) - _GRAM + 1, _WIDEST_STEP)
        if known is not None and step < known.step:
            return cls.of(new.union(known.forms))
        step = known.step if known else step
        grams = dict(known.grams) if known else {}
        for form in new.difference(known.forms if known else ()):
            for offset in range(step):
                gram = form[offset : offset + _GRAM]
                grams[gram] = (*grams.get(gram, ()), (offset, form))
        ordered = tuple(sorted(new.union(known.forms if known else ())))
        heads = frozenset(form[:_GRAM] for form in ordered)
        return cls(ordered, heads, grams, step, max(map(len, ordered)))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where forms stand in the text, overlapping ones joined, in order."""
        found = sorted(
            (start, start + len(form))
            for start, form in self._candidates(text, 0)
            if text.startswith(form, start)
        )
        joined: list[tuple[int, int]] = []
        for start, end in found:
            if joined and start < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return joined

    def unfinished(self, text: str) -> int:
        """Return where the longest tail begins that a secret may still grow out of."""
        earliest = max(0, len(text) - self.longest + 1)
        starts = [
            start
            for start, form in self._candidates(text, earliest)
            if start >= earliest and len(text) - start < len(form) and form.startswith(text[start:])
        ]
        # A tail as short as a step plus a gram may lie between two samples.
        nearest = max(earliest, len(text) - self.step - _GRAM)
        likely = [
            start
            for start in range(nearest, len(text))
            if text[start : start + _GRAM] in self.heads or start > len(text) - _GRAM
        ]
        starts += [start for start in likely if self._begins(text[start:])]
        return min(starts, default=len(text))

    def _candidates(self, text: str, earliest: int) -> Iterator[tuple[int, str]]:
        first = earliest - earliest % self.step
        samples = [text[at : at + _GRAM] for at in range(first, len(text), self.step)]
        if self.grams.keys().isdisjoint(samples):
            return
        for number, gram in enumerate(samples):
            for offset, form in self.grams.get(gram, ()):
                start = first + number * self.step - offset
                if start >= 0:
                    yield start, form

    def _begins(self, tail: str) -> bool:
        at = bisect_left(self.forms, tail)
        if at < len(self.forms) and self.forms[at] == tail:
            at += 1
        return at < len(self.forms) and self.forms[at].startswith(tail)


class Vault:
    """The secrets the bridge knows; nothing that went through it holds one of them."""

    __slots__ = ("_index", "_lock", "_values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self._index: _Index | None = None
        self._lock = threading.Lock()
        self.register(*values)

    def __repr__(self) -> str:
        return f"Vault({len(self._values)} secrets)"

    def register(self, *values: str) -> None:
        """Remember secrets; values too short to be told from ordinary text are ignored."""
        secrets = {value for value in values if len(value) >= SHORTEST_SECRET}
        with self._lock:
            if secrets <= self._values:
                return
            new = (form for value in secrets - self._values for form in _forms(value))
            # Readers hold either the old index or the new one, never one in the making.
            self._index = _Index.of(new, self._index)
            self._values |= secrets

    def contains(self, text: str) -> bool:
        """Say whether the text holds a known secret in any of its forms."""
        return self._index is not None and bool(self._index.spans(text))

    def redact(self, text: str) -> str:
        """Return the text with every known secret replaced by a mask."""
        index = self._index
        return text if index is None else _masked(text, index.spans(text))

    def redact_json(self, value: Any) -> Any:
        """Return a JSON value with every known secret in its texts replaced by a mask."""
        if self._index is None:
            return value
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {
                    self.redact_json(key): self.redact_json(item) for key, item in value.items()
                }
            case list() | tuple():
                return [self.redact_json(item) for item in value]
            case _:
                return value

    def hold_back(self, text: str, final: bool = False) -> tuple[str, str]:
        """Split a growing text into what may leave now, redacted, and what must wait.

        The second part goes in front of the next piece, so that a secret that comes in two
        pieces never leaves in two pieces.
        """
        index = self._index
        if index is None:
            return text, ""
        spans = index.spans(text)
        if final:
            return _masked(text, spans), ""
        pending = index.unfinished(text)
        # Half of a match must not leave while the other half waits.
        cut = next((start for start, end in spans if start < pending < end), pending)
        if len(text) - cut > _LONGEST_HOLD * index.longest:
            return _masked(text[:cut], spans) + MASK, text[pending:]
        return _masked(text[:cut], spans), text[cut:]


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
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


def _forms(value: str) -> set[str]:
    """Return the ways in which a secret is met in text."""
    found = {value, value[::-1]}
    found |= _cut(value)
    found |= {separator.join(value) for separator in _SEPARATORS}
    found |= _escaped(value)
    found |= _percent(value)
    octets = value.encode(errors="surrogatepass")
    found |= {octets.hex(), octets.hex().upper()}
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        found |= _base64(octets, encode)
    return {form for form in found if len(form) >= SHORTEST_SECRET}


def _cut(value: str) -> set[str]:
    if len(value) < _CUTTABLE:
        return set()
    most = len(value) * 4 // 5
    return {value[:most], value[-most:]}


def _escaped(value: str) -> set[str]:
    """Return the value as escaped once and twice: JSON in a repr, a repr in JSON, and so on."""
    once = {escape(value) for escape in _ESCAPES}
    return once | {escape(form) for escape in _ESCAPES for form in once}


_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: repr(text)[1:-1],
    html.escape,
)


def _percent(value: str) -> set[str]:
    octets = value.encode(errors="surrogatepass")
    usual = {quote(octets, safe=""), quote(octets), quote_plus(octets)}
    every = "".join(f"%{octet:02X}" for octet in octets)
    lower = {_lower_escapes(form) for form in usual}
    return usual | lower | {every, every.lower()}


def _lower_escapes(quoted: str) -> str:
    head, *escaped = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in escaped)


def _base64(octets: bytes, encode: Callable[[bytes], bytes]) -> set[str]:
    """Return the encodings of a secret, alone and in the midst of other octets.

    Of the latter only those characters count that no neighbour has a bit in.
    """
    whole = encode(octets).decode()
    found = {whole, whole.rstrip("=")}
    for before in range(3):
        text = encode(bytes(before) + octets).decode()
        first = -(-8 * before // 6)
        last = 8 * (before + len(octets)) // 6
        found.add(text[first:last])
    return found
