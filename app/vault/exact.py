"""Finds secrets that are too short or too odd to be folded, exactly as they are written."""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.vault.forms import base64_cores, escape, percent

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
