"""Which lines of a diff a reviewer can comment on."""

from __future__ import annotations

from app.features.together.model import find_outside, read_lines
from app.model.proposals import ReviewFinding

DIFF = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,4 @@ def f():
 one
-two
+++ b/not.py
+@@ -1 +9,9 @@
 three
@@ -20 +21 @@
-x
+y
diff --git a/gone.py b/gone.py
--- a/gone.py
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
diff --git "a/\\303\\244.py" "b/\\303\\244.py"
--- "a/\\303\\244.py"
+++ "b/\\303\\244.py"
@@ -1 +1 @@
-a
+b
diff --git a/with space.py b/with space.py
--- /dev/null
+++ b/with space.py\t
@@ -0,0 +1,2 @@
+a
+b
\\ No newline at end of file
"""


def test_the_lines_after_the_change_are_listed_by_file() -> None:
    shown = read_lines(DIFF)

    assert dict(shown) == {"a.py": [range(1, 5), range(21, 22)], "with space.py": [range(1, 3)]}


def test_findings_on_other_lines_are_found() -> None:
    inside = [
        ReviewFinding("a.py", 4, "x"),
        ReviewFinding("a.py", 21, "x"),
        ReviewFinding("with space.py", 2, "x"),
    ]
    outside = [
        ReviewFinding("a.py", 5, "x"),
        ReviewFinding("gone.py", 1, "x"),
        ReviewFinding("not.py", 9, "x"),
    ]

    assert find_outside([*inside, *outside], read_lines(DIFF)) == outside


def test_a_list_of_files_shows_no_lines() -> None:
    assert not read_lines(" a.py | 2 +-\n 1 file changed\n")
