"""Documentation is held against the code: the handbook, the commands, the links, the version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from app.agents.isolation import AS_YOU
from app.config.agents import KEYS
from tests.support import doctor_table, module_map

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LARGEST = 150_000
"""Bytes of one picture: `make pictures` takes them."""
HANDBOOK = ROOT / "CLAUDE.md"
LARGEST_HANDBOOK = 9 * 1024
"""Bytes: every session of an agent that works here loads it."""
page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


@pytest.mark.long
def test_each_module_has_its_line_in_the_map() -> None:
    drawing = module_map.render(ROOT / "app")
    modules = list(ROOT.glob("app/**/*.py"))

    assert len(drawing.splitlines()) == len(modules)
    assert all(line.endswith((".", "!", "?")) for line in drawing.splitlines())


def test_the_map_takes_the_first_sentence_of_a_docstring() -> None:
    source = '"""Owns the floor: who\nanswers. Decides once.\n\nOne rule.\n"""\n'

    assert module_map.sentence(source) == "Owns the floor: who answers."


def test_the_handbook_is_short_enough_to_be_read_each_time() -> None:
    assert HANDBOOK.stat().st_size <= LARGEST_HANDBOOK


def test_the_handbook_names_only_what_exists() -> None:
    handbook = HANDBOOK.read_text()
    top = "|".join(sorted(each.name for each in ROOT.iterdir() if each.is_dir()))
    named = set(re.findall(rf"`((?:{top})(?:/[\w.]+)+|[\w.]+\.(?:md|py|toml))`", handbook))
    run = set(re.findall(r"python -m ([a-z_.]+)", handbook))
    modules = {f"{name.replace('.', '/')}.py" for name in run - {"sim"}}

    assert len(named) > 30
    assert {each for each in named | modules if not (ROOT / each).exists()} == set()


def test_the_layers_of_the_handbook_are_those_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if each["id"] == "layers")
    drawing = HANDBOOK.read_text().partition("## Layers")[2].split("```")[1]

    drawn = [re.split(r" {2,}", line)[0] for line in drawing.strip().splitlines()]

    assert drawn == [re.sub(r"[()]", "", layer) for layer in contract["layers"]]


def test_unit_tests_have_the_folders_of_what_they_test() -> None:
    folders = [each for each in (ROOT / "tests/unit").iterdir() if list(each.glob("**/test_*.py"))]
    tested = {f"app/{each.name}" for each in folders} - {"app/sim"}

    assert {each for each in tested if not (ROOT / each).is_dir()} == set()


def test_the_settings_page_lists_every_key_of_an_agent() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    table = page.partition("| key | meaning |")[2].partition("\n\n")[0]
    first = "".join(line.split("|")[1] for line in table.splitlines()[2:])

    assert sorted(re.findall(r"`(\w+)`", first)) == sorted(KEYS)


def test_troubleshooting_lists_all_that_doctor_finds() -> None:
    written = doctor_table.PAGE.read_text()

    assert written == doctor_table.insert(written, doctor_table.render()), "run `make findings`"
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


def test_the_index_links_every_page_once() -> None:
    links = re.findall(r"\]\(([a-z-]+\.md)\)", (ROOT / "docs/README.md").read_text())

    assert sorted(links) == sorted(each.name for each in PAGES if each.name.islower())


@pytest.mark.parametrize("name", ["page", "slack", "github", "linear"])
def test_pictures_are_small(name: str) -> None:
    assert 10_000 < (ROOT / "docs" / f"{name}.png").stat().st_size < LARGEST


def test_the_changelog_speaks_of_the_version_that_is_built() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_changelog_has_each_kind_of_change_once_per_version() -> None:
    for version in (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]:
        kinds = re.findall(r"^### (.+)$", version, re.MULTILINE)

        assert len(kinds) == len(set(kinds))
