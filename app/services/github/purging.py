"""Takes a text out of an issue or pull request: out of the agent's own comments.

GitHub shows the history of edits to everyone, and that may hold what the comment no longer says. So
a comment that holds the text, or was edited, is deleted and written again. What cannot be deleted
is changed and named, and so is what others wrote.
"""

from __future__ import annotations

from collections.abc import Callable

from app.clock import Clock
from app.model.posts import Cleaned
from app.services.github import render
from app.services.github.api import GithubApi
from app.services.github.names import Name, Spot
from app.services.github.payloads import Account, Comment, Issue
from app.services.github.transport import retry_github
from app.vault import Vault


async def purge(
    api: GithubApi,
    spot: Spot,
    vault: Vault,
    clock: Clock,
    is_ours: Callable[[Account | None], bool],
) -> Cleaned:
    """Take what the vault knows out of a conversation.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
    """
    changed, left = 0, list[str]()

    async def clean(name: Name, comment: Comment) -> None:
        body = vault.redact(comment.body or "")
        await retry_github(clock, lambda: api.delete(spot, name))
        # The answer is in another comment.
        if not render.is_progress(body):
            await retry_github(clock, lambda: api.say(spot, body, under=comment.in_reply_to_id))

    issue = await retry_github(clock, lambda: api.issue(spot))
    said = [
        (Name("comment", each.id), each)
        for each in await retry_github(clock, lambda: api.comments(spot))
    ]
    if issue.is_pull:
        lines = await retry_github(clock, lambda: api.line_comments(spot))
        said += [(Name("review-comment", each.id), each) for each in lines]
        reviews = await retry_github(clock, lambda: api.reviews(spot))
        left += [each.html_url for each in reviews if vault.contains(each.body or "")]
    for name, comment in said:
        is_held = vault.contains(comment.body or "")
        if is_ours(comment.user) and (is_held or comment.updated_at != comment.created_at):
            await clean(name, comment)
            changed += 1
        elif is_held:
            left.append(comment.html_url)
    if vault.contains(f"{issue.title}\n{issue.body or ''}"):
        changed += await _clean_description(api, spot, vault, issue, is_ours)
        left.append(issue.html_url)
    return Cleaned(changed, tuple(left))


async def _clean_description(
    api: GithubApi,
    spot: Spot,
    vault: Vault,
    issue: Issue,
    is_ours: Callable[[Account | None], bool],
) -> bool:
    """Change what the agent's own pull request says; its history stays."""
    if not (issue.is_pull and is_ours(issue.user)):
        return False
    words = {"title": vault.redact(issue.title), "body": vault.redact(issue.body or "")}
    await api.change_pull(spot, words)
    return True
