"""`make test`: the gates run next to the tests, and nothing that fails is missed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import pytest

from tests.support.gates import run

GOOD = [sys.executable, "-c", ""]
BAD = [sys.executable, "-c", "import sys; sys.exit('line 7 is wrong')"]
ENDLESS = [sys.executable, "-c", "import signal; signal.pause()"]


def test_every_gate_says_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    status = run(GOOD, {"format": GOOD, "types": GOOD})

    lines = sorted(capfd.readouterr().out.splitlines())
    assert status == 0
    assert [line[:10] for line in lines] == ["format  ok", "types   ok"]


@pytest.fixture(params=["at a terminal", "in the background"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ignore Ctrl-C, as a shell lets jobs in the background do."""
    ignored = signal.SIG_IGN if request.param == "in the background" else signal.SIG_DFL
    before = signal.signal(signal.SIGINT, ignored)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_a_gate_that_fails_shows_its_words_and_ends_the_tests(
    capfd: pytest.CaptureFixture[str],
) -> None:
    status = run(ENDLESS, {"types": BAD})

    assert status != 0
    assert capfd.readouterr().out == "types   failed\nline 7 is wrong\n"


def test_a_gate_that_fails_after_the_tests_have_passed_counts() -> None:
    assert run(GOOD, {"types": BAD}) != 0


def test_tests_that_fail_count_although_every_gate_passes() -> None:
    assert run([sys.executable, "-c", "import sys; sys.exit(5)"], {"lint": GOOD}) == 5
