"""Whatever an agent plants in its clone or pushes, nothing of it runs or is read in the bridge.

Every planted command tries to leave a canary where only the bridge could write it: from inside the
sandbox that place cannot be reached.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from app.children.sandbox import Unavailable
from app.errors import RepositoryError
from app.model.proposals import is_branch
from app.model.workspaces import Clone
from tests.support.git_server import git
from tests.support.variants import quick
from tests.support.yard import FOUND, Yard, open_yard

BRANCH = "agent/demo/web-t1"

pytestmark = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent's isolation cannot be tried"
)

HOOKS = [
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit"),
    *("prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge"),
    *("pre-push", "pre-receive", "update", "post-receive", "post-update", "pre-auto-gc"),
    *("reference-transaction", "push-to-checkout", "post-rewrite", "fsmonitor-watchman"),
    *("post-index-change", "proc-receive", "sendemail-validate", "pre-rebase"),
]
SETTINGS = {
    "core.fsmonitor": "$RUN",
    "core.hooksPath": "$PWD/.planted",
    "core.sshCommand": "$RUN",
    "core.pager": "$RUN",
    "pager.diff": "$RUN",
    "core.editor": "$RUN",
    "sequence.editor": "$RUN",
    "core.askPass": "$RUN",
    "core.gitProxy": "$RUN",
    "core.alternateRefsCommand": "$RUN",
    "core.attributesFile": "$PWD/.planted/attributes",
    "credential.helper": "!$RUN",
    "diff.external": "$RUN",
    "gpg.program": "$RUN",
    "alias.status": "!$RUN",
    "alias.commit": "!$RUN",
    "alias.push": "!$RUN",
    "alias.rev-parse": "!$RUN",
    "remote.origin.receivepack": "$RUN",
    "remote.origin.uploadpack": "$RUN",
    "remote.origin.pushurl": "ext::$RUN",
    "remote.origin.url": "ext::$RUN",
    "remote.origin.vcs": "ext",
    "remote.origin.proxy": "http://127.0.0.1:9",
    "url.ext::$RUN.pushInsteadOf": "/",
    "protocol.ext.allow": "always",
    "uploadpack.packObjectsHook": "$RUN",
    "interactive.diffFilter": "$RUN",
    "trailer.session.command": "$RUN",
    "include.path": "$PWD/.planted/config",
    "submodule.x.update": "!$RUN",
    "core.worktree": "$OUTSIDE",
    "commit.template": "/etc/hostname",
    "merge.ours.driver": "$RUN",
    "transfer.credentialsInUrl": "allow",
    "lfs.customtransfer.agent-bridge.path": "$RUN",
    "lfs.customtransfer.agent-bridge.args": "$OUTSIDE",
    "lfs.url": "ext::$RUN",
    "lfs.storage": "$OUTSIDE",
    "filter.lfs.process": "$RUN",
}
DRIVERS = {
    "filter.x.clean": "*.txt filter=x",
    "filter.x.smudge": "*.txt filter=x",
    "filter.x.process": "*.txt filter=x",
    "diff.x.textconv": "*.txt diff=x",
    "diff.x.command": "*.txt diff=x",
    "merge.x.driver": "*.txt merge=x",
}
SCRIPTS = {
    "a link in place of .git": "mv .git ../elsewhere 2>/dev/null; rm -rf .git; ln -s $OUTSIDE .git",
    "a file in place of .git": "rm -rf .git; echo gitdir: $OUTSIDE > .git",
    "a link in place of the configuration": "ln -sf $OUTSIDE/config .git/config",
    "a link in place of the index": "ln -sf $OUTSIDE/index .git/index",
    "a link in place of a ref": "ln -sf $OUTSIDE/ref .git/refs/heads/x",
    "a link in place of the message": "ln -sf $OUTSIDE/message .git/COMMIT_EDITMSG",
    "a link in place of the large files": "rm -rf .git/lfs; ln -s $OUTSIDE .git/lfs; "
    "echo '*.txt filter=lfs' > .gitattributes; "
    "printf '[lfs]\\n\\turl = ext::%s\\n' $RUN > .lfsconfig",
    "alternates elsewhere": "echo $OUTSIDE/objects >> .git/objects/info/alternates",
    "a replaced object": "git replace HEAD $(git commit-tree -m x HEAD^{tree})",
    "a graft": "git rev-parse HEAD > .git/info/grafts",
    "a bare repository in the tree": "git init -q --bare inner; git -C inner config core.fsmonitor "
    "$RUN; echo $RUN > inner/hooks/post-checkout",
    "a repository in the tree": "git init -q inner; git -C inner config core.fsmonitor $RUN",
    "links out of the tree": "ln -s /etc/passwd a; ln -s $OUTSIDE b; ln -s / c; echo x > b/x",
    "a pipe in the tree": "mkfifo pipe",
    "a submodule by ext": "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = ext::%s\\n' $RUN "
    "> .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),x",
    "a submodule by file": "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = file://%s\\n' "
    "$OUTSIDE > .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),x",
    "odd file names": "touch -- -rf '--upload-pack=x' '$(touch x)' '`touch x`' 'a;b' 'a\"b' 'a b' "
    "\"$(printf 'a\\nb')\" \"$(printf 'a\\033[2Jb')\" ':(top)x' '\\x'",
    "odd branch": "git checkout -q -b '$(touch${IFS}x)'",
    "a broken index": "head -c 100 /dev/urandom > .git/index",
    "a broken head": "echo garbage > .git/HEAD",
    "no objects": "rm -rf .git/objects",
    "a sparse index": "git sparse-checkout set nothing",
    "a rebase under way": "mkdir .git/rebase-merge; git checkout -q --detach",
    "locks": "touch .git/index.lock .git/HEAD.lock .git/config.lock",
}


def plant(setting: str, value: str) -> str:
    return f'git config --local "{setting}" "{value}"'


def attributes(setting: str, line: str) -> str:
    return f"{plant(setting, '$RUN')}; echo '{line}' >> .gitattributes"


def together(*cases: str) -> str:
    return "\n".join(CASES[name] for name in cases)


CASES = {
    **{f"hook {name}": f"cp $RUN .git/hooks/{name}; cp $RUN .planted/{name}" for name in HOOKS},
    **{f"setting {name}": plant(name, value) for name, value in SETTINGS.items()},
    **{f"driver {name}": attributes(name, line) for name, line in DRIVERS.items()},
    **SCRIPTS,
}
# After these git cannot do its work any more, so that nothing else would be tried beside them.
BREAKING = [
    *("setting core.worktree", "a link in place of .git", "a file in place of .git"),
    *("a link in place of the configuration", "a broken index", "no objects", "locks"),
]
PLANTS = {
    "all hooks": together(*(name for name in CASES if name.startswith("hook "))),
    "all settings": together(
        *(name for name in CASES if name.startswith("setting ") and name not in BREAKING)
    ),
    "all drivers": together(*(name for name in CASES if name.startswith("driver "))),
    "all scripts": together(*(name for name in SCRIPTS if name not in BREAKING)),
    **{name: CASES[name] for name in BREAKING},
}
PREPARE = """\
export OUTSIDE={outside} RUN=$PWD/.planted/run
mkdir -p .planted
printf '#!/bin/sh\\ntouch {outside}/canary\\ncat\\n' > $RUN; chmod +x $RUN
printf '[core]\\n\\tfsmonitor = %s\\n' $RUN > .planted/config
echo changed > changed.txt
"""


async def live_with(yard: Yard, clone: Clone) -> None:
    """Do with a clone all that the bridge ever does with one."""
    checkouts = yard.checkouts
    base = yard.server.head("acme/app", "main")
    with suppress(RepositoryError):
        await checkouts.changes(clone, start=base, sent="")
    with suppress(RepositoryError):
        gathered = await checkouts.gather(clone, "What was left")
        await checkouts.push(clone, gathered.commit)
        await checkouts.conflicts(clone, "main", gathered.commit)
    await checkouts.unshipped(clone, sent="", start=base)
    with suppress(RepositoryError):
        await yard.open(clone, fresh=False)


def fingerprint(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def outside_of(folder: Path) -> Path:
    """Make a folder that only the bridge can write, with a repository in it."""
    outside = folder / "person" / "outside"
    git(folder, "init", "-q", "--bare", str(outside))
    return outside


@pytest.mark.long
@pytest.mark.parametrize("script", quick(3, PLANTS))
async def test_nothing_that_is_planted_in_a_clone_reaches_the_bridge(
    tmp_path: Path, script: str
) -> None:
    await endure(tmp_path, script)


@pytest.mark.slow
@pytest.mark.parametrize("script", CASES.values(), ids=CASES)
async def test_nothing_that_is_planted_alone_reaches_the_bridge(
    tmp_path: Path, script: str
) -> None:
    await endure(tmp_path, script)


async def endure(tmp_path: Path, script: str) -> None:
    """Plant something in a clone, do all that is ever done with one, and look what happened."""
    async with open_yard(tmp_path) as yard:
        outside = outside_of(tmp_path)
        before, main = fingerprint(outside), yard.server.head("acme/app", "main")
        clone = yard.clone()
        await yard.open(clone)
        await yard.do(clone, PREPARE.format(outside=outside) + script)

        await live_with(yard, clone)
        await yard.checkouts.remove(clone.folder)

        assert fingerprint(outside) == before
        assert yard.server.head("acme/app", "main") == main
        assert set(yard.server.branches("acme/app")) <= {"main", BRANCH}
        assert not clone.folder.exists()


TREES = {
    "a tree with .git in it": "100644 blob $B\\t.git",
    "a tree with .GIT in it": "100644 blob $B\\t.GIT",
    "a tree with git~1 in it": "100644 blob $B\\tgit~1",
    "a tree with dots in it": "040000 tree $T\\t..",
    "a link called .gitmodules": "120000 blob $B\\t.gitmodules",
}


@pytest.mark.parametrize("line", TREES.values(), ids=TREES)
async def test_a_commit_that_would_harm_whoever_checks_it_out_is_not_taken(
    tmp_path: Path, line: str
) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        await yard.open(clone)
        await yard.do(
            clone,
            "B=$(echo x | git hash-object -w --stdin); T=$(git rev-parse HEAD^{tree}); "
            f'printf "{line}\\n" | git mktree > tree; git reset -q --hard '
            "$(git commit-tree -p HEAD -m x $(cat tree)) -- 2>/dev/null; "
            f"git update-ref refs/heads/{BRANCH} $(git commit-tree -p HEAD -m x $(cat tree))",
        )

        status, said = await yard.do(clone, f"git push origin {BRANCH}")

        assert status != 0
        assert "unpack" in said or "fsck" in said or "index-pack" in said
        assert yard.server.branches("acme/app") == ["main"]


ODD_BRANCHES = [
    *("$(touch${IFS}x)", "`touch`", ";touch", "a'b", 'a"b', "a&b|c", "é-ñ", "-n/x"),
    *("x/--upload-pack=y", "{a}"),
]


@pytest.mark.slow
async def test_a_branch_with_an_odd_name_is_only_a_name(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        head, bare = yard.server.head("acme/app", "main"), yard.server.path("acme/app")
        for branch in ODD_BRANCHES:
            git(bare, "update-ref", f"refs/heads/{branch}", head)
        moved = [branch for branch in ODD_BRANCHES if await pushes(yard, branch)]

        assert sorted(yard.server.branches("acme/app")) == sorted([*ODD_BRANCHES, "main"])
        assert moved == [branch for branch in ODD_BRANCHES if is_branch(branch)]


async def pushes(yard: Yard, branch: str) -> bool:
    """Open a branch, change something and push it; says whether that went well."""
    clone = yard.clone(ODD_BRANCHES.index(branch) + 1, way="existing", branch=branch)
    before = yard.server.head("acme/app", branch)
    with suppress(RepositoryError):
        await yard.open(clone)
        await yard.do(clone, f"echo mine > b.txt; git add .; git commit -qm {clone.folder.name}")
        await yard.checkouts.push(clone, await head_of(yard, clone))
    return yard.server.head("acme/app", branch) != before


async def head_of(yard: Yard, clone: Clone) -> str:
    return (await yard.checkouts.gather(clone, "Mine")).commit


@pytest.mark.parametrize(
    "url", ["ext::sh -c touch% canary", "-oProxyCommand=touch", "fd::17", "git://127.0.0.1/x", "/x"]
)
async def test_a_remote_of_another_kind_is_refused(tmp_path: Path, url: str) -> None:
    async with open_yard(tmp_path) as yard:
        clone = replace(yard.clone(), repository=replace(yard.repository(), url=url))

        with pytest.raises(RepositoryError, match="does not support"):
            await yard.open(clone)
