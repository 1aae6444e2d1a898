"""Takes the pictures of the docs: a small fix, from the question to the pull request.

    python -m tests.support.pictures              all of them
    python -m tests.support.pictures page slack   some of them

A scripted agent does the work in a real bridge, on the page and on the simulated platforms; what is
pictured is what was posted. Needs Chromium.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, expect

from tests.support import transcripts
from tests.support.bridge import ROOT
from tests.support.chromium import MISSING, chromium, open_browser
from tests.support.github import Hub, PullWorld
from tests.support.linear import LinearWorld
from tests.support.platform import Platform
from tests.support.plays import call, edit, plan, player, put, text
from tests.support.served import Forked
from tests.support.slack import SlackWorld
from tests.support.window import Visit

DOCS = ROOT / "docs"
SPARE = ROOT / ".screenshots"
PAGE = (1280, 860)
TITLE = "People lose their page after login"
WORDS = "After login everybody lands on the start page. Please redirect people to where they were."
OLD = """def begin(request):
    state = sign({"nonce": new_nonce()})
    return redirect(PROVIDER, state=state)
"""
NEW = """def begin(request):
    target = safe_path(request.query.get("next"))
    state = sign({"nonce": new_nonce(), "next": target})
    return redirect(PROVIDER, state=state)
"""
TEST = """def test_login_leads_back_to_the_page(client):
    assert client.log_in(next="/settings").path == "/settings"


def test_another_site_is_no_target(client):
    assert client.log_in(next="//evil.example").path == "/"
"""
ANSWER = """Login leads people back to the page they came from.

- `auth/login.py` keeps the target in the signed state.
- Only paths of this site are accepted; everything else goes to `/`.
- Two new tests; all 48 pass.
"""
RULES = [
    {"allow": "read"},
    {"allow": {"kind": "edit", "path": "tests/**"}},
    {"allow": {"command": "pytest -q"}},
]
OPTIONS = [
    {"optionId": "once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "always", "name": "Allow always", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]
STEPS = ("Find where the page is lost", "Keep it in the signed state", "Add tests and run them")


def write_play(folder: Path) -> None:
    """Write down the work, under a word of the question."""
    change = use(edit(3, "auth/login.py", OLD, NEW), "Edit auth/login.py", {"auth/login.py": NEW})
    change["use"]["rawInput"] = {"file_path": "auth/login.py"}
    change["options"] = OPTIONS
    name = "tests/auth/test_login.py"
    tests = use(edit(4, name, "", TEST), f"Write {name}", {name: TEST})
    run = use(call(5, "pytest -q", "execute", rawInput={"command": "pytest -q"}), "pytest -q", {})
    passed = {"type": "content", "content": {"type": "text", "text": "48 passed in 3.12s"}}
    run["end"] = {"content": [passed]}
    put(
        folder,
        "redirect",
        [
            plan(*zip(STEPS, ("in_progress", "pending", "pending"), strict=True)),
            call(1, "Read auth/login.py", "read"),
            call(2, "Read tests/auth/test_login.py", "read"),
            plan(*zip(STEPS, ("completed", "in_progress", "pending"), strict=True)),
            change,
            plan(*zip(STEPS, ("completed", "completed", "in_progress"), strict=True)),
            tests,
            run,
            plan(*((step, "completed") for step in STEPS)),
            text(ANSWER),
        ],
    )


def use(shown: dict[str, Any], title: str, files: dict[str, str]) -> dict[str, Any]:
    """Make a call from its beginning to its end."""
    words = {name: value for name, value in shown.items() if name != "sessionUpdate"}
    return {"use": {**words, "title": title}, "write": files}


class Photographer:
    """Plays the story and takes a picture of it."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._browser = browser
        self._folder = folder
        write_play(folder / "plays")
        self._entry = player(folder / "plays", display_name="Claude", permissions=RULES)

    def page(self, file: Path) -> None:
        """Picture the page."""
        with Hub(self._folder, ("claude",)) as hub, Platform() as platform:
            self._commit(hub.github, "acme/widgets")
            settings = {**hub.settings, "DEFAULT_REPOSITORY": "acme/widgets"}
            isolated = {**self._entry, "sandbox": "auto"}
            agents = {
                "claude": {**isolated, "default": True, "description": "Writes code"},
                "codex": {**isolated, "display_name": "Codex", "description": "Reviews code"},
            }
            with Forked(self._folder, platform, agents, settings=settings) as bridge:
                hub.call(bridge)
                visit = Visit(self._browser, bridge.url, size=PAGE)
                visit.sign_in(bridge.new_link())
                thread = visit.send("repo acme/widgets")
                visit.send(f"@claude {WORDS}", thread)
                window = visit.open(thread)
                window.page.get_by_role("button", name="Allow").first.click()
                expect(window.turns.last).to_contain_text("all 48 pass", timeout=60_000)
                hub.github.wait(hub.pulls)
                expect(window.page.locator("#status .busy")).to_have_count(0, timeout=60_000)
                window.page.evaluate("document.fonts.ready")
                window.page.screenshot(path=file)
                visit.context.close()

    def agents(self, file: Path) -> None:
        """Picture the page for agents."""
        isolated = {**self._entry, "sandbox": "auto"}
        claude = {**isolated, "default": True, "description": "Writes code"}
        added: dict[str, dict[str, Any]] = {
            "codex": {"display_name": "Codex", "description": "Reviews what others wrote"},
            "docs": {"display_name": "Documentation", "description": "Keeps the handbook right"},
            "gemini": {"driver": "gemini", "command": None, "display_name": None},
        }
        with (
            Platform() as platform,
            Forked(self._folder, platform, {"claude": claude}) as bridge,
        ):
            for name, more in added.items():
                entry = {key: each for key, each in {**isolated, **more}.items() if each}
                bridge.http.post("/api/v1/agents", json={"name": name, **entry})
            visit = Visit(self._browser, bridge.url, size=(1280, 560))
            visit.sign_in(bridge.new_link())
            window = visit.open("/agents")
            window.page.evaluate("document.fonts.ready")
            window.page.screenshot(path=file)
            visit.context.close()

    def slack(self, file: Path) -> None:
        """Picture a thread on Slack."""
        with Hub(self._folder, ("claude",)) as hub:
            self._commit(hub.github, "acme/widgets")
            settings = {**hub.settings, "DEFAULT_REPOSITORY": "acme/widgets"}
            with SlackWorld(self._folder, settings=settings, entry=self._entry) as world:
                hub.call(world.bridge)
                thread = world.say(f"{world.at('claude')} {WORDS}")
                question = world.wait_button(thread, "Allow once")
                world.slack.click(world.ann, question.ts, "Allow once")
                world.wait_answer(thread, "all 48 pass")
                hub.github.wait(hub.pulls)
                world.settle()
                names = {world.ann: "Ann", world.apps["claude"].user: "Claude"}
                messages = world.slack.thread(world.channel, thread)
                shown = transcripts.page("# dev", transcripts.slack(messages, names))
        self._picture(shown, file)

    def github(self, file: Path) -> None:
        """Picture an issue on GitHub."""
        world = PullWorld(self._folder)
        world.bridge.agents = {"claude": self._entry}
        with world:
            self._commit(world.github, "acme/widgets")
            issue = world.issue("After login everybody lands on the start page.", TITLE)
            world.github.comment("ann", issue, "@claude-bridge please redirect them back.")
            world.wait_for(issue, "Allow once")
            world.github.comment("ann", issue, "@claude-bridge Allow once")
            world.opened()
            world.settled()
            names = {"ann": "Ann", world.apps["claude"].bot.login: "acme-claude"}
            shown = transcripts.page(f"{TITLE} #1", transcripts.github(issue, names))
        self._picture(shown.replace("claude-bridge", "acme-claude"), file)

    def linear(self, file: Path) -> None:
        """Picture an issue in Linear."""
        with Hub(self._folder, ("claude",)) as hub:
            self._commit(hub.github, "acme/widgets")
            settings = {**hub.settings, "LINEAR_TEAM_REPOS": "ENG=acme/widgets"}
            world = LinearWorld(self._folder, ("claude",), settings=settings, entry=self._entry)
            with world:
                hub.call(world.bridge)
                issue = world.linear.issue(TITLE, WORDS, by=world.ann)
                session = world.linear.delegate(issue, world.app, world.ann)
                world.wait_status(session, "awaitingInput")
                world.linear.pick(session, world.ann, "Allow once")
                world.wait_end(session)
                world.linear.wait(lambda: bool(session.urls))
                names = {"claude": "Claude"}
                title = f"{issue.identifier} {TITLE}"
                shown = transcripts.page(title, transcripts.linear(session, names))
        self._picture(shown, file)

    def _commit(self, github: Any, repository: str) -> None:
        github.git.commit(repository, "main", {"auth/login.py": OLD}, "Begin")

    def _picture(self, html: str, file: Path) -> None:
        page = self._browser.new_page(viewport={"width": 760, "height": 400})
        page.set_content(html)
        page.screenshot(path=file, full_page=True)
        page.close()


def shrink(file: Path) -> None:
    """Keep 256 colours: a third of the bytes, and no eye sees it."""
    with Image.open(file) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


def main(names: list[str]) -> None:
    """Take the pictures of these names."""
    if chromium() is None:
        sys.exit(MISSING)
    SPARE.mkdir(exist_ok=True)
    with open_browser() as browser:
        for name in names or ("page", "agents", "slack", "github", "linear"):
            # Not in /tmp, and open to others: isolated agents have their own /tmp and user.
            with tempfile.TemporaryDirectory(dir=SPARE) as folder:
                Path(folder).chmod(0o755)
                photographer = Photographer(browser, Path(folder))
                take: Callable[[Path], None] = getattr(photographer, name)
                take(DOCS / f"{name}.png")
            shrink(DOCS / f"{name}.png")
            print(DOCS / f"{name}.png", (DOCS / f"{name}.png").stat().st_size)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
