"""Looks up every pinned dependency in the published advisories, by pip-audit.

Ends with an error if one of them is known to be vulnerable, or if a lock file could not be looked
up. A dependency that the advisories do not know is said. Base images are not looked up: the
Dockerfile names them by tag.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-image.lock", "requirements-dev.lock")
SECONDS = 300.0


def main() -> int:
    """Audit all lock files."""
    found = [each for lock in LOCKS for each in audit(ROOT / lock)]
    lines, failed = report(found)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(failed)


def audit(lock: Path) -> list[dict[str, Any]]:
    """Return what pip-audit says of each dependency of a lock file."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes"]
    options = ["--disable-pip", "--format=json", "--progress-spinner=off"]
    run = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    try:
        return list(json.loads(run.stdout)["dependencies"])
    except (ValueError, KeyError):
        words = run.stderr.strip().splitlines() or ["no answer"]
        return [{"name": lock.name, "skip_reason": words[-1]}]


def report(found: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Put what was found into lines, and tell whether something is vulnerable or not known."""
    lines = {
        f"{each['name']} {each['version']}: {bug['id']}, mended in "
        f"{', '.join(bug['fix_versions']) or 'no version yet'}"
        for each in found
        for bug in each.get("vulns", ())
    }
    audited = {each["name"] for each in found if "vulns" in each}
    skipped = {each["name"] for each in found if "vulns" not in each}
    total = f"audit: {len(audited)} dependencies looked up, {len(lines)} advisories"
    unseen = [f"audit: {len(skipped)} could not be looked up from here"] if skipped else []
    is_blind = not audited or not skipped.isdisjoint(LOCKS)
    blind = ["audit: failed, run it where the advisories can be reached"] if is_blind else []
    return [*sorted(lines), total, *unseen, *blind], bool(lines) or is_blind


if __name__ == "__main__":
    sys.exit(main())
