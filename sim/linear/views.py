"""What the simulated Linear shows of its state: trees for GraphQL, payloads for webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sim.linear.records import (
    Activity,
    Anchor,
    App,
    Comment,
    Issue,
    LinearSession,
    Person,
    State,
    moment,
    new_id,
)
from sim.linear.uploads import Uploads
from sim.linear.workspace import Workspace

Item = TypeVar("Item")

_CONTENT = "AgentActivity{}Content"


class Views:
    """The workspace as an app sees it."""

    def __init__(self, workspace: Workspace, uploads: Uploads) -> None:
        self._workspace = workspace
        self._uploads = uploads

    def root(self, app: App) -> dict[str, Any]:
        """Show all that can be asked for, and done, as one app."""
        space = self._workspace
        return {
            "viewer": self.user(app.user),
            "user": lambda id: self.user(space.person(id)),  # noqa: A006 - Linear's name for it
            "issue": lambda id: self._issue(space.issue(id)),  # noqa: A006 - as above
            "agentActivity": lambda id: self._activity(*space.activity(id)),  # noqa: A006 - as above
            "agentSession": lambda id: self._session(space.session(id)),  # noqa: A006 - as above
            "agentSessions": self._sessions,
            "issueRepositorySuggestions": self._suggestions,
            "agentActivityCreate": lambda input: self._created(app, input),  # noqa: A006 - as above
            "agentSessionUpdate": lambda id, input: {  # noqa: A006 - as above
                "success": True,
                "agentSession": self._session(space.update(app, id, input)),
            },
            "agentSessionCreateOnIssue": lambda input: {  # noqa: A006 - as above
                "success": True,
                "agentSession": self._session(space.open_session(app, input)),
            },
            "commentDelete": self._delete_comment,
            "fileUpload": self._uploads.announce,
            "issueUpdate": lambda id, input: {  # noqa: A006 - as above
                "success": True,
                "issue": self._issue(space.update_issue(id, input)),
            },
        }

    def session_event(
        self, session: LinearSession, action: str, activity: Activity | None = None
    ) -> dict[str, Any]:
        """Show what a webhook says of a session."""
        event = {
            **self._envelope(session.app, "AgentSessionEvent", action),
            "agentSession": self._session_child(session),
        }
        if activity is not None:
            event["agentActivity"] = {
                "id": activity.id,
                "agentSessionId": session.id,
                "content": activity.content,
                "signal": activity.signal,
                "signalMetadata": activity.signal_metadata,
                "createdAt": moment(activity.created_at),
                "updatedAt": moment(activity.created_at),
                "userId": activity.user.id,
                "user": activity.user.child(),
            }
        if action == "created" and session.anchor is None:
            issue = session.issue
            event["promptContext"] = (
                f'<issue identifier="{issue.identifier}"><title>{issue.title}</title>'
                f"<description>{issue.description}</description></issue>"
            )
            event["guidance"] = [
                {"body": "Keep changes small.", "origin": {"type": "Organization", "name": "Acme"}}
            ]
            event["previousComments"] = self._thread(session)
        return event

    def notification(self, app: App, issue: Issue, kind: str, actor: Person) -> dict[str, Any]:
        """Show what a webhook says of something that concerns an agent."""
        event = self._envelope(app, "AppUserNotification", kind)
        event["notification"] = {
            "id": new_id(),
            "type": kind,
            "actorId": actor.id,
            "actor": actor.child(),
            "issueId": issue.id,
            "issue": self._issue_child(issue),
            "userId": app.user.id,
            "createdAt": event["createdAt"],
            "updatedAt": event["createdAt"],
        }
        return event

    def revoked(self, app: App) -> dict[str, Any]:
        """Tell an app that it was taken out of the workspace; that has no user any more."""
        envelope = self._envelope(app, "OAuthApp", "revoked")
        del envelope["appUserId"]
        return envelope

    def access_changed(self, app: App) -> dict[str, Any]:
        """Tell an app that it was let into the team."""
        envelope = self._envelope(app, "PermissionChange", "teamAccessChanged")
        added = [self._workspace.team_id]
        return {
            **envelope,
            "canAccessAllPublicTeams": False,
            "addedTeamIds": added,
            "removedTeamIds": [],
        }

    def user(self, person: Person) -> dict[str, Any]:
        """Show a user."""
        organization = {"id": self._workspace.id, "name": "Acme", "urlKey": "acme"}
        apps = self._workspace.apps.values()
        scope = next((app.scope for app in apps if app.user is person), "").split(",")
        return {
            "id": person.id,
            "name": person.name,
            "displayName": person.name.lower(),
            "email": person.child()["email"],
            "url": person.child()["url"],
            "active": person.active,
            "guest": person.guest,
            "app": person.app,
            "isAssignable": not person.app or "app:assignable" in scope,
            "isMentionable": not person.app or "app:mentionable" in scope,
            "organization": organization,
        }

    def _envelope(self, app: App, type_: str, action: str) -> dict[str, Any]:
        now = self._workspace.now()
        return {
            "type": type_,
            "action": action,
            "createdAt": moment(now),
            "organizationId": self._workspace.id,
            "oauthClientId": app.client_id,
            "appUserId": app.user.id,
            "webhookId": f"hook-{app.client_id}",
            "webhookTimestamp": int(now * 1000),
        }

    def _delete_comment(self, id: str) -> dict[str, Any]:  # noqa: A002 - Linear's name
        self._workspace.delete_comment(id)
        return {"success": True, "entityId": id}

    def _created(self, app: App, given: Mapping[str, Any]) -> dict[str, Any]:
        activity = self._workspace.act(app, given)
        session = self._workspace.session(given["agentSessionId"])
        return {"success": True, "agentActivity": self._activity(session, activity)}

    def _sessions(
        self,
        first: int = 50,
        after: str | None = None,
        orderBy: str = "createdAt",  # noqa: N803 - Linear's name
    ) -> dict[str, Any]:
        key = {"createdAt": "created_at", "updatedAt": "updated_at"}[orderBy]
        newest = reversed(self._workspace.sessions.values())
        ordered = sorted(newest, key=lambda s: getattr(s, key), reverse=True)
        begin = int(after or 0)
        shown = ordered[begin : begin + first]
        more = begin + first < len(ordered)
        page = {"hasNextPage": more, "endCursor": str(begin + len(shown))}
        return {"nodes": [self._session(each) for each in shown], "pageInfo": page}

    def _suggestions(
        self,
        issueId: str,  # noqa: N803 - Linear's names
        candidateRepositories: list[dict[str, str]],  # noqa: N803 - as above
        agentSessionId: str | None = None,  # noqa: N803 - as above
    ) -> dict[str, Any]:
        """Show what is likely among what was offered; the issue and the session must be there."""
        space = self._workspace
        space.issue(issueId)
        if agentSessionId is not None:
            space.session(agentSessionId)
        offered = {each["repositoryFullName"]: each["hostname"] for each in candidateRepositories}
        likely = {name: much for name, much in space.likely.items() if name in offered}
        return {
            "suggestions": [
                {"repositoryFullName": name, "hostname": offered[name], "confidence": confidence}
                for name, confidence in likely.items()
            ]
        }

    def _session(self, session: LinearSession) -> dict[str, Any]:
        dismissed = session.dismissed_at
        return {
            "id": session.id,
            "status": self._workspace.status(session),
            "createdAt": moment(session.created_at),
            "updatedAt": moment(session.updated_at),
            "dismissedAt": moment(dismissed) if dismissed is not None else None,
            "url": f"{session.issue.url}#agent-session-{session.id[:8]}",
            "appUser": self.user(session.app.user),
            "creator": self.user(session.creator) if session.creator else None,
            "comment": self._anchored(session),
            "pullRequest": _pull_request(session.anchor),
            "sourceComment": self._comment(session.source) if session.source else None,
            "issue": None if session.anchor else self._issue(session.issue),
            "plan": session.plan,
            "externalLinks": session.urls,
            "activities": lambda filter=None, **part: {  # noqa: A006 - Linear's name
                "nodes": [
                    self._activity(session, each)
                    for each in _part(
                        [each for each in session.activities if _fits(each, filter)], **part
                    )
                ]
            },
        }

    def _thread(self, session: LinearSession) -> list[dict[str, Any]] | None:
        """Show the thread that an agent was mentioned in, with the mention itself."""
        source = session.source or session.comment
        if source.user is None:
            return None
        root = source.thread or source
        thread = [each for each in session.issue.comments if root in (each, each.thread)]
        return [each.child(session.issue) for each in thread]

    def _session_child(self, session: LinearSession) -> dict[str, Any]:
        creator = session.creator
        return {
            "id": session.id,
            "appUserId": session.app.user.id,
            "organizationId": self._workspace.id,
            "status": session.status,
            "type": "commentThread",
            "createdAt": moment(session.created_at),
            "updatedAt": moment(session.updated_at),
            "creatorId": creator.id if creator else None,
            "creator": creator.child() if creator else None,
            "issueId": None if session.anchor else session.issue.id,
            "issue": None if session.anchor else self._issue_child(session.issue),
            "commentId": session.comment.id if session.comment.body else None,
            "comment": session.comment.child(session.issue) if session.comment.body else None,
            "sourceCommentId": session.source.id if session.source else None,
            "url": f"{session.issue.url}#agent-session-{session.id[:8]}",
        }

    def _issue(self, issue: Issue) -> dict[str, Any]:
        return {
            "id": issue.id,
            "identifier": issue.identifier,
            "title": issue.title,
            "description": issue.description,
            "url": issue.url,
            "team": {
                "id": self._workspace.team_id,
                "key": "ENG",
                "name": "Engineering",
                "states": lambda filter=None: {  # noqa: A006 - Linear's name
                    "nodes": [
                        _state(each)
                        for each in self._workspace.states
                        if filter is None or each.type == filter["type"]["eq"]
                    ]
                },
            },
            "state": _state(issue.state),
            "delegate": self.user(issue.delegate) if issue.delegate else None,
            "assignee": self.user(issue.assignee) if issue.assignee else None,
            "creator": self.user(issue.creator) if issue.creator else None,
            "botActor": None if issue.creator else {"id": "integration"},
            "parent": self._issue(issue.parent) if issue.parent else None,
            "comments": lambda **part: {
                "nodes": [self._comment(each) for each in _part(issue.comments, **part)]
            },
            "agentSessions": lambda first=50: {
                "nodes": [
                    self._session(each)
                    for each in self._workspace.sessions.values()
                    if each.issue is issue
                ][:first]
            },
            "attachments": lambda first=50: {
                "nodes": [
                    {"id": new_id(), "title": title, "subtitle": None, "url": url}
                    for title, url in issue.attachments.items()
                ][:first]
            },
        }

    def _issue_child(self, issue: Issue) -> dict[str, Any]:
        return {
            "id": issue.id,
            "identifier": issue.identifier,
            "title": issue.title,
            "description": issue.description,
            "url": issue.url,
            "teamId": self._workspace.team_id,
            "team": {"id": self._workspace.team_id, "key": "ENG", "name": "Engineering"},
        }

    def _comment(self, comment: Comment) -> dict[str, Any]:
        user = self.user(comment.user) if comment.user else None
        written = moment(comment.created_at)
        return {"id": comment.id, "body": comment.body, "createdAt": written, "user": user}

    def _anchored(self, session: LinearSession) -> dict[str, Any] | None:
        """Show the first comment of a session, with what it stands on."""
        anchor = session.anchor
        if not session.comment.body and (anchor is None or anchor.kind == "pullRequest"):
            return None
        of = {anchor.kind: anchor} if anchor else {}
        document, project = of.get("document"), of.get("project")
        return {
            **self._comment(session.comment),
            "documentContent": document
            and {
                "content": document.text,
                "document": {"title": document.title, "url": document.url},
            },
            "project": project
            and {"name": project.title, "content": project.text, "url": project.url},
        }

    def _activity(self, session: LinearSession, activity: Activity) -> dict[str, Any]:
        return {
            "id": activity.id,
            "createdAt": moment(activity.created_at),
            "ephemeral": activity.ephemeral,
            "signal": activity.signal,
            "user": self.user(activity.user),
            "agentSession": self._session(session),
            "content": {
                "__typename": _CONTENT.format(activity.type.capitalize()),
                "result": None,
                **activity.content,
            },
        }


def _part(items: Sequence[Item], first: int = 50, last: int | None = None) -> list[Item]:
    """Give a part of what is kept in order, as Linear does: the newest comes first."""
    ordered = list(reversed(items))
    return ordered[:first] if last is None else ordered[-last:]


def _fits(activity: Activity, wanted: Mapping[str, Any] | None) -> bool:
    """Tell whether an activity passes a filter."""
    wanted = wanted or {}
    since = wanted.get("createdAt", {}).get("gte")
    recent = since is None or activity.created_at >= datetime.fromisoformat(since).timestamp()
    return recent and activity.type == wanted.get("type", {"eq": activity.type})["eq"]


def _pull_request(anchor: Anchor | None) -> dict[str, Any] | None:
    if anchor is None or anchor.kind != "pullRequest":
        return None
    return {"number": 7.0, "title": anchor.title, "url": anchor.url}


def _state(state: State) -> dict[str, Any]:
    return {"id": state.id, "name": state.name, "type": state.type, "position": state.position}
