"""Finds secrets in text: exactly as written, and folded, in pieces and in the usual encodings.

One pass looks at four letters out of every eight. Each match is a span of the original text, so
that only the secret is masked.
"""

from __future__ import annotations

import base64
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress, count, pairwise
from typing import Literal

from app.vault.forms import (
    base64_cores,
    encodings,
    escape,
    fold,
    percent,
    position_from_end,
    positions,
    visible,
)

# Shorter values occur in ordinary words: hiding them would shred text and hide nothing.
SHORTEST_SECRET = 8

# Text is looked at in samples of this many characters; fewer would match ordinary prose.
_GRAM = 4

# A wider step would save little time and cost memory for every form.
_WIDEST_STEP = 32


@dataclass(frozen=True, slots=True, repr=False)
class ExactIndex:
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
    def of(cls, forms: Iterable[str], known: ExactIndex | None = None) -> ExactIndex:
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
        """Return where forms occur in the text."""
        return [
            (start, start + len(form))
            for start, form in self._candidates(text, 0)
            if text.startswith(form, start)
        ]

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


def exact_forms(value: str) -> set[str]:
    """Return the ways in which a secret is met in text."""
    octets = value.encode(errors="surrogatepass")
    found = {value, octets.hex(), octets.hex().upper(), *escape(value), *percent(value)}
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        found |= base64_cores(octets, encode)
    return {form for form in found if len(form) >= SHORTEST_SECRET}


PIECE = 12
"""Letters of a secret in a row that count as the secret: by chance they occur in no text."""
LONG_PIECE = 48
"""The same for private keys, whose beginnings are alike; less of one is of no use."""
LONG_SECRET = 256

# A piece that is all letters or all digits may be prose or a date: then most must be there.
_MOST = 0.9

_CHARACTERS_PER_HUMP = 12  # words in camel case have fewer humps, random letters twice as many


_STEP = 8  # a piece of eleven letters holds a whole sample wherever it begins

# Other characters after the last letter that may still be separators inside of a secret.
_WIDEST_GAP = 32

_MARKS_BEFORE = "%\\&#"
_MARKS_AFTER = "="

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, repr=False)
class Needle:
    """One form of one secret, folded."""

    letters: bytes
    enough: int
    """How many letters in a row give the secret away."""
    in_pieces: bool = False
    """Whether a piece counts wherever it begins, or only the beginning."""
    of_words: bool = True
    """Whether its letters may be words; the case of random ones changes all the time."""
    before: str = ""
    after: str = ""
    """What the secret itself begins and ends with besides letters."""

    def gives_away(self, run: bytes) -> bool:
        """Say whether so much of it is too much."""
        if len(run) < self.enough:
            return False
        usual = run.isdigit() or (run.isalpha() and self.of_words)
        return not (self.in_pieces and usual) or len(run) >= _MOST * len(self.letters)


@dataclass(frozen=True, slots=True)
class _Run:
    """Letters that a text and a needle have in common."""

    start: int
    end: int
    needle: Needle
    offset: int
    """Where in the needle they begin."""

    def grows(self, letters: bytes) -> bool:
        """Say whether the needle may go on after the end of the text."""
        more = self.offset + self.end - self.start < len(self.needle.letters)
        return more and self.end == len(letters)


def is_foldable(value: str) -> bool:
    """Say whether enough of a value is left when it is folded to be told from ordinary text."""
    return value.isascii() and len(fold(value)) >= PIECE


def needles(value: str) -> Iterator[Needle]:
    """Yield the forms of a secret that are looked for, each once."""
    piece = PIECE if len(value) <= LONG_SECRET else LONG_PIECE
    plain = fold(value)
    first = next(at for at, character in enumerate(value) if character.isalnum())
    last = next(at for at, character in enumerate(reversed(value)) if character.isalnum())
    after = value[len(value) - last :]
    humps = sum(low.islower() and high.isupper() for low, high in pairwise(value))
    of_words = humps * _CHARACTERS_PER_HUMP < len(value)
    yield Needle(plain, min(piece, len(plain)), True, of_words, value[:first], after)
    for letters in {fold(form) for form in encodings(value)} - {plain}:
        if len(letters) >= PIECE:
            worth = -(-len(letters) * piece // len(value))
            yield Needle(letters, min(max(worth, PIECE), len(letters)))


class FoldedIndex:
    """Every form of every secret, arranged so that a long text is read in a few samples.

    It only grows, and readers never walk through it: they may look while a secret is added.
    """

    __slots__ = ("_grams", "_heads", "longest")

    def __init__(self) -> None:
        self._grams: dict[int, tuple[tuple[int, Needle], ...]] = {}
        self._heads: set[bytes] = set()
        self.longest = 0

    def __bool__(self) -> bool:
        return self.longest > 0

    def add(self, value: str) -> None:
        """Look for a secret from now on."""
        for needle in needles(value):
            letters = needle.letters
            # A shorter tail is shown: else people would wait for the end of every word.
            self._heads |= {letters[:size] for size in range(_GRAM, _GRAM + _STEP)}
            for offset in range(len(letters) - _GRAM + 1 if needle.in_pieces else _STEP):
                gram = int.from_bytes(letters[offset : offset + _GRAM], sys.byteorder)
                self._grams[gram] = (*self._grams.get(gram, ()), (offset, needle))
            self.longest = max(self.longest, len(letters))

    def look(self, text: str, *, growing: bool = False) -> tuple[list[Span], int]:
        """Return where secrets are in a text, and where one may begin that is not complete.

        The second counts only for a text that grows; else it is the end.
        """
        spans, pending = self._look(text, text, growing)
        seen = visible(text)
        if seen is not None:
            more, earlier = self._look(seen, text, growing)
            spans, pending = spans + more, min(pending, earlier)
        return spans, pending

    def _look(self, seen: str, text: str, growing: bool) -> tuple[list[Span], int]:
        letters = fold(seen)
        runs = self._runs(letters)
        if not runs and not growing:
            return [], len(text)
        found = [run for run in runs if run.needle.gives_away(letters[run.start : run.end])]
        pending = self._pending(seen, letters, runs) if growing else len(text)
        if not found:
            return [], pending
        at = positions(seen)
        return [_span(run, text, at) for run in found], pending

    def _pending(self, seen: str, letters: bytes, runs: list[_Run]) -> int:
        """Return where the longest tail begins that a secret may still grow out of."""
        gap = seen[position_from_end(seen, 1) + 1 :].replace("\0", "") if letters else ""
        if len(gap) > _WIDEST_GAP:
            return len(seen)
        starts = [run.start for run in (*runs, *self._last(letters)) if run.grows(letters)]
        sizes = range(_GRAM, min(_GRAM + _STEP, len(letters) + 1))
        starts += [len(letters) - size for size in sizes if letters[-size:] in self._heads]
        if not starts:
            return len(seen)
        return position_from_end(seen, len(letters) - min(starts))

    def _runs(self, letters: bytes) -> list[_Run]:
        whole = len(letters) - len(letters) % _GRAM
        samples = memoryview(letters)[:whole].cast("I")[:: _STEP // _GRAM].tolist()
        # Most texts have no sample of any secret, and this is the fastest way to see it.
        if self._grams.keys().isdisjoint(samples):
            return []
        runs: list[_Run] = []
        # A long run holds many samples: it is followed once.
        followed: dict[tuple[int, int], int] = {}
        for number in compress(count(), map(self._grams.__contains__, samples)):
            at = number * _STEP
            for offset, needle in self._grams[samples[number]]:
                line = (id(needle), at - offset)
                if at < followed.get(line, 0) or not _may_matter(letters, at, needle, offset):
                    continue
                run = _run(letters, at, needle, offset)
                if run is not None:
                    followed[line] = run.end
                    runs.append(run)
        return runs

    def _last(self, letters: bytes) -> Iterator[_Run]:
        """Find what the last letters are a piece of: they may lie between two samples."""
        at = len(letters) - _GRAM
        if at < 0:
            return
        for offset, needle in self._grams.get(int.from_bytes(letters[at:], sys.byteorder), ()):
            run = _run(letters, at, needle, offset)
            if run is not None:
                yield run


def _may_matter(letters: bytes, at: int, needle: Needle, offset: int) -> bool:
    """Tell at little cost whether a sample may belong to enough letters, or to the text's end.

    A text can be made of samples that are too little of a secret, to keep the bridge busy.
    """
    enough = needle.enough
    if len(letters) - at < enough:
        return True
    if not needle.in_pieces:
        return offset <= at and letters.startswith(needle.letters[:enough], at - offset)
    # Of a piece at least four letters are before the sample, or at least four after it.
    more = offset + _GRAM
    return letters.startswith(needle.letters[more : more + _GRAM], at + _GRAM) or (
        min(offset, at) >= _GRAM
        and letters.startswith(needle.letters[offset - _GRAM : offset], at - _GRAM)
    )


def _run(letters: bytes, at: int, needle: Needle, offset: int) -> _Run | None:
    """Follow a sample to both sides for as long as text and needle agree."""
    room = min(at, offset)
    back = _common(letters[at - room : at], needle.letters[offset - room : offset], "little")
    if back < offset and not needle.in_pieces:
        return None
    rest = needle.letters[offset : offset + len(letters) - at]
    ahead = _common(letters[at : at + len(rest)], rest, "big")
    if back + ahead < needle.enough and at + ahead < len(letters):
        return None
    return _Run(at - back, at + ahead, needle, offset - back)


def _common(some: bytes, others: bytes, order: Literal["big", "little"]) -> int:
    """Count the letters that both begin with, or with `little` end with; both are as long."""
    # As numbers, which differ up to the first letter that does: no loop is as fast.
    differ = int.from_bytes(some, order) ^ int.from_bytes(others, order)
    return len(some) - (differ.bit_length() + 7) // 8


def _span(run: _Run, text: str, at: list[int]) -> Span:
    """Map a run to the text, with the marks that belong to it."""
    start, end = at[run.start], at[run.end - 1] + 1
    needle = run.needle
    if run.offset == 0 and text.endswith(needle.before, 0, start):
        start -= len(needle.before)
    if run.offset + run.end - run.start == len(needle.letters):
        end += len(needle.after) if text.startswith(needle.after, end) else 0
    while start and text[start - 1] in _MARKS_BEFORE:
        start -= 1
    while text.startswith(_MARKS_AFTER, end):
        end += 1
    return start, end
