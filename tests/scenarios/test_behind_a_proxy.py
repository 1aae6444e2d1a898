"""A bridge in a company: one HTTP proxy is the only way out, and signs everything itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.company_proxy import PASSWORD, CompanyProxy
from tests.support.github import GithubWorld

HOST = "github.company.test"
FOUND = find_bubblewrap(os.environ["PATH"])
APART = {"sandbox": "none" if isinstance(FOUND, Unavailable) else "bubblewrap"}


@pytest.mark.long
@pytest.mark.timeout(200)  # on a busy machine git, bubblewrap and TLS take their time
def test_bridge_git_and_agent_go_through_the_proxy_and_trust_its_authority(tmp_path: Path) -> None:
    world = GithubWorld(tmp_path, private=True, entry={**APART, "mode": "free"})
    github, away = world.github, f"https://{HOST}"
    with CompanyProxy(tmp_path, HOST, int(github.url.rpartition(":")[2])) as proxy:
        world.settings = {
            "GITHUB_API_URL": github.api_url.replace(github.url, away),
            "GITHUB_GIT_URL": away,
            "GITHUB_WEB_URL": away,
            "HTTPS_PROXY": proxy.url,
            "SSL_CERT_FILE": str(proxy.authority),
        }
        with world:
            look = f"GIT_TERMINAL_PROMPT=0 git ls-remote {away}/acme/widgets"
            issue = world.issue(f"@claude-bridge\nrun {look}\nrun ls README.md")

            answer = world.wait_for(issue, "README.md", seconds=120)

        # The agent's git got an answer, and has no token.
        assert "could not read Username" in answer.body
        # Git shows its password only when asked for it.
        assert set(proxy.asked) == {(f"{HOST}:443", 407), (f"{HOST}:443", 200)}
        assert PASSWORD not in world.bridge.log.read_text()
