"""Reads the inside of Markdown lines from left to right, as GitHub does: what is seen, what is not.

Every text is read in time that grows only with its length, also hostile text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

TAG = re.compile(
    r"""
    </[A-Za-z][A-Za-z0-9-]*\s*>
    | <(?P<name>[A-Za-z][A-Za-z0-9-]*)
      (?P<attributes> (?: \s+ [A-Za-z_:][\w.:-]* (?: \s*=\s*
        (?: "[^"]*" | '[^']*' | [^\s"'=<>`]+ ) )? )* )
      \s*/?>
    """,
    re.VERBOSE | re.ASCII,
)
_ATTRIBUTE = re.compile(
    r"""([A-Za-z_:][\w.:-]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+))?""", re.ASCII
)
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[\w.+-]+@[\w.-]+)>", re.ASCII)
_DECLARATION = re.compile(r"<![A-Za-z]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31});")
_TAIL = re.compile(
    r"""
    \( \s* (?P<address> <[^<>\n]*> | (?: [^\s()<] | \([^\s()]*\) )* )
      (?P<title> \s+ (?: "[^"]*" | '[^']*' | \([^()]*\) ) )? \s* \)
    | \[ [^\[\]]{0,999} \]
    """,
    re.VERBOSE,
)
_SPECIAL = re.compile(r"[\\`<!\[\]&]")
_PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_SILENT = {
    *("script", "style", "template", "noscript", "iframe", "object", "noembed", "noframes"),
    *("svg", "math", "head", "title", "xmp", "plaintext"),
}
"""Tags that GitHub takes out together with what is in them, or that browsers do not draw."""
_DRAWN_AS_NOTHING = {
    *("ZeroWidthSpace", "NegativeThinSpace", "zwj", "zwnj", "lrm", "rlm", "shy", "NoBreak"),
    *("ic", "it", "af", "ApplyFunction", "InvisibleComma", "InvisibleTimes"),
}
_SHOWN = {"href", "src"}


class ProseReader:
    """Reads one piece of prose; what is seen and what was left out is then known."""

    def __init__(self, text: str, invisible: re.Pattern[str], *, defined: bool = False) -> None:
        """Read a text; `defined` says that brackets alone may be links or pictures."""
        self._text = text
        self._lower = text.lower()
        self._invisible = invisible
        self._defined = defined
        self._absent: set[str] = set()
        self._runs = [(run.start(), run.end()) for run in re.finditer("`+", text)]
        self._by_length: dict[int, list[int]] = defaultdict(list)
        for start, end in self._runs:
            self._by_length[end - start].append(start)
        self._out: list[str] = []
        self._brackets: list[tuple[int, bool]] = []
        self._solid = 0
        self.plain: list[str] = []
        """What is words: neither code nor HTML."""
        self.hidden = 0
        self._read()

    @property
    def seen(self) -> str:
        """What people see, as Markdown."""
        return "".join(self._out)

    def _read(self) -> None:
        text, at = self._text, 0
        while found := _SPECIAL.search(text, at):
            start = found.start()
            self._words(text[at:start])
            at = self._special(found[0], start)
        self._words(text[at:])

    def _special(self, sign: str, at: int) -> int:
        """Deal with a sign that may mean something; returns where to go on."""
        match sign:
            case "\\":
                width = 2 if self._text[at + 1 : at + 2] in _PUNCTUATION else 1
                return self._words(self._text[at : at + width], to=at + width)
            case "`":
                return self._code(at)
            case "<":
                return self._angle(at)
            case "&":
                return self._entity(at)
            case "]":
                return self._close(at)
            case _:
                opening = "![" if self._text.startswith("![", at) else sign
                if opening.endswith("["):
                    self._brackets.append((len(self._out), opening == "!["))
                self._out.append(opening)
                self.plain.append(opening)
                return at + len(opening)

    def _words(self, words: str, to: int = 0) -> int:
        if words:
            self._show(words)
            self.plain.append(words)
        return to

    def _show(self, shown: str) -> None:
        self._out.append(shown)
        if shown.strip():
            self._solid = len(self._out)

    def _drop(self, to: int) -> int:
        self.hidden += 1
        self.plain.append(" ")
        return to

    def _code(self, at: int) -> int:
        """Read a code span, in which everything is seen; backticks that open none are words."""
        run = next(re.compile("`+").finditer(self._text, at))
        ends = self._by_length[run.end() - at]
        index = bisect_right(ends, run.start())
        if index == len(ends):
            return self._words(run[0], to=run.end())
        end = ends[index] + run.end() - at
        self._show(self._text[at:end])
        self.plain.append(" ")
        return end

    def _angle(self, at: int) -> int:
        text = self._text
        if text.startswith(("<!-->", "<!--->"), at):
            return self._drop(text.index(">", at) + 1)
        for begin, end in (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")):
            if text.startswith(begin, at):
                found = self._find(end, at + len(begin))
                return self._drop(found + len(end)) if found >= 0 else self._words("<", to=at + 1)
        if _DECLARATION.match(text, at) and (found := self._find(">", at)) >= 0:
            return self._drop(found + 1)
        if link := _AUTOLINK.match(text, at):
            return self._words(link[0], to=link.end())
        if tag := TAG.match(text, at):
            return self._tag(tag)
        return self._words("<", to=at + 1)

    def _tag(self, tag: re.Match[str]) -> int:
        name = (tag["name"] or "").lower()
        if name in _SILENT:
            found = self._find(f"</{name}", tag.end())
            end = self._text.find(">", found) if found >= 0 else -1
            return self._drop(end + 1 if end >= 0 else tag.end())
        given = _ATTRIBUTE.findall(tag["attributes"] or "")
        bare = tag[0]
        if not all(key.lower() in _SHOWN for key, _ in given):
            self.hidden += 1
            kept = [f" {key}={value}" for key, value in given if key.lower() in _SHOWN and value]
            bare = f"<{tag['name']}{''.join(kept)}>"
        self._show(bare)
        self.plain.append(" ")
        return tag.end()

    def _entity(self, at: int) -> int:
        entity = _ENTITY.match(self._text, at)
        if entity is None:
            return self._words("&", to=at + 1)
        if self._is_drawn(entity[0][1:-1]):
            return self._words(entity[0], to=entity.end())
        return self._drop(entity.end())

    def _is_drawn(self, name: str) -> bool:
        if not name.startswith("#"):
            return name not in _DRAWN_AS_NOTHING
        code = int(f"0{name[1:]}", 0) if name[1] in "xX" else int(name[1:])
        odd = code >= 0x110000 or 0xD800 <= code < 0xE000 or code == 0
        return not odd and self._invisible.fullmatch(chr(code)) is None

    def _close(self, at: int) -> int:
        """Close a bracket: a picture loses its words, a link its title, an empty one all."""
        opened = self._brackets.pop() if self._brackets else None
        tail = _TAIL.match(self._text, at + 1)
        if opened is None or (tail is None and not self._defined):
            return self._words("]", to=at + 1)
        index, is_picture = opened
        end = tail.end() if tail is not None else at + 1
        filled = self._solid > index + 1
        if is_picture and filled:
            del self._out[index + 1 :]
            self.hidden += 1
        elif tail is not None and tail["address"] is not None and not is_picture and not filled:
            del self._out[index:]
            return self._drop(end)
        shown = tail[0] if tail is not None else ""
        if tail is not None and tail["title"] is not None:
            self.hidden += 1
            shown = f"({tail['address']})"
        self._show(f"]{shown}")
        self.plain.append("]")
        return end

    def _find(self, words: str, at: int) -> int:
        """Find what ends something; what is not there is looked for once."""
        if words in self._absent:
            return -1
        found = self._lower.find(words, at)
        if found < 0:
            self._absent.add(words)
        return found
