"""What an App calls about checks: those of a commit, its statuses, and the App's own checks."""

from __future__ import annotations

from typing import Any

from sim.github.answers import Refused, Reply, invalid, not_found
from sim.github.calls import Asked, Routes
from sim.github.state import Check

STATUSES = {"queued", "in_progress", "completed"}
CONCLUSIONS = {
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "timed_out",
}
MOST_ACTIONS = 3
LENGTHS = {"label": 20, "description": 40, "identifier": 20}

LOGS = "/signed-logs/"
"""Where logs lie, for whoever was sent there."""

routes = Routes()


@routes.on("GET", "/repos/{owner}/{name}/commits/{sha}/check-runs", "checks", "read")
def _list(asked: Asked) -> Reply:
    found = [each for each in asked.repository.checks if each.sha == asked.part("sha")]
    if asked.request.parameter("filter", "latest") == "latest":
        found = list({(each.app and each.app.id, each.name): each for each in found}.values())
    page = asked.page([each.json(asked.repository) for each in found])
    return Reply(200, {"total_count": len(found), "check_runs": page.body}, page.headers)


@routes.on("GET", "/repos/{owner}/{name}/commits/{sha}/status", "statuses", "read")
def _statuses(asked: Asked) -> Reply:
    found = [each for each in asked.repository.statuses if each.sha == asked.part("sha")]
    states = {each.state for each in found}
    bad, waits = states & {"error", "failure"}, not states or "pending" in states
    shown = {
        "state": "failure" if bad else "pending" if waits else "success",
        "sha": asked.part("sha"),
        "total_count": len(found),
    }
    page = asked.page([each.json() for each in found])
    return Reply(200, shown | {"statuses": page.body}, page.headers)


@routes.on("GET", "/repos/{owner}/{name}/check-runs/{id}/annotations", "checks", "read")
def _annotations(asked: Asked) -> Reply:
    return asked.page(_found(asked).annotations)


@routes.on("GET", "/repos/{owner}/{name}/actions/jobs/{id}/logs", "actions", "read")
def _log(asked: Asked) -> Reply:
    run = _found(asked)
    if run.app is not None or not run.log:
        raise not_found()
    return Reply(302, None, {"location": f"{asked.github.api_url}{LOGS}{run.id}"})


@routes.on("POST", "/repos/{owner}/{name}/check-runs", "checks", "write")
def _create(asked: Asked) -> Reply:
    given = asked.request.data
    for name in ("name", "head_sha"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise invalid("CheckRun", name, f"{name} is missing")
    run = Check(asked.app, given["name"], given["head_sha"], asked.github.now())
    _take(run, given)
    asked.repository.checks.append(run)
    _answer_request(asked, run)
    return Reply(201, run.json(asked.repository))


@routes.on("PATCH", "/repos/{owner}/{name}/check-runs/{id}", "checks", "write")
def _change(asked: Asked) -> Reply:
    run = _found(asked)
    if run.app is not asked.app:
        raise Refused(403, "Invalid app_id: a check run is changed by its own App only")
    _take(run, asked.request.data)
    _answer_request(asked, run)
    return Reply(200, run.json(asked.repository))


def _take(run: Check, given: dict[str, Any]) -> None:
    """Change a check run as GitHub would, or refuse."""
    status = given.get("status", "completed" if "conclusion" in given else run.status)
    if status not in STATUSES:
        raise invalid("CheckRun", "status", "is not a status")
    conclusion = given.get("conclusion")
    if (status == "completed") != (conclusion in CONCLUSIONS):
        raise invalid("CheckRun", "conclusion", "belongs to what is completed")
    actions = given.get("actions", [])
    if len(actions) > MOST_ACTIONS:
        raise invalid("CheckRun", "actions", "are too many")
    for action in actions:
        for name, most in LENGTHS.items():
            if not 0 < len(action.get(name, "")) <= most:
                raise invalid("CheckRun", "actions", f"{name} is too long or missing")
    if run.status != "completed" or status == "completed":
        # What is completed stays so: GitHub takes the call and changes only what the run says.
        run.status, run.conclusion = status, conclusion
    run.actions = actions
    run.external_id = given.get("external_id", run.external_id)
    if "output" in given:
        if not all(given["output"].get(name) for name in ("title", "summary")):
            raise invalid("CheckRun", "output", "needs title and summary")
        run.output = given["output"]


def _answer_request(asked: Asked, run: Check) -> None:
    """Take a suite out of the queue once a run is completed that began after it was asked for."""
    asked_for = asked.repository.suites.get((asked.app.id, run.sha))
    if asked_for is not None and run.status == "completed" and run.id > asked_for:
        del asked.repository.suites[asked.app.id, run.sha]


def _found(asked: Asked) -> Check:
    for run in asked.repository.checks:
        if str(run.id) == asked.part("id"):
            return run
    raise not_found()
