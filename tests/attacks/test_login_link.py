"""Log-in links: shown to a person at a terminal only, and not used up by programs that look."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.support.served import SERVE, Served


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("bridge")) as started:
        yield started


def say_on_a_terminal(bridge: Served, last_words: bytes) -> str:
    """Serve with a terminal as stdout until some words were said; returns all that was said."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        SERVE,
        cwd=bridge.home,
        env=bridge.environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    said = b""
    try:
        while not re.search(last_words, said):
            said += os.read(ours, 65536)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return said.decode()


@pytest.mark.slow
def test_a_bridge_whose_output_goes_to_a_file_prints_no_link(bridge: Served) -> None:
    """Attack 7: an agent that can read the file would become the operator."""
    said = bridge.output.read_text()

    assert "/login/" not in said
    assert re.search(r"^To open the page, run `.*agent-bridge login`\.$", said, re.MULTILINE)


@pytest.mark.long
def test_a_bridge_at_a_terminal_prints_a_link(tmp_path: Path) -> None:
    with closing(Served(tmp_path)) as bridge:
        said = say_on_a_terminal(bridge, rb"Open http\S+[^\n]*\n[^\n]*\n")

    own = re.search(rf"^Open http://\S+\.localhost:{bridge.port}/login/(\S+)", said, re.MULTILINE)
    plain = re.search(
        rf"^Or, .* http://127.0.0.1:{bridge.port}/login/plain/(\S+)", said, re.MULTILINE
    )
    assert own is not None
    assert plain is not None
    assert own[1] == plain[1]


@pytest.mark.slow
def test_a_preview_of_a_link_does_not_use_it_up(bridge: Served) -> None:
    """Chat programs and virus scanners fetch each link that they see."""
    link = httpx.URL(bridge.new_link())
    with httpx.Client(
        base_url=f"http://127.0.0.1:{bridge.port}", headers={"Host": link.netloc.decode()}
    ) as browser:
        previews = [browser.get(link.path) for _ in range(3)]
        first, second = browser.post(link.path), browser.post(link.path)
        late = browser.get(link.path)

    assert [each.status_code for each in previews] == [200] * 3
    assert not any("set-cookie" in each.headers for each in previews)
    assert (first.status_code, "set-cookie" in first.headers) == (303, True)
    assert (second.status_code, late.status_code) == (410, 410)
    assert "set-cookie" not in second.headers
