"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = [ROOT / "examples/echo_service", ROOT / "examples/dice_feature"]
MODULES = sorted(ROOT.glob("app/**/*.py"))

READS_ENVIRONMENT = re.compile(r"os\.(environb?|getenvb?|putenv|unsetenv|get_exec_path)")
STARTS_TASK = re.compile(r"asyncio\.(create_task|ensure_future)|.*loop(\(\))?\.create_task")
GOES_TOO_DEEP = re.compile(r"os\.f?walk|shutil\.(rmtree|copytree)|.*\.rglob")

# Children are programs of their own: nobody can hand them settings but their environment.
MAY_READ_ENVIRONMENT = ("app/config", "app/demo_agent.py", "app/acp/tool_relay.py")
MAY_START_TASKS = ("app/tasks.py",)
# It looks at a folder that the bridge alone writes.
MAY_GO_DEEP = ("app/acp/launcher.py",)
PLAIN = {"app", "typing_extensions"}
"""The second brings `override`, which the oldest Python that is supported lacks."""
STANDARD_LIBRARY_ONLY = (
    *("app/core/", "app/model/", "app/clock.py", "app/retry.py", "app/tasks.py", "app/signals.py"),
    *("app/vault/", "app/errors.py", "app/demo_agent.py"),
)


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def outside(*allowed: str) -> list[Path]:
    within = set(inside(*allowed))
    return [path for path in MODULES if path not in within]


def inside(*members: str) -> list[Path]:
    """List the modules of files and folders; one that is not there would check nothing."""
    found = {
        member: [path for path in MODULES if path.is_relative_to(ROOT / member)]
        for member in members
    }
    assert [member for member, paths in found.items() if not paths] == []
    return [path for paths in found.values() for path in paths]


def names(source: str) -> Iterator[tuple[int, str]]:
    """Yield every dotted name that is used, and what is imported by name, with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def uses(source: str, rule: re.Pattern[str]) -> list[int]:
    return [line for line, name in names(source) if rule.fullmatch(name)]


def packages(source: str) -> set[str]:
    """Collect the top-level packages that a module imports, at its head or in a function."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "app").partition(".")[0])
    return found


def offenders(paths: list[Path], rule: re.Pattern[str]) -> list[str]:
    return [f"{place(path)}:{line}" for path in paths for line in uses(path.read_text(), rule)]


SENTENCE = re.compile(r"(?s)[A-Z][a-z']*( .*|\.)|.* .*\.")


def sentences(source: str) -> list[str]:
    """Collect the literals that are sentences for people; docstrings and errors are not."""
    tree = ast.parse(source)
    silent = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for inner in ast.walk(node)
    }
    parts = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    literals = {
        node: "".join(
            str(part.value) if isinstance(part, ast.Constant) else "x" for part in _parts(node)
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in parts | silent
    }
    return [text for text in literals.values() if SENTENCE.fullmatch(text)]


def _parts(node: ast.Constant | ast.JoinedStr) -> list[ast.expr]:
    return node.values if isinstance(node, ast.JoinedStr) else [node]


def test_the_store_holds_no_sentence_for_people() -> None:
    found = {place(path): sentences(path.read_text()) for path in inside("app/store/")}

    assert {path: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize(
    "line",
    [
        'NOTE = "Stopped."',
        'note = "Nobody answered in time, so it was not done."',
        'say(f"Handed over to {agent}.")',
        'say(f"{name} took a message back.")',
        'say(f"Nobody answered in time: {title}")',
    ],
)
def test_a_sentence_for_people_is_noticed(line: str) -> None:
    assert sentences(line)


@pytest.mark.parametrize(
    "line",
    ['"""Keeps turns."""', 'raise StoreUnavailable("It is locked.")', 'run("BEGIN IMMEDIATE")'],
)
def test_docstrings_errors_and_statements_are_no_sentences_for_people(line: str) -> None:
    assert not sentences(line)


def test_a_rule_about_a_file_that_is_not_there_fails() -> None:
    for names_files in (inside, outside):
        with pytest.raises(AssertionError, match="no_such_module"):
            names_files("app/errors.py", "app/no_such_module.py")


def test_exceptions_of_the_linters_name_files_that_are_there() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    patterns = [*tools["ruff"]["lint"]["per-file-ignores"]]
    for override in tools["mypy"]["overrides"]:
        modules = override["module"] if not override.get("ignore_missing_imports") else []
        patterns += [each.replace(".*", "/**/*").replace(".", "/") + ".py" for each in modules]

    lost = [
        each
        for each in patterns
        if not any(list(folder.glob(each)) for folder in (ROOT, *EXAMPLES))
    ]

    assert lost == []


def test_only_config_reads_the_environment() -> None:
    assert offenders(outside(*MAY_READ_ENVIRONMENT), READS_ENVIRONMENT) == []


def test_only_the_task_module_starts_background_tasks() -> None:
    assert offenders(outside(*MAY_START_TASKS), STARTS_TASK) == []


def test_folders_that_agents_fill_are_walked_by_descriptors_alone() -> None:
    """All else recurses, or takes a path that may be too long."""
    assert offenders(outside(*MAY_GO_DEEP), GOES_TOO_DEEP) == []


def test_plain_modules_import_the_standard_library_and_each_other_only() -> None:
    imported = {
        place(path): packages(path.read_text()) - sys.stdlib_module_names - PLAIN
        for path in inside(*STANDARD_LIBRARY_ONLY)
    }

    assert {path: vendors for path, vendors in imported.items() if vendors} == {}


def test_simulated_platforms_import_nothing_of_the_package() -> None:
    witnesses = sorted(ROOT.glob("sim/**/*.py"))
    imported = {place(path): packages(path.read_text()) for path in witnesses}

    assert imported
    assert [path for path, found in imported.items() if found & {"app", "tests"}] == []


def test_the_demo_agent_imports_nothing_of_the_package() -> None:
    imported = [packages(path.read_text()) for path in inside("app/demo_agent.py")]

    assert not any("app" in found for found in imported)


@pytest.mark.long
def test_every_module_begins_with_a_docstring() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]

    assert [place(path) for path in silent] == []


def test_the_folder_of_migrations_does_not_hide_the_package_of_that_name() -> None:
    assert not (ROOT / "alembic/__init__.py").exists()


@pytest.mark.parametrize(
    "line",
    ["import os\nos.environ['A']", "from os import getenv", "import os\nos.get_exec_path()"],
)
def test_reading_the_environment_is_noticed(line: str) -> None:
    assert uses(line, READS_ENVIRONMENT)


@pytest.mark.parametrize(
    "line",
    [
        "asyncio.create_task(work())",
        "asyncio.ensure_future(work())",
        "from asyncio import create_task",
        "asyncio.get_running_loop().create_task(work())",
        "self.loop.create_task(work())",
    ],
)
def test_starting_a_task_is_noticed(line: str) -> None:
    assert uses(line, STARTS_TASK)


def test_a_task_group_may_start_tasks_anywhere() -> None:
    assert not uses("group.create_task(work())", STARTS_TASK)
