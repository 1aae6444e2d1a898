"""A page as a browser keeps it: elements by name, and what `live.js` does with patches.

It is a small model of that script, so that what a page shows can be compared without a browser.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

from app.server.page.stream import Patch

VOID = {"br", "hr", "img", "input", "meta", "link"}


@dataclass
class Element:
    """One element with its attributes and what is in it."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    @property
    def id(self) -> str | None:
        """Its name in the document."""
        return self.attributes.get("id")

    def elements(self) -> Iterator[Element]:
        """Walk through the element and all that is in it."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.elements()

    @property
    def text(self) -> str:
        """All words in it."""
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def html(self) -> str:
        """Write it down, without white space between elements."""
        inner = "".join(
            child.html() if isinstance(child, Element) else escape(child, quote=False)
            for child in self.children
            if isinstance(child, Element) or child.strip()
        )
        named = "".join(
            f' {name}="{escape(value or "")}"' for name, value in self.attributes.items()
        )
        return f"<{self.tag}{named}>{inner}</{self.tag}>"


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Element:
    """Read HTML; whatever is not closed properly is an error."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert len(builder.open) == 1, f"<{builder.open[-1].tag}> is not closed"
    return builder.root


class Document:
    """The thread in one open page."""

    def __init__(self, log: str = "") -> None:
        self.log = Element("div", {"id": "log"}, parse(log).children)
        self._unsettled: dict[str, Element | None] = {}

    def take(self, patches: Sequence[Patch]) -> None:
        """Show rows."""
        for patch in patches:
            if self._unsettled.pop(patch.id, False) is None:
                self._replace(patch.id, [])
            for name in patch.away or ():
                assert self._replace(name, []), f"{name!r} is not there to be put away"
            assert self._place(patch), f"{patch.home!r} is not there for {patch.id!r}"

    def take_live(self, patches: Sequence[Patch]) -> None:
        """Show text without a row."""
        for patch in patches:
            self._unsettled.setdefault(patch.id, self.find(patch.id))
            self._place(patch)

    def lose_connection(self) -> None:
        """Take back what has no row."""
        for name, before in self._unsettled.items():
            self._replace(name, [] if before is None else [before])
        self._unsettled.clear()

    def find(self, name: str) -> Element | None:
        """Find an element by its name."""
        return next((each for each in self.log.elements() if each.id == name), None)

    def html(self) -> str:
        """Write the whole thread down."""
        names = [each.id for each in self.log.elements() if each.id is not None]
        assert len(names) == len(set(names)), "two elements have one name"
        return self.log.html()

    def _place(self, patch: Patch) -> bool:
        fresh = [c for c in parse(patch.html).children if isinstance(c, Element)]
        if self._replace(patch.id, fresh) or not patch.html:
            return True
        home = self.find(patch.home)
        if home is None:
            return False
        names = [each.id if isinstance(each, Element) else None for each in home.children]
        end = 0 if patch.away is not None else len(names)
        index = names.index(patch.before) if patch.before else end
        home.children[index:index] = fresh
        return True

    def _replace(self, name: str, fresh: list[Element]) -> bool:
        for parent in self.log.elements():
            for index, child in enumerate(parent.children):
                if isinstance(child, Element) and child.id == name:
                    parent.children[index : index + 1] = fresh
                    return True
        return False
