"""Reads what was said on an issue or pull request, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.core.types import Earlier
from app.markdown.hidden import strip
from app.services.github.api import GithubApi
from app.services.github.attached import Hosts, files_in
from app.services.github.events import speaker_of, strip_hunk
from app.services.github.mentions import Identities
from app.services.github.names import Name, Spot
from app.services.github.payloads import Account, Comment, Issue, Review


@dataclass(frozen=True, slots=True)
class _Said:
    at: str
    name: Name
    account: Account | None
    text: str
    origin: Name | None = None
    """What holds the text, where that is only a part of what the name means."""

    @property
    def names(self) -> tuple[Name, ...]:
        return (self.name,) if self.origin is None else (self.name, self.origin)


async def read_earlier(
    api: GithubApi, spot: Spot, before: str, reader: str, us: Identities, *, hosts: Hosts
) -> Sequence[Earlier]:
    """Read what others than the reader said before a message.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
    """
    issue = await api.issue(spot)
    said = [*_issue(issue), *map(_comment, await api.comments(spot))]
    if issue.pull_request is not None:
        said += [each for review in await api.reviews(spot) for each in _review(review)]
        said += map(_line_comment, await api.line_comments(spot))
    said.sort(key=lambda each: each.at)
    others = (each for each in _until(said, before) if _is_others(each, reader, us))
    return tuple(_known(each, us, spot, hosts) for each in others)


def _until(said: Sequence[_Said], before: str) -> Iterator[_Said]:
    """Leave out a message and what came after it; one that is not there has all before it.

    What an edit says is younger than all of it, wherever it stands.
    """
    stop = Name.parse(before)
    for each in said:
        if stop is None or not any(name.is_same(stop) for name in each.names):
            yield each
        elif not stop.at:
            return


def _is_others(said: _Said, reader: str, us: Identities) -> bool:
    who = said.account
    return who is None or us.agent(bot_id=who.id, login=who.login, is_bot=who.is_bot) != reader


def _known(said: _Said, us: Identities, spot: Spot, hosts: Hosts) -> Earlier:
    who = said.account or Account(id=0, login="ghost")
    files = files_in(strip(said.text).text, spot, said.origin or said.name, hosts)
    return Earlier(str(said.name), speaker_of(who, us), said.text, files)


def _issue(issue: Issue) -> Iterator[_Said]:
    text = "\n\n".join(filter(None, (issue.title, issue.body)))
    yield _Said(issue.created_at, Name("issue", issue.number), issue.user, text)


def _comment(comment: Comment) -> _Said:
    return _Said(comment.created_at, Name("comment", comment.id), comment.user, comment.body or "")


def _review(review: Review) -> Iterator[_Said]:
    if (review.body or "").strip():
        at = review.submitted_at or ""
        yield _Said(at, Name("review", review.id), review.user, review.body or "")


def _line_comment(comment: Comment) -> _Said:
    """Show a comment on a line with the end of what it is about."""
    number = comment.pull_request_review_id
    name = Name("review", number) if number is not None else Name("review-comment", comment.id)
    about = strip_hunk(comment.diff_hunk).rpartition("\n")[2]
    text = f"`{comment.path}`: `{about}`\n{comment.body or ''}"
    own = Name("review-comment", comment.id)
    return _Said(comment.created_at, name, comment.user, text, own)
