"""Documentation is held against the code: the map, the commands, the links, the version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from app.agents.exposure import AS_YOU
from app.config.agents import KEYS
from tests.support import doctor_table, module_map

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LARGEST = 150_000
"""Bytes of one picture: `make pictures` takes them."""
page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


@pytest.mark.long
def test_the_map_in_the_handbook_is_the_one_the_docstrings_give() -> None:
    handbook = module_map.HANDBOOK.read_text()

    assert handbook == module_map.insert(handbook, module_map.render(ROOT / "app")), (
        "run `make map`"
    )


@pytest.mark.long
def test_each_module_has_its_line_in_the_map() -> None:
    drawing = module_map.render(ROOT / "app")
    modules = list(ROOT.glob("app/**/*.py"))

    assert len(drawing.splitlines()) == len(modules)
    assert all(line.endswith((".", "!", "?")) for line in drawing.splitlines())


def test_the_map_takes_the_first_sentence_of_a_docstring() -> None:
    source = '"""Owns the floor: who\nanswers. Decides once.\n\nOne rule.\n"""\n'

    assert module_map.sentence(source) == "Owns the floor: who answers."


def test_a_new_map_replaces_the_old_one_and_nothing_else() -> None:
    once = module_map.insert(f"above\n{module_map.BEGIN}{module_map.END}below\n", "- `old`\n")
    twice = module_map.insert(once, "- `new`\n")

    assert twice == f"above\n{module_map.BEGIN}\n- `new`\n\n{module_map.END}below\n"


def test_the_handbook_names_only_what_exists() -> None:
    handbook = module_map.HANDBOOK.read_text()
    _, drawing, _ = handbook.partition("## Layers")[2].split("```", 2)
    layers = {
        name for line in drawing.splitlines() for name in re.split(r" {2,}", line)[0].split(" | ")
    }
    folders = set(re.findall(r"`(tests/[a-z_.]+)`", handbook))

    assert {each for each in layers if each and not list(ROOT.glob(f"app/{each}*"))} == set()
    assert {each for each in folders if not (ROOT / each).exists()} == set()


def test_the_settings_page_lists_every_key_of_an_agent() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    table = page.partition("| key | meaning |")[2].partition("\n\n")[0]
    first = "".join(line.split("|")[1] for line in table.splitlines()[2:])

    assert sorted(re.findall(r"`(\w+)`", first)) == sorted(KEYS)


def test_troubleshooting_lists_all_that_doctor_finds() -> None:
    written = doctor_table.PAGE.read_text()

    assert written == doctor_table.insert(written, doctor_table.render()), "run `make map`"
    assert written.count("\n| ") > 30


@pytest.mark.parametrize(
    "path", ["README.md", "docs/quick-start.md", "docs/troubleshooting.md", "docs/operate.md"]
)
def test_not_isolated_means_the_same_in_the_docs_as_on_the_page(path: str) -> None:
    assert AS_YOU in (ROOT / path).read_text()


@page
def test_each_link_to_a_part_of_a_page_leads_there(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)", path.read_text())

    assert [link for link in links if link[1] not in parts(path.parent / link[0], path)] == []


def parts(linked: Path, own: Path) -> set[str]:
    """Name the headings of a page as GitHub does."""
    text = (own if linked.is_dir() else linked).read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@page
def test_each_make_command_in_the_docs_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"`make ([a-z-]+)", path.read_text())) <= targets


@page
def test_each_link_to_a_file_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", path.read_text())

    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("name", ["page", "slack", "github", "linear"])
def test_pictures_are_small(name: str) -> None:
    assert 10_000 < (ROOT / "docs" / f"{name}.png").stat().st_size < LARGEST


def test_the_changelog_speaks_of_the_version_that_is_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text()
