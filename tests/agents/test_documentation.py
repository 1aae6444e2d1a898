"""The page about agents says what the catalog and the pins say."""

from __future__ import annotations

from pathlib import Path

from app.agents.catalog import known_agents
from tests.agents.install import pins
from tests.agents.kits import DEMO, REAL

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text()
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in PAGE.partition("## Asking")[0].splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}


def test_every_known_agent_has_a_row_and_every_real_one_a_pin_and_a_kit() -> None:
    names = [program.name for program in known_agents()]

    assert list(ROWS) == names
    assert {kit.name for kit in (DEMO, *REAL)} == set(names)
    assert {pin.name for pin in pins()} == {"node", *(kit.name for kit in REAL)}


def test_the_versions_on_the_page_are_those_that_are_pinned() -> None:
    pinned = {pin.name: (f"`{pin.package}`", pin.version) for pin in pins() if pin.name != "node"}

    assert {name: tuple(ROWS[name][:2]) for name in pinned} == pinned


def test_the_page_names_the_mode_that_asks_and_what_is_refused() -> None:
    for program in known_agents():
        mode, checkout = ROWS[program.name][2], ROWS[program.name][4]
        assert (program.ask_mode or "any; set to ask").endswith(mode.strip("`"))
        refused = ", ".join(f"`{name}`" for name in program.obeys)
        assert checkout.partition("refused: ")[2] == refused


def test_the_page_says_how_an_agent_gets_tools_and_how_long_it_waits_for_one() -> None:
    for program in known_agents():
        known = f"{program.tool_exposure}, {program.tool_seconds:.0f} s"
        assert ROWS[program.name][5] == known


def test_the_package_that_is_pinned_is_one_that_the_catalog_knows() -> None:
    packages = {program.name: program.packages for program in known_agents()}

    assert all(pin.package in packages[pin.name] for pin in pins() if pin.name != "node")


def test_every_variable_that_the_bridge_sets_is_on_the_page() -> None:
    for program in known_agents():
        for name in program.environment.keys() - {"OPENCODE_PERMISSION"}:
            assert f"`{name}={program.environment[name]}`" in PAGE
