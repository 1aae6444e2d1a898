"""What changed in a workspace, in a real browser: a small change, a very large one, plain files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import SPEED, demo
from tests.support.forge import Forge
from tests.support.git_server import GitServer, git
from tests.support.platform import Platform
from tests.support.served import Forked, Site
from tests.support.studio import REPOSITORY, TOKEN
from tests.support.window import PHONE, Visit, Window

LOGIN = """def login(request, target):
    nonce = new_nonce()
    state = sign({"nonce": nonce})
    response.set_cookie("next", target)
    return redirect(provider, state=state)
"""
FIRST = r"""run sed -i 's/{"nonce": nonce}/{"nonce": nonce, "next": target}/' auth/login.py
run sed -i /set_cookie/d auth/login.py; git mv old.txt new.txt; ln -s /etc/passwd leak
write docs/notes.md # Notes
run head -c 3000 /dev/zero > logo.bin; seq 900 > table.csv"""
MANY = 300
LARGE = (
    f"run for n in $(seq {MANY}); do mkdir -p pkg$((n % 9)); "
    'seq 66 | sed "s/.*/value_$n[&] = compute(&)/" > pkg$((n % 9))/module$n.py; done'
)


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"demo": demo(sandbox="auto", mode="free", display_name="Demo")}


@pytest.fixture(scope="module")
def bridge(
    browser: Browser, agents: Agents, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """Start a bridge whose threads have a repository."""
    folder = tmp_path_factory.mktemp("bridge")
    with GitServer(folder / "server") as server, Platform() as platform:
        server.create(REPOSITORY, {"auth/login.py": LOGIN, "old.txt": "same\n" * 20})
        server.tokens = {TOKEN: (REPOSITORY, "write")}
        Forge(folder / "forge.json").change(token=TOKEN)
        with Forked(
            folder,
            platform,
            agents,
            settings={"GITHUB_GIT_URL": server.url, "GITHUB_REPO": REPOSITORY},
            forge=folder / "forge.json",
            speed=SPEED,
        ) as it:
            yield it


@pytest.fixture(scope="module")
def changed(browser: Browser, bridge: Site, cookies: Any) -> str:
    """Have an agent change and push something; returns the path of the changes."""
    with closing(Visit(browser, bridge.url, cookies=cookies)) as visit:
        return begin(lambda: visit, FIRST).path


def begin(visit: Visiting, words: str, **more: Any) -> Window:
    """Say something in a new thread, wait for the end, and open its changes."""
    window = visit(**more).open()
    window.say(words)
    expect(window.page.locator("#log article.turn")).to_be_visible()
    window.settled()
    address = window.page.locator('#side a[href^="/workspace/"]').first.get_attribute("href")
    window.page.goto(str(address))
    return window


def file(window: Window, name: str) -> Locator:
    """Find a file among the changes by its whole name."""
    heading = window.page.get_by_role("heading", name=name, exact=True)
    return window.page.locator(".patch").filter(has=heading)


def numbers(lines: Locator) -> list[tuple[str | None, str | None]]:
    return [(each.get_attribute("data-o"), each.get_attribute("data-n")) for each in lines.all()]


@pytest.mark.long
def test_a_change_is_read_file_by_file(visit: Visiting, changed: str) -> None:
    window = visit().open(changed)
    page = window.page
    login = file(window, "auth/login.py")
    expect(page.locator("header .repo")).to_have_text(REPOSITORY)
    expect(page.get_by_role("link", name="Pull request #1")).to_have_attribute(
        "href", re.compile("/pull/1$")
    )
    expect(page.locator(".list")).to_contain_text("6 files changed +903 \N{MINUS SIGN}2")
    expect(page.locator(".part > h2")).to_have_text("Pushed 6 files")

    # Numbers of both sides, words that changed, colours.
    assert numbers(login.locator(".l.del")) == [("3", None), ("4", None)]
    assert numbers(login.locator(".l.add")) == [(None, "3")]
    assert "".join(login.locator(".l.add mark").all_inner_texts()) == ', "next": target'
    expect(login.locator(".hl-k").first).to_have_text("def")

    # What is long or no text waits for a click.
    expect(file(window, "logo.bin")).to_contain_text("Binary file.")
    table = file(window, "table.csv")
    expect(table.locator(".l")).to_have_count(0)
    table.get_by_role("link", name="Show 901 lines").click()
    expect(table.locator(".l")).to_have_count(900)
    expect(file(window, "old.txt → new.txt")).to_contain_text("Renamed.")

    # By key from file to file, side by side, and so again next time.
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Next file")
    page.keyboard.press("Escape")
    page.reload()
    for key, name in (("j", "auth/login.py"), ("j", "docs/notes.md"), ("k", "auth/login.py")):
        page.keyboard.press(key)
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_focused()
    page.keyboard.press("s")
    expect(login.locator(".twin .l").first).to_be_visible()
    gone, come = (login.locator(f".l.{kind}").first.bounding_box() for kind in ("del", "add"))
    assert gone
    assert come
    assert (gone["y"], gone["x"] < come["x"]) == (come["y"], True)
    page.reload()
    expect(login.locator(".twin .l").first).to_be_visible()
    window.picture("changes-side-by-side")
    page.get_by_role("button", name="Unified").click()
    expect(login.locator(".twin .l").first).to_be_hidden()

    page.get_by_role("link", name="Back to the thread").click()
    expect(window.turns).to_be_visible()


@pytest.mark.slow
def test_the_files_of_a_workspace_are_read(visit: Visiting) -> None:
    window = begin(visit, "write docs/guide.md # Guide")
    page = window.page
    page.get_by_role("link", name="View guide.md").click()
    expect(page.locator(".source .l")).to_have_text("# Guide\n")

    page.get_by_role("link", name="Files", exact=True).first.click()
    page.locator(".folder").get_by_role("link", name="auth/").click()
    page.locator(".folder").get_by_role("link", name="login.py", exact=True).click()

    expect(page.locator(".source .l")).to_have_count(5)
    expect(page.locator(".source .hl-k").first).to_have_text("def")
    expect(page.locator(".way")).to_have_text("Files / auth / login.py")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_text() == LOGIN
    page.get_by_role("link", name="Changes").click()
    expect(file(window, "docs/guide.md")).to_be_visible()


@pytest.mark.slow
def test_a_very_large_change_loads_as_one_scrolls(visit: Visiting, bridge: Site) -> None:
    window = visit().open()
    window.say(f"{LARGE}\nsay All written.\nhold go")
    page = window.page
    expect(window.turns).to_contain_text("All written.")
    page.goto(str(page.locator('#side a[href^="/workspace/"]').first.get_attribute("href")))

    expect(page.locator(".list")).to_contain_text(f"{MANY} files changed +19,800")
    expect(page.locator(".part > h2")).to_have_text(f"Uncommitted {MANY} files")
    assert page.locator(".l").count() < 3_000
    page.get_by_role("link", name="pkg0/module9.py").click()
    last = file(window, "pkg0/module9.py")
    expect(last.locator(".l")).to_have_count(66)
    expect(last).to_be_in_viewport()
    assert page.locator(".l").count() < 6_000

    # The agent goes on: what the page has not loaded yet may be gone.
    (workspace,) = (
        path.parents[1] for path in bridge.data_dir.glob("workspaces/*/pkg0/module9.py")
    )
    (workspace / "go").touch()


@pytest.mark.slow
def test_a_scratch_folder_on_a_phone(visit: Visiting) -> None:
    window = visit(size=PHONE).open()
    window.say("repo none")
    window.say("@demo write b.txt hello")
    expect(window.turns).to_be_visible()
    window.settled()
    address = window.page.locator('#side a[href^="/workspace/"]').first.get_attribute("href")
    window.page.goto(str(address))
    expect(window.page.locator(".tools")).to_have_text(
        "No repository. 1 file is in a scratch folder."
    )
    window.picture("phone-light-scratch")
    assert window.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    assert window.findings() == []
    window.page.locator(".folder").get_by_role("link", name="b.txt", exact=True).click()
    expect(window.page.locator(".source")).to_have_text("hello\n")


@pytest.mark.long
def test_settings_of_agents_and_what_git_would_not_show_are_marked(
    visit: Visiting, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    git(tmp_path, "init", "-q", str(folder))
    git(folder, "commit", "-q", "--allow-empty", "-m", "First")
    window = visit().open()
    window.say(f"repo folder:{folder}")
    window.say(
        "@demo run mkdir -p .claude ~/.config/git deep; echo '**/.claude' > ~/.config/git/ignore; "
        "echo '{}' > .claude/settings.local.json; echo '*' > deep/.gitignore; "
        "echo bad > deep/evil.sh; git init -q inner; echo seen > seen.txt"
    )
    page = window.page
    expect(window.turns).to_contain_text("New or changed git repositories in the folder: inner/.")
    window.settled()
    page.goto(str(page.locator('#side a[href^="/workspace/"]').first.get_attribute("href")))

    expect(page.locator(".list")).to_contain_text("2 files changed")
    settings = file(window, ".claude/settings.local.json")
    expect(settings.locator(".chip.warn")).to_have_text("settings of Claude Code")
    expect(file(window, "seen.txt").locator(".chip.warn")).to_have_count(0)
    hides, inside = page.get_by_role("note").all()
    expect(hides).to_have_text(
        "deep/.gitignore is new or changed since the agent began, and hides 2 entries from git: "
        "deep/.gitignore, deep/evil.sh. Look at them under Files."
    )
    expect(inside).to_contain_text("Git repositories inside: inner/.")
    window.picture("changes-marked")
    assert window.findings() == []
