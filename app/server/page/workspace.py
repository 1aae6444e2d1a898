"""Serves a workspace: its files to read and to download, and its changes, file by file.

An agent wrote what is there: no link is followed, nothing is run, everything is bounded, and a file
is never more than data. The parts of one page must fit together although an agent goes on working:
a page names the digest of the changes it shows, and gets its later parts from those.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from pathlib import PurePosixPath
from typing import Annotated, BinaryIO, Final
from urllib.parse import quote, unquote_to_bytes

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.convertors import PathConvertor, register_url_convertor

from app.agents.catalog import settings_owner
from app.children.tree import FolderEntry, Tree
from app.core.runtime import Runtime
from app.errors import NotFound
from app.model.conversations import path_of
from app.model.text import HEAD_BYTES, UNKNOWN, picture_type, size_words
from app.model.types import Session
from app.server.elsewhere import fetch_elsewhere
from app.server.login import Visitor, visitor
from app.server.page import queries
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import render
from app.server.page.view.workspace import (
    SHOWN_BYTES,
    Folder,
    Listed,
    WorkspaceChanges,
    WorkspacePage,
    address_of,
    count_words,
    crumbs_of,
    in_order,
    name_of,
    open_file,
    piece,
    read,
)
from app.server.site import RuntimeOf

ENTRIES: Final = 2_000
"""Names of one folder that are listed: more than people look through."""
SCRATCH_FILES: Final = 500
"""Files of a scratch folder that are listed with those of its folders."""
SCRATCH_FOLDERS: Final = 200
"""Folders that are looked into for that."""
PIECE_BYTES: Final = 256 * 1024
KEPT: Final = 8
"""Changes that are kept for pages that are being read, each at most some megabytes."""
_HIDDEN: Final = ".git"
_ROOT: Final = PurePosixPath()

router = APIRouter(include_in_schema=False, dependencies=[Depends(fetch_elsewhere)])
Who = Annotated[Visitor, Depends(visitor)]


class _AnyPath(PathConvertor):
    """Any path below: a file's name may have several lines."""

    regex = "(?s:.*)"


register_url_convertor("any_path", _AnyPath())


@router.get("/workspace/{session}/files/{path:any_path}")
async def read_files(request: Request, runtime: RuntimeOf, _who: Who, session: int) -> HTMLResponse:
    """Show a folder of a workspace, or a file with its folder."""
    found, shown = workspace_of(runtime, session)
    tree, path = tree_of(runtime, found), _path(request, f"/workspace/{session}/files/")
    assert runtime.workspaces is not None
    folder = await asyncio.to_thread(_look, tree, path, runtime.workspaces.redact)
    return HTMLResponse(await asyncio.to_thread(render.files, shown, folder), headers=HEADERS)


@router.get("/workspace/{session}/raw/{path:any_path}")
async def read_raw(request: Request, runtime: RuntimeOf, _who: Who, session: int) -> Response:
    """Serve a file of a workspace as data."""
    found, _ = workspace_of(runtime, session)
    tree, path = tree_of(runtime, found), _path(request, f"/workspace/{session}/raw/")
    try:
        file = await asyncio.to_thread(tree.open, path)
    except OSError as error:
        raise NotFound("file", name_of(path)) from error
    head = await asyncio.to_thread(file.peek, HEAD_BYTES)  # type: ignore[attr-defined]  # buffered
    shown = picture_type(head[:HEAD_BYTES])
    how, name = "inline" if shown else "attachment", quote(name_of(path), safe="")
    return StreamingResponse(
        _pieces(file),
        media_type=shown or UNKNOWN,
        headers={
            "Cache-Control": "no-store",
            "Content-Disposition": f"{how}; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


def workspace_of(runtime: Runtime, number: int) -> tuple[Session, WorkspacePage]:
    """Look up a session and describe where it works.

    Raises:
        NotFound: there is no such session.
    """
    session = runtime.stores.sessions.session(number)
    if session is None or runtime.workspaces is None:
        raise NotFound("session", number)
    return session, WorkspacePage(
        session=session.id,
        title=session.title or str(session.key),
        agent=queries.roster_of(runtime)[session.key.agent].title,
        thread=path_of(session.place),
        view=runtime.workspaces.describe(session),
        assets=addresses(),
    )


async def list_scratch(runtime: Runtime, session: Session) -> Folder:
    """List the files of a workspace without a repository, also those in its folders."""
    try:
        tree = tree_of(runtime, session)
    except NotFound:
        return Folder((), (), count=count_words(0, more=False))
    return await asyncio.to_thread(_scratch, tree)


def _scratch(tree: Tree) -> Folder:
    listed: list[Listed] = []
    waiting, looked = [_ROOT], 0
    while waiting and looked < SCRATCH_FOLDERS and len(listed) < SCRATCH_FILES:
        here = waiting.pop(0)
        looked += 1
        for entry in sorted(_entries(tree, here), key=lambda each: each.name):
            path = here / entry.name
            if entry.is_folder:
                waiting.append(path)
            else:
                listed.append(_listed(path, entry, name=path))
    more = bool(waiting) or len(listed) > SCRATCH_FILES
    listed = listed[:SCRATCH_FILES]
    count = sum(each.plain for each in listed)
    return Folder((), in_order(listed), more, count=count_words(count, more=more))


def _look(tree: Tree, path: PurePosixPath, redact: Callable[[str], str]) -> Folder:
    """Read a folder, or a file with its folder.

    Raises:
        NotFound: there is neither.
    """
    found = tree.stat(path)
    if found is None:
        raise NotFound("file", name_of(path))
    entry = FolderEntry(path.name, found)
    if not (entry.is_folder or entry.is_file):
        raise NotFound("file", name_of(path))
    above = path if entry.is_folder else path.parent
    entries = _entries(tree, above)
    listed = in_order(_listed(above / each.name, each, current=path) for each in entries)
    opened = None
    if entry.is_file:
        try:
            content = tree.read(path, SHOWN_BYTES)
        except OSError as error:
            raise NotFound("file", name_of(path)) from error
        shown = redact(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        opened = open_file(path, shown, cut=found.st_size > len(content), size=found.st_size)
    return Folder(crumbs_of(path), listed[:ENTRIES], len(listed) > ENTRIES, opened)


def _entries(tree: Tree, path: PurePosixPath) -> list[FolderEntry]:
    try:
        return [each for each in tree.entries(path, ENTRIES + 1) if each.name != _HIDDEN]
    except OSError:  # it was removed meanwhile
        return []


def _listed(
    path: PurePosixPath,
    entry: FolderEntry,
    *,
    name: PurePosixPath | None = None,
    current: PurePosixPath = _ROOT,
) -> Listed:
    shown = (
        name_of(path)
        if name is None
        else "/".join(name_of(PurePosixPath(each)) for each in name.parts)
    )
    return Listed(
        shown,
        address_of(path),
        size_words(entry.status.st_size) if entry.is_file else "",
        folder=entry.is_folder,
        link=entry.is_link,
        current=path == current,
    )


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece
    finally:
        file.close()


def tree_of(runtime: Runtime, session: Session) -> Tree:
    """Return the files of a session's workspace.

    Raises:
        NotFound: it has none.
    """
    folder = None if runtime.workspaces is None else runtime.workspaces.folder(session)
    if folder is None or not folder.is_dir():
        raise NotFound("workspace", session.id)
    return Tree(folder)


def _path(request: Request, before: str) -> PurePosixPath:
    """Read the path of a file from an address, byte by byte: names need not be text."""
    raw: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    path = unquote_to_bytes(raw.partition(b"?")[0])[len(before) :]
    parts = path.split(b"/")
    if b"\0" in path or b".." in parts or _HIDDEN.encode() in parts or path.startswith(b"/"):
        raise NotFound("file", name_of(PurePosixPath(path.decode(errors="replace"))))
    return PurePosixPath(os.fsdecode(path))


_kept: OrderedDict[str, WorkspaceChanges] = OrderedDict()


@router.get("/workspace/{session}")
async def read_workspace(runtime: RuntimeOf, _who: Who, session: int) -> HTMLResponse:
    """Show what changed where a session works; without a repository, its files."""
    found, shown = workspace_of(runtime, session)
    if shown.view.kind in {"empty", "remote"}:
        folder = await list_scratch(runtime, found)
        return HTMLResponse(render.files(shown, folder), headers=HEADERS)
    made = await _changes(runtime, found)
    page = await asyncio.to_thread(render.changes, shown, made)
    return HTMLResponse(page, headers=HEADERS)


@router.get("/workspace/{session}/change")
async def read_change(
    runtime: RuntimeOf,
    _who: Who,
    session: int,
    of: str,
    file: Annotated[int, Query(ge=0)],
    after: Annotated[int, Query(ge=0)] = 0,
) -> HTMLResponse:
    """Show the lines of one changed file, of the changes that a page has the digest of."""
    found, shown = workspace_of(runtime, session)
    made = _kept.get(of) or await _changes(runtime, found)
    if made.digest != of or file >= len(made.files):
        return HTMLResponse(render.change_gone(shown), headers=HEADERS)

    def rendered() -> str:
        return render.change_lines(shown, of, file, piece(made.files[file], after))

    return HTMLResponse(await asyncio.to_thread(rendered), headers=HEADERS)


async def _changes(runtime: Runtime, session: Session) -> WorkspaceChanges:
    """Read the changes of a session, and keep them for the later parts of a page."""
    assert runtime.workspaces is not None
    found = await runtime.workspaces.changes(session)
    made = await asyncio.to_thread(read, found, settings_owner)
    _kept[made.digest] = made
    _kept.move_to_end(made.digest)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return made
