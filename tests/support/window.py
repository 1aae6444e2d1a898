"""A real browser as a person uses it: windows, what is seen in them, and what went wrong there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import (  # type: ignore[import-untyped]  # it has none
    Axe,
)
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect
from playwright.sync_api import Error as BrowserError

from tests.support.served import SECONDS

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / ".screenshots"
DESKTOP = (1280, 800)
PHONE = (390, 844)
GRAVE = {"serious", "critical"}

expect.set_options(timeout=SECONDS * 1000)

Scheme = Literal["light", "dark"]

# Two pages that show the same have the same elements; what stands between them is of no concern.
_AS_SHOWN = """names => names.map(name => {
  const element = document.getElementById(name);
  return element ? element.outerHTML.replace(/\\s+/g, " ").replace(/> </g, "><") : "";
}).join("\\n")"""
# From within the page: only the browser takes its host for this machine.
_SEND = """async ([text, thread, repository, csrf]) => {
  const body = new FormData();
  body.set("text", text);
  body.set("thread", thread);
  body.set("repository", repository);
  const headers = { "X-CSRF-Token": csrf, "Accept": "application/json" };
  const answer = await fetch("/send", { method: "POST", body, headers });
  return [answer.ok, await answer.text()];
}"""
_DROP = """(target, files) => {
  const carried = new DataTransfer();
  for (const [name, words] of files) carried.items.add(new File([words], name));
  const how = { dataTransfer: carried, bubbles: true, cancelable: true };
  for (const kind of ["dragover", "drop"]) target.dispatchEvent(new DragEvent(kind, how));
}"""


@dataclass
class Visit:
    """One person's browser: its cookies, its windows, and all that it noted."""

    browser: Browser
    url: str
    size: tuple[int, int] = DESKTOP
    scheme: Scheme = "light"
    scripts: bool = True
    cookies: Any = None
    """Those of an earlier visit."""
    requests: list[str] = field(default_factory=list)
    """Every address that was asked for."""
    errors: list[str] = field(default_factory=list)
    """Errors of scripts, and whatever the console calls an error."""
    forgiven: tuple[str, ...] = ()
    """Words of errors that belong to a story."""

    def __post_init__(self) -> None:
        self.context: BrowserContext = self.browser.new_context(
            base_url=self.url,
            viewport={"width": self.size[0], "height": self.size[1]},
            is_mobile=self.size == PHONE,
            has_touch=self.size == PHONE,
            color_scheme=self.scheme,
            java_script_enabled=self.scripts,
            storage_state=self.cookies,
            locale="en-GB",
            timezone_id="Europe/Berlin",
        )
        self.context.set_default_timeout(SECONDS * 1000)
        self.context.on("weberror", lambda thrown: self._note(str(thrown.error)))
        self.context.on("console", self._listen)
        self.context.on("request", lambda request: self.requests.append(request.url))

    def close(self) -> None:
        """Close every window; what went wrong in one fails the test."""
        self.context.close()
        assert self.errors == []

    def sign_in(self, link: str) -> Window:
        """Open a log-in link and click its button."""
        window = self.open(link)
        window.button("Sign in").click()
        window.page.wait_for_url("**/")
        self._signed_in = window
        self._csrf: str = window.page.locator("meta[name=csrf]").get_attribute("content") or ""
        return window

    def send(self, text: str, thread: str = "", *, repository: str = "") -> str:
        """Say something without a new window; returns the path of the thread."""
        said = [text, thread.rpartition("/")[2], repository, self._csrf]
        ok, answer = self._signed_in.page.evaluate(_SEND, said)
        assert ok, answer
        return str(json.loads(answer)["path"])

    def open(self, address: str = "/") -> Window:
        """Open an address in a window of its own."""
        window = Window(self.context.new_page())
        window.page.goto(address)
        return window

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "assert"}:
            self._note(f"{message.text} ({message.location.get('url', '')})")

    def _note(self, words: str) -> None:
        if not any(each in words for each in self.forgiven):
            self.errors.append(words)


@dataclass
class Window:
    """One window, and what a person does in it."""

    page: Page

    @property
    def log(self) -> Locator:
        """What was said and done."""
        return self.page.locator("#log")

    @property
    def turns(self) -> Locator:
        """What agents did, turn by turn."""
        return self.page.locator("#log > article.turn")

    @property
    def waiting(self) -> Locator:
        """What waits until an agent has time."""
        return self.page.locator("#status .waiting")

    @property
    def path(self) -> str:
        """Where it is."""
        return self.page.url.partition("://")[2].partition("/")[2].join(("/", ""))

    def write(self, text: str) -> None:
        """Put words into the message box."""
        self.page.get_by_label("Message", exact=True).fill(text)

    def say(self, text: str) -> None:
        """Say something and see it in the thread, or among what waits there."""
        self.write(text)
        self.page.get_by_role("button", name="Send", exact=True).click()
        expect(self.page.get_by_label("Message", exact=True)).to_have_value("")
        self.page.wait_for_url("**/t/web/*")

    def button(self, name: str) -> Locator:
        """Find a button by its words."""
        return self.page.get_by_role("button", name=name, exact=True)

    def settled(self) -> None:
        """Wait until nobody works in this thread."""
        expect(self.page.locator("#state .stop")).to_have_count(0)
        expect(self.page.locator("#status .busy")).to_have_count(0)

    def drop(self, **files: str) -> None:
        """Drop files onto the thread."""
        named = [[name.replace("_", "."), words] for name, words in files.items()]
        self.page.locator("main").evaluate(_DROP, named)

    def shown(self, *names: str) -> str:
        """Tell everything that stands in some parts of the page."""
        return str(self.page.evaluate(_AS_SHOWN, list(names or ("log", "state", "status", "side"))))

    def findings(self) -> list[str]:
        """Let axe look; returns what is seriously wrong."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes']]}"
            for each in found
            if each["impact"] in GRAVE
        ]

    def picture(self, name: str) -> Path:
        """Take a picture of what is on the screen."""
        SCREENSHOTS.mkdir(exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.page.screenshot(path=path, animations="disabled")
        return path

    def evaluate(self, script: str) -> Any:
        """Ask the page something; the page's policy does not hold for whoever tests it."""
        try:
            return self.page.evaluate(script)
        except BrowserError as error:
            raise AssertionError(f"the page could not be asked: {error}") from error
