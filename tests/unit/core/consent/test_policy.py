"""What an agent may do without anybody being asked."""

from __future__ import annotations

import shlex
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.calls import Call, call_of, subject
from app.model.policy import PRESETS, Policy, Rule, Verdict, decide
from app.model.updates import FileDiff, ToolUpdate

HOME = "/data/workspaces/1-web"
GIT_STATUS = Policy((Rule("allow", command=("git status*",)),))
RUN_ALL_BUT_RM = (Rule("deny", command=("rm *",)), Rule("allow", kind=("execute",)))

TRICKS = [
    "git status; rm -rf /",
    "git status && rm -rf /",
    "git status || rm -rf /",
    "git status | sh",
    "git status & rm -rf /",
    "git status\nrm -rf /",
    "git status\rrm -rf /",
    "git status $(rm -rf /)",
    "git status `rm -rf /`",
    "git status ${IFS}rm",
    "git status <(rm -rf /)",
    "git status > /etc/passwd",
    "git status >> ~/.bashrc",
    "git status {a,b}",
    "git status \\\nrm",
    "git status 'x",
    "git status # comment",
    "git status *",
    "git status ~root",
    "git status !!",
    "GIT_SSH=evil git status",
    "cd / && git status",
    "'git status' x",
    '"git status"',
    " ",
    "",
    "git status\x00",
    "git\u00a0status",
    "git status \u202e",
]


def run(command: object, **more: object) -> Call:
    return call_of(
        ToolUpdate("1", "Run", "execute", input={"command": command, **more}), roots=(HOME,)
    )


def touch(kind: str, *paths: str) -> Call:
    return call_of(ToolUpdate("1", "Touch", kind, locations=paths), roots=(HOME,))


def verdict(policy: Policy, call: Call) -> str:
    return decide(policy, call).decision


@pytest.mark.parametrize(
    ("preset", "kind", "decision"),
    [
        ("read-only", "read", "allow"),
        ("read-only", "edit", "deny"),
        ("read-only", "execute", "deny"),
        ("read-only", "fetch", "ask"),
        ("careful", "read", "allow"),
        ("careful", "search", "allow"),
        ("careful", "edit", "ask"),
        ("careful", "execute", "ask"),
        ("careful", "fetch", "ask"),
        ("careful", "switch_mode", "ask"),
        ("trusted", "edit", "allow"),
        ("trusted", "delete", "allow"),
        ("trusted", "execute", "allow"),
        ("trusted", "switch_mode", "ask"),
        ("trusted", "other", "ask"),
    ],
)
def test_a_preset_decides_by_kind(preset: str, kind: str, decision: str) -> None:
    assert verdict(PRESETS[preset], Call(kinds=(kind,))) == decision


@pytest.mark.parametrize("preset", PRESETS)
def test_a_call_that_says_nothing_of_itself_is_asked(preset: str) -> None:
    assert verdict(PRESETS[preset], Call()) == "ask"


def test_the_rule_that_decided_is_told() -> None:
    allow = Rule("allow", kind=("edit",), path=("docs/**",))

    assert decide(Policy((allow,)), touch("edit", "docs/a.md")) == Verdict("allow", allow)
    assert decide(Policy((allow,)), touch("edit", "src/a.py")) == Verdict("ask", None)
    assert str(allow) == "allow kind edit; path docs/**"


def test_the_first_of_two_rules_that_allow_and_ask_counts() -> None:
    ask, allow = Rule("ask", kind=("edit",), path=("*.lock",)), Rule("allow", kind=("edit",))

    assert verdict(Policy((ask, allow)), touch("edit", "uv.lock")) == "ask"
    assert verdict(Policy((allow, ask)), touch("edit", "uv.lock")) == "allow"


def test_a_denial_counts_wherever_it_stands() -> None:
    rules = (
        Rule("allow", kind=("edit",)),
        Rule("ask", path=(".env",)),
        Rule("deny", path=(".env",)),
        Rule("allow"),
    )
    for order in permutations(rules):
        assert verdict(Policy(order), touch("edit", "app/.env")) == "deny"
        assert verdict(Policy(order), touch("edit", "a.py", "app/.ENV")) == "deny"


@pytest.mark.parametrize("command", TRICKS)
def test_a_command_with_a_trick_is_not_allowed_by_its_beginning(command: str) -> None:
    assert verdict(GIT_STATUS, run(command)) == "ask"
    assert verdict(GIT_STATUS, run(["bash", "-lc", command])) == "ask"


@pytest.mark.parametrize(
    "command",
    ["git status", "git  status -s", "git 'status' --short", ["git", "status"], "git statusx"],
)
def test_plain_words_are_allowed_however_they_are_quoted(command: object) -> None:
    assert verdict(GIT_STATUS, run(command)) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "git status; rm -rf /"],
        [["git", "status"], ";rm"],
        {"git status": 1},
        7,
        None,
        [],
        "x" * 5_000,
    ],
)
def test_an_odd_command_is_asked(command: object) -> None:
    assert verdict(GIT_STATUS, run(command)) == "ask"


@pytest.mark.parametrize("shell", ["./bash", "bin/sh", "/data/workspaces/1-web/bash", "/tmp/sh"])
def test_a_program_that_only_has_the_name_of_a_shell_is_not_taken_for_one(shell: str) -> None:
    assert verdict(GIT_STATUS, run([shell, "-lc", "git status"])) == "ask"
    assert verdict(GIT_STATUS, run(["/bin/bash", "-lc", "git status"])) == "allow"


@pytest.mark.parametrize("arguments", [["-rf", "/"], "-rf /"])
def test_a_command_whose_arguments_stand_beside_it_is_judged_with_them(arguments: object) -> None:
    rm = Policy((Rule("deny", command=("rm -rf",)), Rule("allow", command=("rm", "rm *"))))

    assert verdict(rm, run("rm")) == "allow"
    assert verdict(rm, run("rm", args=arguments)) == "deny"
    assert verdict(GIT_STATUS, run("git status", argv=["; rm x"])) == "ask"


def test_every_command_of_a_call_must_be_allowed() -> None:
    assert verdict(GIT_STATUS, run("git status", cmd="rm -rf /")) == "ask"


def test_a_call_that_carries_a_command_is_a_command_whatever_it_says_it_is() -> None:
    claimed = call_of(ToolUpdate("1", "Read", "read", input={"command": "rm -rf /"}))

    assert verdict(PRESETS["careful"], claimed) == "ask"
    assert verdict(PRESETS["read-only"], claimed) == "deny"


def test_a_call_announced_as_reading_and_asked_as_an_edit_is_both() -> None:
    both = call_of(ToolUpdate("1", "Look", "read"), ToolUpdate("1", "Write", "edit"))

    assert verdict(PRESETS["careful"], both) == "ask"
    assert verdict(PRESETS["read-only"], both) == "deny"


def test_an_edit_is_not_allowed_by_a_command_in_its_input() -> None:
    odd = call_of(ToolUpdate("1", "x", "edit", input={"command": "git status", "path": "/etc/x"}))

    assert verdict(GIT_STATUS, odd) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm -rf /",
        "ls; rm x",
        "ls && rm x",
        "/bin/rm x",
        "A=1 rm x",
        "RM x",
        "ls\nrm x",
        "'rm' x",
        "r\\m x",
        "(rm x)",
        "echo $(rm x)",
    ],
)
def test_a_denied_command_is_denied_wherever_a_line_runs_it(command: str) -> None:
    for order in permutations(RUN_ALL_BUT_RM):
        assert verdict(Policy(order), run(command)) == "deny"


@pytest.mark.parametrize(
    "command",
    ["sudo rm x", "env A=1 rm x", "xargs rm x", "bash -c 'rm x'", "$X x", "r${E}m x", 7, None],
)
def test_a_command_that_might_be_a_denied_one_is_asked(command: object) -> None:
    for order in permutations(RUN_ALL_BUT_RM):
        assert verdict(Policy(order), run(command)) in {"ask", "deny"}


def test_another_command_than_the_denied_one_is_allowed() -> None:
    assert verdict(Policy(RUN_ALL_BUT_RM), run("git status")) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "../etc/passwd",
        "docs/../../x",
        "docs/../src/a.py",
        "/etc/passwd",
        f"{HOME}/../2-web/docs/a.md",
        f"{HOME}x/docs/a.md",
        "~/docs/a.md",
        "$HOME/docs/a.md",
        "file:///etc/docs/a.md",
        "https://x/docs/a.md",
        "docs\\..\\..\\x",
        "docs/a\x00.md",
        "",
        "DOCS/a.md",
        "src/docs/a.md",
    ],
)
def test_a_path_elsewhere_is_not_allowed_by_a_relative_glob(path: str) -> None:
    assert verdict(Policy((Rule("allow", path=("docs/**",)),)), touch("edit", path)) == "ask"


@pytest.mark.parametrize("path", ["docs/a.md", "./docs/a/b.md", f"{HOME}/docs/a.md:12", "docs//a"])
def test_a_path_below_a_glob_is_allowed(path: str) -> None:
    assert verdict(Policy((Rule("allow", path=("docs/**",)),)), touch("edit", path)) == "allow"


def test_all_paths_of_a_call_must_be_allowed() -> None:
    policy = Policy((Rule("allow", kind=("edit",), path=("docs/**",)),))
    diff = ToolUpdate(
        "1", "x", "edit", locations=("docs/a",), diffs=(FileDiff("/etc/x", None, ""),)
    )
    deep = ToolUpdate("1", "x", "edit", input={"edits": [{"file_path": "docs/a"}, {"path": "b"}]})
    odd = ToolUpdate("1", "x", "edit", input={"path": ["docs/a", 7]})
    changes = ToolUpdate("1", "x", "edit", input={"changes": {"docs/a": {}, "src/b": {}}})

    for update in (diff, deep, odd, changes):
        assert verdict(policy, call_of(update, roots=(HOME,))) == "ask"


def test_what_lies_in_the_workspace_is_shown_as_it_is_named_there() -> None:
    paths = (f"{HOME}/src/a.py", "src/a.py", "/etc/hosts", f"{HOME}/../2-web/b.py", f"{HOME}x/c")

    shown = subject(touch("edit", *paths)).split("\n")

    assert shown == ["src/a.py", "/etc/hosts", f"{HOME}/../2-web/b.py", f"{HOME}x/c"]
    assert subject(run("make")) == "make"


def test_a_rule_without_a_path_speaks_of_the_workspace() -> None:
    assert verdict(PRESETS["trusted"], touch("edit", "src/a.py")) == "allow"
    assert verdict(PRESETS["trusted"], touch("edit", "/etc/passwd")) == "ask"
    assert verdict(PRESETS["careful"], touch("read", "../other/secret")) == "ask"
    everywhere = Policy((Rule("allow", kind=("read",), path=("/**",)),))
    assert verdict(everywhere, touch("read", "/etc/passwd")) == "allow"


def test_a_command_is_not_allowed_by_the_paths_it_names() -> None:
    call = call_of(ToolUpdate("1", "x", "execute", input={"command": "rm", "path": "docs/a"}))

    assert verdict(Policy((Rule("allow", path=("docs/**",)),)), call) == "ask"


def test_a_command_that_names_a_denied_path_is_asked() -> None:
    policy = Policy((Rule("deny", path=(".env",)), Rule("allow", kind=("execute",))))

    assert verdict(policy, run("cat .env")) == "ask"
    assert verdict(policy, run("cat --file=sub/.env")) == "ask"
    assert verdict(policy, run("ls src")) == "allow"


def test_a_title_alone_allows_nothing_since_it_is_the_agents_own_words() -> None:
    titled = call_of(ToolUpdate("1", "Run tests", "execute", input={"command": "rm -rf /"}))

    assert verdict(Policy((Rule("allow", title=("Run *",)),)), titled) == "ask"
    assert verdict(Policy((Rule("deny", title=("run *",)), Rule("allow"))), titled) == "deny"
    tool = call_of(ToolUpdate("1", "bridge: agents_list", "other"))
    assert verdict(Policy((Rule("allow", ("other",), ("bridge: *",)),)), tool) == "allow"


kinds = st.sampled_from(["read", "edit", "execute", "fetch", "other", "odd", None])
texts = st.one_of(st.text(max_size=30), st.sampled_from(TRICKS), st.sampled_from(["docs/a", "a"]))
values = st.recursive(
    st.one_of(texts, st.integers(), st.none(), st.booleans()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
inputs = st.dictionaries(st.sampled_from(["command", "cmd", "path", "files", "x"]), values)
updates = st.builds(
    ToolUpdate,
    call=st.just("1"),
    title=st.none() | texts,
    kind=kinds,
    input=values | inputs,
    locations=st.none() | st.lists(texts, max_size=2).map(tuple),
)
globs = st.lists(
    st.sampled_from(["*", "**", "docs/**", "git *", "rm *", "a", ".env", "/**"]), max_size=2
).map(tuple)
rules = st.builds(
    Rule,
    decision=st.sampled_from(["allow", "ask", "deny"]),
    kind=st.lists(st.sampled_from(["read", "edit", "execute", "other"]), max_size=2).map(tuple),
    title=globs,
    path=globs,
    command=globs,
)


@pytest.mark.long
@given(st.lists(rules, max_size=5), rules, updates, st.randoms(use_true_random=False))
def test_no_order_and_no_further_rule_opens_what_a_denial_closes(
    others: list[Rule], closing: Rule, update: ToolUpdate, chance: object
) -> None:
    deny = Rule("deny", closing.kind, closing.title, closing.path, closing.command)
    call = call_of(update, roots=(HOME,))
    alone = decide(Policy((deny, Rule("allow"))), call).decision
    shuffled = [deny, *others]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random

    found = decide(Policy(tuple(shuffled)), call).decision

    assert found == "deny" if alone == "deny" else alone == "allow" or found != "allow"


@given(updates, rules)
def test_whatever_an_agent_claims_a_decision_is_made(update: ToolUpdate, rule: Rule) -> None:
    assert decide(Policy((rule,)), call_of(update)).decision in {"allow", "ask", "deny"}


words = st.text("abz-./=,:'\" ;&|$`\n\\(){}<>*?[]~!#\t", max_size=20)


@given(words, words, words)
def test_whatever_is_allowed_by_its_words_has_these_words_for_a_shell(
    before: str, between: str, after: str
) -> None:
    command = f"{before}git{between}status{after}"
    if verdict(GIT_STATUS, run(command)) == "allow":
        seen = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        assert " ".join(shlex.split(command)[:2]).startswith("git status")
        assert not set("".join(seen)) & set(";&|$`\n\\(){}<>*?[]~!#")


@given(st.sampled_from(["; ", " && ", "|", "\n", "$(", "`", " & ", "||", "(", "{ "]), words, words)
def test_a_denied_command_is_never_allowed_behind_a_trick(
    trick: str, before: str, after: str
) -> None:
    line = f"{before}{trick}rm x {after}"

    assert verdict(Policy(RUN_ALL_BUT_RM), run(line)) != "allow"
