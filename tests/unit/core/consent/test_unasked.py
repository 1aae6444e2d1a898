"""Which calls people should have been asked about when nobody was."""

from __future__ import annotations

import pytest

from app.core.consent.unasked import needed_asking, only_reads
from app.model.calls import Call
from app.model.policy import PRESETS, Policy, Rule

CAREFUL = PRESETS["careful"]


def command(line: str) -> Call:
    return Call(kinds=("execute",), commands=(line,))


@pytest.mark.parametrize(
    "line",
    [
        "ls -la",
        "cat README.md | head -20",
        "git status && git log --oneline -5",
        "git --no-pager diff HEAD~1",
        "cd src && grep -rn 'def main(' . 2>/dev/null | wc -l",
        'rg "a|b" src',
        "find . -name '*.py' -type f",
        "sed -n 1,20p app.py",
        "echo done 2>&1",
        "git branch -a",
    ],
)
def test_a_command_that_only_looks_around_needs_no_asking(line: str) -> None:
    assert only_reads(line)
    assert not needed_asking(CAREFUL, command(line))
    assert not needed_asking(PRESETS["read-only"], command(line))


@pytest.mark.parametrize(
    "line",
    [
        "touch x",
        "ls & rm -rf x",
        "ls; rm x",
        "ls\nrm x",
        "ls | xargs rm",
        "cat a > b",
        "cat a >> /dev/null/../b",
        "cat $(touch x)",
        'echo "$(touch x)"',
        "echo `touch x`",
        "find . -delete",
        "find . -exec rm {} +",
        "sed -i s/a/b/ x",
        "sed -n 'w x' y",
        "sort -o x y",
        "git push",
        "git branch -D main",
        "git diff --output=x",
        "git -c core.pager=x log",
        "uniq a b",
        "rg --pre=./x y",
        "./ls",
        "PATH=. ls",
        "(rm x)",
        "ls '",
        "ls \\\nrm",
    ],
)
def test_a_command_that_may_do_something_needs_asking(line: str) -> None:
    assert not only_reads(line)
    assert needed_asking(CAREFUL, command(line))


@pytest.mark.parametrize("kind", ["edit", "delete", "move"])
def test_a_change_of_files_needs_asking_unless_a_rule_allows_it(kind: str) -> None:
    call = Call(kinds=(kind,), paths=("/clone/a",), roots=("/clone",))

    assert needed_asking(CAREFUL, call)
    assert not needed_asking(PRESETS["trusted"], call)


@pytest.mark.parametrize(
    "kinds", [("read",), ("think",), ("other",), ("switch_mode",), ("fetch",), ()]
)
def test_what_neither_changes_files_nor_runs_commands_needs_asking_only_if_a_rule_says_so(
    kinds: tuple[str, ...],
) -> None:
    assert not needed_asking(CAREFUL, Call(kinds=kinds))
    assert needed_asking(Policy((Rule("ask"),)), Call(kinds=kinds))


def test_a_rule_about_a_command_counts_also_where_the_command_only_reads() -> None:
    policy = Policy((Rule("deny", kind=("execute",), command=("cat *",)), *CAREFUL.rules))

    assert needed_asking(policy, command("cat notes"))
    assert not needed_asking(policy, command("ls"))


def test_a_denial_that_only_might_be_meant_accuses_nobody() -> None:
    policy = Policy((Rule("deny", path=("secrets/**",)), *CAREFUL.rules))

    assert not needed_asking(policy, command("ls '*'"))


def test_commands_of_an_agent_that_confines_them_itself_need_no_asking() -> None:
    assert not needed_asking(CAREFUL, command("make test"), confines_commands=True)
    edit = Call(kinds=("edit",), paths=("/clone/a",), roots=("/clone",))
    assert needed_asking(CAREFUL, edit, confines_commands=True)
