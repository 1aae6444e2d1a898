"""A bridge in a company: one HTTP proxy is the only way out, and signs everything itself."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.sim.github.state import Issue
from tests.sim.github.world import SimulatedGithub
from tests.support.bridge import ADMIN_TOKEN, DEMO
from tests.support.company_proxy import PASSWORD, CompanyProxy
from tests.support.github import PEOPLE, credentials
from tests.support.served import Served

SECONDS = 45.0
HOST = "github.company.test"
APART = "none" if isinstance(find_bubblewrap(os.environ["PATH"]), Unavailable) else "bubblewrap"


@dataclass
class Office:
    """The company's GitHub behind its proxy, and a bridge with one agent."""

    github: SimulatedGithub
    proxy: CompanyProxy
    bridge: Served

    def answer(self, issue: Issue, words: str) -> str:
        """Wait until the agent has said something on an issue."""

        def said() -> list[str]:
            return [each.body for each in issue.comments if words in each.body]

        try:
            self.github.wait(said, SECONDS)
        except TimeoutError as error:
            seen = [each.body for each in issue.comments]
            raise TimeoutError(f"{seen}\n{self.bridge.output.read_text()[-4000:]}") from error
        return said()[0]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with SimulatedGithub(tmp_path / "github") as github:
        port = int(github.url.rpartition(":")[2])
        with (
            CompanyProxy(tmp_path, HOST, port) as proxy,
            closing(Served(tmp_path / "bridge")) as bridge,
        ):
            repository = github.repository("acme/widgets", PEOPLE, private=True)
            url = f"http://127.0.0.1:{bridge.port}/webhooks/github/claude"
            app = github.app("claude-bridge", url)
            github.install(app, repository)
            away = f"https://{HOST}"
            entry = {"command": DEMO, "sandbox": APART, "permissions": "trusted", "mode": "free"}
            bridge.surroundings = {
                **credentials(github, {"claude": app}),
                "GITHUB_API_URL": github.api_url.replace(github.url, away),
                "GITHUB_GIT_URL": away,
                "GITHUB_WEB_URL": away,
                "AGENTS_JSON": json.dumps({"claude": entry}),
                "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
                "HTTPS_PROXY": proxy.url,
                "SSL_CERT_FILE": str(proxy.authority),
            }
            bridge.start()
            yield Office(github, proxy, bridge)


def test_bridge_git_and_agent_go_through_the_proxy_and_trust_its_authority(office: Office) -> None:
    (repository,) = office.github.repositories.values()
    words = f"GIT_TERMINAL_PROMPT=0 git ls-remote https://{HOST}/acme/widgets"

    issue = office.github.open_issue(
        "ann", repository, "Look around", f"@claude-bridge\nrun {words}\nrun ls README.md"
    )
    answer = office.answer(issue, "README.md")

    # The agent's git got an answer, and has no token.
    assert "could not read Username" in answer
    # Git shows its password only when asked for it.
    assert set(office.proxy.asked) == {(f"{HOST}:443", 407), (f"{HOST}:443", 200)}
    assert PASSWORD not in office.bridge.output.read_text()
