"""A person's folder after an agent's turn: the page shows what the person's own git shows."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.rig import place_files
from tests.support.git_server import git
from tests.support.observe import Observed
from tests.support.platform import Platform

WORK = """\
echo seen > seen.txt
mkdir -p .claude ~/.config/git
echo '{}' > .claude/settings.local.json
echo '*' > ~/.config/git/ignore
"""


def test_the_page_lists_what_the_persons_git_lists(installed: Kit, site: Path) -> None:
    folder = site / "project"
    git(site, "init", "-q", str(folder))
    (folder / "work.sh").write_text(WORK)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "First")
    with Model() as model, Platform() as platform:
        entry = {installed.name: installed.entry(model.url)}
        settings = {"PATH": installed.path, "GITHUB_REPO": f"folder:{folder}"}
        bridge = Observed(site / "bridge", platform, entry, settings)
        bridge.folder.mkdir()
        place_files(installed, bridge.data_dir / "homes" / installed.name, model)
        with bridge:
            number = bridge.begin("t1", "run sh work.sh", installed.name)
            (ask,) = bridge.open_asks()
            ((options,),) = bridge.rows("select options from ask where id = ?", ask)
            # Some agents write settings of their own into the folder when they are told "always".
            allow = sorted(each["id"] for each in json.loads(options) if "allow" in each["kind"])
            bridge.answer(ask, allow[0], installed.name)
            bridge.end("t1", number, installed.name)
            page = bridge.http.get("/workspace/1").text

    listed = git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()
    found = re.findall(r'<h3 tabindex="-1">(.*?)</h3>', page)
    shown = {html.unescape(re.sub("<[^>]*>", "", each)) for each in found}
    assert shown == {line[3:] for line in listed}
    assert shown >= {"seen.txt", ".claude/settings.local.json"}
    assert "settings of Claude Code" in page
