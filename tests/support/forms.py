"""The forms of all pages: found in the routes and in the pages, with something behind each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from pkgutil import iter_modules
from typing import Any, get_args
from urllib.parse import urljoin, urlsplit

from fastapi import APIRouter
from fastapi.routing import APIRoute
from playwright.sync_api import expect
from starlette.routing import Match

from app.features import registered_features
from app.server import login_pages, page
from sim.slack.server import SimulatedSlack
from tests.support.bridge import demo
from tests.support.document import Element, parse
from tests.support.served import Forked
from tests.support.window import Visit

NO_PAGES = (
    "/api/",
    "/export/",
    "/static/",
    "/uploads/",
    "/events",
    "/install/",
    "/latest/",
    "/grouped",
)
PAGES_PER_ROUTE = 6
"""Pages that are looked through of each kind: an agent of the settings has other forms."""


def _routers() -> Iterator[APIRouter]:
    names = [f"{page.__name__}.{each.name}" for each in iter_modules(page.__path__)]
    for name in (*names, login_pages.__name__):
        yield from (each for each in vars(import_module(name)).values() if type(each) is APIRouter)
    for feature in registered_features():
        yield from feature.routers()


ROUTES = [
    each
    for router in {id(each): each for each in _routers()}.values()
    for each in router.routes
    if isinstance(each, APIRoute) and not each.path.startswith("/api/")
]


def variants(route: APIRoute) -> Iterator[str]:
    """List a route's path, once for each word that one of its places takes."""
    taken = {
        each.name: get_args(each.field_info.annotation) for each in route.dependant.path_params
    }
    name, words = next(((name, words) for name, words in taken.items() if words), ("", ("",)))
    return (route.path.replace(f"{{{name}}}", word) for word in words)


def actions() -> set[str]:
    """List what forms and buttons can be sent to."""
    posts = (each for each in ROUTES if "POST" in (each.methods or ()))
    return {path for route in posts for path in variants(route)}


def name_of(method: str, address: str) -> str:
    """Name a form by the route that it is sent to."""
    path = urlsplit(address).path
    scope = {"type": "http", "path": path, "method": method, "headers": []}
    found = (each for each in ROUTES if each.matches(scope)[0] is Match.FULL)
    route = next(found, None)
    assert route is not None, f"no page serves {method} {address}"
    names = [each for each in variants(route) if each == route.path or each.endswith(path[-4:])]
    return names[0] if method == "POST" else f"GET {names[0]}"


def find_forms(bridge: Forked, *begin: str) -> dict[str, str]:
    """Follow all links from some pages; returns a page of each form."""
    waiting, seen = list(begin), set(begin)
    found: dict[str, str] = {}
    visited: Counter[str] = Counter()
    while waiting:
        address = waiting.pop(0)
        visited.update([name_of("GET", address)])
        if visited[name_of("GET", address)] > PAGES_PER_ROUTE:
            continue
        answer = bridge.http.get(address, headers={"Accept": "text/html"})
        for each in parse(answer.text.partition(">")[2]).elements():
            found.update(dict.fromkeys(_targets(each, address), address))
            linked = urljoin(address, each.attributes.get("href") or "") if each.tag == "a" else ""
            path = urlsplit(linked).path
            if linked.startswith("/") and path not in seen and not path.startswith(NO_PAGES):
                seen.add(path)
                waiting.append(linked)
    return found


def _targets(form: Element, address: str) -> Iterator[str]:
    """Name what a form can be sent to; nothing for other elements."""
    method = (form.attributes.get("method") or "get").upper()
    if form.tag != "form" or method == "DIALOG":
        return
    yield name_of(method, form.attributes.get("action") or address)
    for each in form.elements():
        if target := each.attributes.get("formaction"):
            yield name_of(method, target)


@dataclass
class World:
    """A bridge, someone who uses it, and whatever a form is about."""

    bridge: Forked
    visit: Visit
    slack: SimulatedSlack
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    name: str = ""
    """The agent that was added last."""

    def agent(self, **more: Any) -> str:
        """Add an agent; returns the path of its page."""
        self.name = f"helper-{next(self.numbers)}"
        body = {"name": self.name, **demo(), **more}
        self.bridge.http.post("/api/v1/agents", json=body).raise_for_status()
        return f"/agents/{self.name}"

    def with_key(self) -> str:
        """Add an agent that has a variable."""
        return self.agent(env={"KEY": "value"})

    def connected(self) -> str:
        """Add an agent that is on Slack."""
        return self.agent(credentials={"slack": self.tokens()})

    def tokens(self) -> dict[str, str]:
        """Install an app on Slack."""
        app = self.slack.app(f"app-{next(self.numbers)}")
        return {"bot_token": app.token, "app_token": app.app_token}

    def changed(self) -> str:
        """Add an agent and change one of its fields."""
        window = self.visit.open(self.agent())
        window.page.get_by_label("Description").fill("Changed")
        window.button("Save Description").click()
        expect(window.page.locator("#f-description")).to_contain_text("Undo")
        path = window.path
        window.page.close()
        return path

    def file(self) -> str:
        """Write a file of an agent twice; returns the path of its page."""
        return self._write(f"{self.agent()}/files")

    def shared_file(self) -> str:
        """Write a file of all agents twice; returns the path of its page."""
        self._write("/files")
        return "/agent-files/AGENTS.md"

    def _write(self, folder: str) -> str:
        for text in ("One.", "Two."):
            text = f"{text} {next(self.numbers)}"
            address = f"/api/v1{folder}/AGENTS.md"
            self.bridge.http.put(address, json={"text": text}).raise_for_status()
        return f"{folder}/AGENTS.md"

    def note(self) -> str:
        """Let an agent note something; returns the path of its notes."""
        path = self.agent(memory="auto")
        self.visit.send(f"@{self.name} note The mascot is a platypus")
        notes = f"/api/v1{path}/memory"
        self.bridge.wait(lambda: bool(self.bridge.http.get(notes).json()["items"]), "no note")
        return f"{path}/memory"

    def schedule(self) -> str:
        """Make a schedule; returns the path of all of them."""
        new = {"agent": "demo", "expression": "0 9 * * 1", "words": "say hello"}
        made = self.bridge.http.post("/api/v1/schedules", json=new)
        made.raise_for_status()
        self.number = made.json()["id"]
        return "/schedules"

    def paused_schedule(self) -> str:
        """Make a schedule and pause it."""
        path = self.schedule()
        self.bridge.http.post(f"/api/v1/schedules/{self.number}/pause").raise_for_status()
        return path

    def thread(self) -> str:
        """Say something in a new thread; returns its path."""
        path = self.visit.send("@demo say hello")
        window = self.visit.open(path)
        window.settled()
        window.page.close()  # each window keeps one of the browser's few connections
        return path

    def everything(self) -> list[str]:
        """Make one of each; returns where their pages begin."""
        self.paused_schedule()
        self.schedule()
        pages = [self.with_key(), self.connected(), self.changed(), self.file(), self.note()]
        self.shared_file()
        return ["/", "/new-agent", self.thread(), *pages]
