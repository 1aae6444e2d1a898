"""Whatever an agent or a file is called, says or contains: in a real browser it only shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import call, edit, plan, player, put, text, thought
from tests.support.window import Window

RUN = "window.__pwned=1;alert(1)"
MARKUP = (
    f"<script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f'"><img src=x onerror="{RUN}">',
    f"<svg onload='{RUN}'><script>{RUN}</script></svg>",
    f"<svg><a xlink:href='javascript:{RUN}'><text y=20>svg link</text></a></svg>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<details open ontoggle='{RUN}'>",
    f"<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img onerror={RUN}&gt;'>",
    "<style>#log { display: none }</style>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<base href='http://evil.example/'>",
    "<link rel=stylesheet href='http://evil.example/x.css'>",
    "<form action='http://evil.example/'><input name=x></form>",
    "<object data='http://evil.example/'></object>",
    "</div></article><b>outside",
    f"{{{{ 7 * 7 }}}} ${{{RUN}}} <%= {RUN} %>",
    "\u202ereversed \x1b[31mred\x1b[0m \x00 \u2066isolated",
)
LINKS = (
    f"[script](javascript:{RUN})",
    f"[script in capitals](JaVaScRiPt:{RUN})",
    f"[script with signs](java&#115;cript&#58;{RUN})",
    f"[script with a tab](java\tscript:{RUN})",
    f"[script in vb](vbscript:{RUN})",
    f"[data](data:text/html,<script>opener.{RUN}</script>)",
    "[data again](data:text/html;base64,PHNjcmlwdD5vcGVuZXIuX19wd25lZD0xPC9zY3JpcHQ+)",
    "[file](file:///etc/passwd)",
    "[blob](blob:http://127.0.0.1/1)",
    f"<javascript:{RUN}>",
    "![picture](http://evil.example/track.png)",
    f"![picture](javascript:{RUN})",
    f"![picture](data:image/svg+xml,<svg onload='{RUN}'/>)",
    f"[title](https://safe.example/a \"x' onmouseover='{RUN}\")",
    "[reference][r]\n\n[r]: javascript:window.__pwned=1",
    "[fine](https://safe.example/fine) and https://safe.example/bare",
)
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{RUN}"><script>{RUN}</script></svg>'

_ELEMENTS = "script, style, iframe, object, embed, form, base, meta, link, svg, math, img"
_CLICK_ALL = """() => {
  for (const each of document.querySelectorAll("#log summary, #log .path, #log pre")) each.click();
}"""
_HANDLERS = """() => [...document.querySelectorAll("body *")].flatMap(element =>
  [...element.attributes].filter(each => each.name.startsWith("on")).map(each => each.name))"""
# The ways to an agent's work and to earlier steps are the page's own: they stay in the window.
_ADDRESSES = """() => [...document.querySelectorAll(
  '#log a:not([data-steps], .who a), #side a:not([href^="/workspace/"])')].map(link =>
  [link.href, link.target, link.rel])"""


def hostile() -> list[dict[str, Any]]:
    """Say every bad thing wherever an agent can say something."""
    steps = [text("\n\n".join((*MARKUP, *LINKS))), thought("\n\n".join((*MARKUP, *LINKS)))]
    steps += [plan(*((words, "pending") for words in (*MARKUP, *LINKS)))]
    for number, words in enumerate((*MARKUP, *LINKS)):
        bad = {"rawInput": {"command": words, words: words}, "rawOutput": words}
        steps += [
            edit(2 * number, words, words, f"{words}\n{words}"),
            call(2 * number + 1, words, words, locations=[{"path": words}], **bad),
        ]
    steps += [{"sessionUpdate": "session_info_update", "title": " ".join(MARKUP)}]
    options = [
        {"optionId": str(number), "name": words, "kind": "allow_once"}
        for number, words in enumerate(MARKUP[:4])
    ]
    question = call(900, " ".join((*MARKUP[:4], *LINKS[:4])), "other", status="pending")
    return [*steps, {"ask": question, "options": options}, text("The end.")]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    put(folder, "hostile", hostile())
    return {"demo": player(folder, display_name="<b>Demo", description=MARKUP[1])}


def watched(page: Page) -> list[str]:
    """Note every window that opens by itself."""
    seen: list[str] = []

    def refuse(dialog: Dialog) -> None:
        seen.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", refuse)
    page.on("popup", lambda other: seen.append(other.url))
    return seen


def assert_harmless(window: Window) -> None:
    """Look for anything that ran, or could."""
    page = window.page
    assert page.evaluate("() => window.__pwned") is None
    assert page.evaluate(_HANDLERS) == []
    assert page.locator("#log").locator(_ELEMENTS).count() == 0
    own = page.locator("#log .who a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert all(address.startswith(("/fork/", "/record?", "/turns/")) for address in own)
    for address, target, rel in page.evaluate(_ADDRESSES):
        assert address.startswith(("http://", "https://"))
        assert target == "_blank"
        assert {"noopener", "noreferrer"} <= set(rel.split())


@pytest.mark.long
def test_an_agent_that_says_every_bad_thing_is_only_shown(visit: Visiting) -> None:
    person = visit()
    window = person.open()
    opened = watched(window.page)

    window.say("be hostile")
    question = window.page.locator(".ask")
    expect(question.locator("button")).to_have_count(4)
    assert_harmless(window)
    question.locator("button").first.click()
    expect(window.log).to_contain_text("The end.")
    window.settled()
    window.page.locator("#log [data-steps]").first.click()
    expect(window.page.locator("#log [data-steps]")).to_have_count(0)
    window.page.evaluate(_CLICK_ALL)

    assert_harmless(window)
    expect(window.log).to_contain_text(MARKUP[0])
    fresh = person.open(window.path)
    opened_again = watched(fresh.page)
    fresh.settled()
    assert_harmless(fresh)
    assert opened + opened_again == []
    assert [each for each in person.requests if not each.startswith(person.url)] == []


@pytest.mark.slow
def test_a_file_with_a_bad_name_and_a_script_inside_is_only_a_file(
    visit: Visiting, tmp_path: Path
) -> None:
    person = visit()
    window = person.open()
    opened = watched(window.page)
    names = [f"<img src=x onerror={RUN.replace('/', '')}>.svg", "..\\..\\up.html", "x\u202egnp.svg"]
    files = [{"name": name, "mimeType": "image/svg+xml", "buffer": SVG.encode()} for name in names]

    window.page.locator("#files").set_input_files(files)  # type: ignore[arg-type]  # one of its forms
    expect(window.page.locator("#chosen li")).to_have_count(3)
    window.say("say thank you")
    expect(window.turns).to_contain_text("thank you")
    links = window.page.locator("#log .files a")
    expect(links).to_have_count(3)
    for link in links.all():
        with window.page.expect_download() as download:
            link.click()
        assert download.value.path().read_text() == SVG

    assert window.page.evaluate("() => window.__pwned") is None
    assert window.page.locator("#log img").count() == 0
    assert opened == []
    assert [each for each in person.requests if not each.startswith(person.url)] == []
