"""Where tokens come from and pull requests go to: one JSON file, which outlives the bridge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.errors import RepositoryError
from app.model.proposals import Examined, Proposal, Submission
from app.model.types import Session
from app.model.workspaces import Author, Judged, PullHead, Repository
from app.vault import Vault

BOT = Author("demo[bot]", "demo@bots.example.com")


class Forge:
    """The forge port on a file; it finds a pull request by its head, as the real thing does."""

    def __init__(self, file: Path, vault: Vault | None = None) -> None:
        self._file = file
        self._vault = vault

    def state(self) -> dict[str, Any]:
        """Read all there is: `token`, `proposals`, `heads`, `guards` by branch, `broken`."""
        found: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}
        return {
            "token": None,
            "proposals": [],
            "heads": {},
            "guards": {},
            "broken": "",
            "checks": "",
            **found,
        }

    def change(self, **values: Any) -> None:
        """Write some of it anew."""
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({**self.state(), **values}))
        new.rename(self._file)

    async def token(
        self, repository: Repository, agent: str, *, workflows: bool = False
    ) -> str | None:
        token: str | None = self.state()["token"]
        if token is not None and self._vault is not None:
            self._vault.register(token)
        return token

    async def workflow_refusal(self, repository: Repository, agent: str) -> str:
        return ""

    async def author(self, agent: str) -> Author | None:
        return BOT

    async def repositories(self, agent: str) -> Sequence[str]:
        return ()

    async def propose(self, proposal: Proposal) -> str:
        state = self.state()
        if state["broken"]:
            raise RepositoryError(state["broken"])
        known = state["proposals"]
        same = [p for p in known if (p["head"], p["base"]) == (proposal.head, proposal.base)]
        if same:
            same[0].update(title=proposal.title, body=proposal.body, updates=same[0]["updates"] + 1)
        else:
            number = len(known) + 1
            link = f"https://forge.example.com/{proposal.repository.name}/pull/{number}"
            known.append({**asdict(proposal), "link": link, "updates": 0})
        self.change(proposals=known)
        return str((same or known)[-1 if not same else 0]["link"])

    async def judged(self, repository: Repository, agent: str, branch: str) -> Judged | None:
        return None

    async def review(self, submission: Submission) -> str | None:
        return None

    async def examine(self, repository: Repository, agent: str, branch: str) -> Examined | None:
        state = self.state()
        found = [each for each in state["proposals"] if each["head"] == branch]
        if not found:
            return None
        excerpt = f"tests ({state['checks']})" if state["checks"] == "failed" else ""
        return Examined("", found[0]["link"], Judged(state["checks"]), excerpt=excerpt)

    async def head(self, session: Session) -> PullHead | None:
        found = self.state()["heads"].get(str(session.place))
        if found is None:
            return None
        return PullHead(found["branch"], found["commit"])

    async def pull(self, repository: Repository, agent: str, number: int) -> PullHead | None:
        known = self.state()["proposals"]
        if not 0 < number <= len(known):
            return None
        found = known[number - 1]
        return PullHead("", f"refs/heads/{found['head']}", found["base"], found["head"])

    async def guard(self, repository: Repository, agent: str, branch: str) -> str:
        return str(self.state()["guards"].get(branch, ""))
