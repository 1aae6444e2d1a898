"""What `git diff` writes, taken apart: no line is lost, each file has its name and counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.text import Line
from app.server.page.view.changes import LARGE_LINES, FileChange, lines_of, parse, parse_stat

EDIT = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -3,4 +3,3 @@ def name():
 same
--- not a header
-gone
+++ not a header either
 same
\\ No newline at end of file
"""
REST = """diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/logo.png b/logo.png
new file mode 100644
index 0..1
Binary files /dev/null and b/logo.png differ
diff --git a/link b/link
new file mode 120000
index 0..1
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+/etc/passwd
diff --git "a/\\303\\244 \\"x\\"\\t.txt" "b/\\303\\244 \\"x\\"\\t.txt"
deleted file mode 100644
--- "a/\\303\\244 \\"x\\"\\t.txt"
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
"""
BEGINNINGS = [
    "diff --git a/x b/x",
    "@@ -1,2 +1,2 @@",
    "--- a/x",
    "+++ b/x",
    "rename from ",
    "\\ No",
]
LINES = st.one_of(
    st.sampled_from(BEGINNINGS),
    st.builds(
        "{}{}".format, st.sampled_from(["+", "-", " ", "", '--- "a/\\', "+++ b/"]), st.text()
    ),
).map(lambda line: line.replace("\n", ""))


def test_counts_of_a_hunk_say_what_belongs_to_it() -> None:
    (file,) = parse(EDIT).files

    assert (file.path, file.status, file.added, file.removed) == ("src/a.py", "changed", 1, 2)
    assert list(lines_of(file)) == [
        Line("gap", "@@ -3,4 +3,3 @@ def name():", 3, 3),
        Line("same", "same", 3, 3),
        Line("del", "-- not a header", 4, 0),
        Line("del", "gone", 5, 0),
        Line("add", "++ not a header either", 0, 4),
        Line("same", "same", 6, 5),
        Line("note", "\\ No newline at end of file"),
    ]


def test_every_kind_of_change_has_its_name() -> None:
    renamed, picture, link, odd, mode = parse(REST).files

    assert (renamed.old_path, renamed.path, renamed.status) == (
        "old name.txt",
        "new name.txt",
        "renamed",
    )
    assert (picture.path, picture.status, picture.binary) == ("logo.png", "added", True)
    assert (link.path, link.what, link.added) == ("link", "symbolic link", 1)
    assert (odd.path, odd.status, odd.removed) == ('ä "x"\t.txt', "deleted", 1)
    assert (mode.path, mode.status, mode.body) == ("run.sh", "changed", ())


@given(st.lists(LINES, max_size=40))
def test_no_line_of_any_text_is_lost(lines: list[str]) -> None:
    text = "\n".join(lines)

    parsed = parse(f"{text}\n" if text else "")

    kept = [*parsed.lead, *(line for file in parsed.files for line in (*file.head, *file.body))]
    assert "\n".join(kept) == text
    for file in parsed.files:
        assert len(list(lines_of(file))) == len(file.body)
        assert file.added <= sum(line.startswith("+") for line in file.body)


@given(st.text())
def test_names_and_counts_alone_are_read_from_any_text(text: str) -> None:
    assert all(file.listed for file in parse_stat(text))


def test_names_and_counts_alone_are_read() -> None:
    one, renamed, binary = parse_stat("12\t3\ta b.py\x001\t0\t\x00old\x00new\x00-\t-\tlogo.png\x00")

    assert (one.path, one.added, one.removed) == ("a b.py", 12, 3)
    assert (renamed.old_path, renamed.path, renamed.status) == ("old", "new", "renamed")
    assert binary.binary


@pytest.mark.parametrize(
    ("path", "lines", "opens"),
    [
        ("src/a.py", 10, True),
        ("src/a.py", LARGE_LINES + 1, False),
        ("web/package-lock.json", 10, False),
        ("poetry.lock", 10, False),
        ("static/app.min.js", 10, False),
        ("lock.py", 10, True),
    ],
)
def test_long_and_generated_files_wait_for_a_click(path: str, lines: int, *, opens: bool) -> None:
    assert FileChange((), ("+x",) * lines, path).open is opens
