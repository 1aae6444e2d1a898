"""Describes what a session is about that has no issue: a pull request, document or project; pure.

Its text is data for the agent, as everything that others wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from app.model.inbound import Heard
from app.services.linear import wording
from app.services.linear.payloads import Anchored


@dataclass(frozen=True, slots=True)
class Subject:
    """What a session is about."""

    kind: str
    title: str
    url: str
    text: str = ""


def read_subject(data: dict[str, Any]) -> Subject | None:
    """Read what a session is about from Linear's answer; None if it is about nothing else."""
    session = Anchored.model_validate(data["agentSession"])
    if (pull := session.pull_request) is not None:
        return Subject("pull request", f"#{pull.number:g} {pull.title}", pull.url)
    if (comment := session.comment) is None:
        return None
    if comment.document is not None and (document := comment.document.document) is not None:
        text = comment.document.content or ""
        return Subject("document", document.title, document.url, text)
    if (project := comment.project) is not None:
        return Subject("project", project.name, project.url, project.content or "")
    return None


def add_subject(heard: Heard, subject: Subject) -> Heard:
    """Tell an agent what a session is about, unless Linear's own summary has it."""
    about = f"{subject.kind.capitalize()}: {subject.title}\n{subject.url}"
    text = "" if subject.text and subject.text in heard.context else subject.text
    is_unnamed = heard.text == wording.HANDLE_UNNAMED
    return replace(
        heard,
        text=wording.HANDLE.format(kind=subject.kind) if is_unnamed else heard.text,
        title=heard.title or subject.title,
        link=subject.url,
        context="\n\n".join(filter(None, (about, text, heard.context))),
    )
