"""Reads what was said on an issue or pull request, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.markdown.hidden import strip
from app.model.types import Earlier
from app.services.github.api import GithubApi
from app.services.github.attachments import Hosts, files_in
from app.services.github.names import Identities, Name, Spot
from app.services.github.payloads import Account, Comment, Issue, Review
from app.services.github.reviews import strip_hunk


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
    """Read what was said before a message, except by the reader.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
    """
    issue = await api.issue(spot)
    said = [*_issue(issue), *map(_comment, await api.comments(spot))]
    if issue.is_pull:
        said += [each for review in await api.reviews(spot) for each in _review(review)]
        said += map(_line_comment, await api.line_comments(spot))
    said.sort(key=lambda each: each.at)
    others = (each for each in _until(said, before) if _is_others(each, reader, us))
    return tuple(_to_earlier(each, us, spot, hosts) for each in others)


def _until(said: Sequence[_Said], before: str) -> Iterator[_Said]:
    """Leave out a message and what came after it; everything is before a message not found.

    An edit is newer than everything, wherever the message is.
    """
    stop = Name.parse(before)
    for each in said:
        if stop is None or not any(name.is_same(stop) for name in each.names):
            yield each
        elif not stop.at:
            return


def _is_others(said: _Said, reader: str, us: Identities) -> bool:
    return us.agent(said.account) != reader


def _to_earlier(said: _Said, us: Identities, spot: Spot, hosts: Hosts) -> Earlier:
    who = said.account or Account(id=0, login="ghost")
    files = files_in(strip(said.text).text, spot, said.origin or said.name, hosts)
    return Earlier(str(said.name), us.speaker(who), said.text, files)


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
    """Show a line comment with the last line that it is about."""
    number = comment.pull_request_review_id
    name = Name("review", number) if number is not None else Name("review-comment", comment.id)
    about = strip_hunk(comment.diff_hunk).rpartition("\n")[2]
    text = f"`{comment.path}`: `{about}`\n{comment.body or ''}"
    own = Name("review-comment", comment.id)
    return _Said(comment.created_at, name, comment.user, text, own)
