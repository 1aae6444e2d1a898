"""Fetches into mirrors: how far back, with or without the content of files, and single objects."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from app.errors import GitFailed
from app.model.workspaces import Repository, Target
from app.repos import partial
from app.repos.git import Access, Git
from app.repos.remote import Tokens, access_to

logger = logging.getLogger(__name__)

_LATEST: Final = "--depth=50"
"""What a shallow mirror begins with: enough to see what happened lately, little to fetch."""
_EVERYTHING: Final = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches what mirrors lack."""

    git: Git
    tokens: Tokens | None
    person: Mapping[str, str]
    shallow: Collection[Target] = ()
    partial: Collection[Target] = ()

    async def fetch(
        self,
        repository: Repository,
        agent: str | None,
        mirror: Path,
        *also: str,
        is_new: bool = False,
        whole: bool = False,
    ) -> None:
        """Fetch all branches, and further refs or commits if named; all files with `whole`.

        Raises:
            GitFailed: git cannot do it.
        """
        access = await self.access(repository, agent)
        was_filtered = partial.is_filtered(mirror)
        filtered = not whole and repository in self.partial and (is_new or was_filtered)
        refs = [f"+{ref}:{ref if ref.startswith('refs/') else f'refs/kept/{ref}'}" for ref in also]
        words = await self.git.run_for_stderr(
            mirror,
            *("fetch", "--quiet", "--prune", "--force", "--no-write-fetch-head", "--no-tags"),
            *(f"--filter={partial.FILTER}",) * filtered,
            *("--refetch",) * (was_filtered and not filtered),
            *(*self._depth(repository, mirror, is_new=is_new), "--", repository.url),
            *(*self._wanted(repository), *refs),
            access=with_promise(access, repository) if filtered else access,
        )
        if filtered and is_new and not partial.was_heeded(words):
            logger.warning("the server of %s does not support partial clones", repository.name)
            filtered = False
        elif filtered != was_filtered:
            partial.note(mirror, filtered=filtered)
        listed = await self.git.run(
            mirror, "ls-remote", "--symref", "--", repository.url, "HEAD", access=access
        )
        head = re.match(rb"ref: (refs/heads/\S+)\tHEAD\n", listed)
        if head is not None:
            await self.git.run(mirror, "symbolic-ref", "HEAD", head[1].decode())
        if filtered:
            await self._fetch_needed(repository, agent, mirror, is_new=is_new)

    async def access(self, repository: Repository, agent: str | None) -> Access:
        """Get access to a remote, anonymous without an agent."""
        return await access_to(repository, agent, self.tokens, self.person)

    async def _fetch_needed(
        self, repository: Repository, agent: str | None, mirror: Path, *, is_new: bool
    ) -> None:
        """Fetch what is always needed; everything, if the server does not serve single files."""
        names = await partial.needed(self.git, mirror, is_new=is_new)
        try:
            await self.fetch_objects(repository, agent, mirror, names)
        except GitFailed as error:
            # Later the cause may only be that one machine of the server is behind the others.
            if not is_new or not partial.is_refusal(error.words):
                raise
            logger.warning("the server of %s does not serve single objects", repository.name)
            await self.fetch(repository, agent, mirror, whole=True)

    async def fetch_objects(
        self, repository: Repository, agent: str | None, mirror: Path, names: Iterable[str]
    ) -> None:
        """Fetch those objects that are missing, in one request."""
        lacking = await partial.missing(self.git, mirror, names)
        if lacking:
            access = with_promise(await self.access(repository, agent), repository)
            # What is already here does not help the server to find what is missing.
            settings = {**access.settings, "fetch.negotiationAlgorithm": "noop"}
            await self.git.run(
                mirror,
                *("fetch", "--quiet", "--no-write-fetch-head", "--no-tags"),
                *(f"--filter={partial.FILTER}", "--stdin", "--", repository.url),
                access=replace(access, settings=settings),
                given="".join(f"{name}\n" for name in lacking).encode(),
            )

    def _depth(self, repository: Repository, mirror: Path, *, is_new: bool) -> tuple[str, ...]:
        """Tell how far back a fetch goes.

        A shallow mirror begins with the latest commits and then grows as the branches do: cutting
        it again would remove what clones and the remote have in common.
        """
        if repository in self.shallow:
            return (_LATEST,) if is_new else ()
        return ("--unshallow",) if (mirror / "shallow").exists() else ()

    def _wanted(self, repository: Repository) -> tuple[str, ...]:
        # Every tag would bring the files of another release.
        return _EVERYTHING[:1] if repository in self.shallow else _EVERYTHING


def with_promise(access: Access, repository: Repository) -> Access:
    """Let one command know that what is missing can be fetched from the remote."""
    return replace(access, settings={**access.settings, **partial.promise(repository.url)})
