"""Translates settings for the parts: agents' terms, limits, access, repositories, addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

import app
from app.config import Configuration
from app.core.repositories.directory import Directory, SetFor
from app.errors import ConfigurationError
from app.mcp_server.endpoints import PATH as TOOLS_PATH
from app.model.keys import PlaceKey
from app.model.workspaces import Target
from app.server.local_socket import SOCKET_HOST
from app.server.login_links import private_host
from app.services import find_area, find_repository

_LOCAL_HOSTS: Final = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::")  # noqa: S104 - read, not bound
"""Listen addresses that a browser on this machine reaches by any name in `.localhost`."""


def directory_of(configuration: Configuration) -> Directory:
    """Build the directory of each place's repository.

    Raises:
        ConfigurationError: a folder is set that agents must not work in.
    """
    files = filter(None, (configuration.database_file, configuration.dotenv))
    area_settings = {
        service: settings.names()[settings.repositories_by_area]
        for service, settings in configuration.service_settings.items()
        if settings.repositories_by_area is not None
    }
    directory = Directory(
        git_url=configuration.settings.git_url,
        home=configuration.home,
        data_dir=configuration.data_dir,
        default=configuration.settings.default_repository,
        areas={
            PlaceKey(service, name): repository
            for service, settings in configuration.service_settings.items()
            for name, repository in settings.area_repositories().items()
        },
        area_settings=area_settings,
        find_area=find_area,
        own_repository=find_repository,
        own=(
            configuration.shared_dir,
            *configuration.secret_files,
            *files,
            Path(app.__file__).parent,
        ),
    )
    named = [("GITHUB_REPO", configuration.settings.default_repository)]
    named += [(area_settings[area.service], text) for area, text in directory.areas.items()]
    for setting, text in named:
        folder = directory.read(text)
        if isinstance(folder, Path) and (objection := directory.objection(folder)):
            raise ConfigurationError(
                setting, "names a folder that agents must not work in", objection
            )
    return directory


def variables_of(
    configuration: Configuration, directory: Directory, now: Callable[[str, str], str]
) -> Mapping[Target, Mapping[str, str]]:
    """Return the additional variables for work in each repository or folder."""
    entries = {
        directory.read(name): {
            variable: value.get_secret_value() for variable, value in entry.env.items()
        }
        for name, entry in configuration.repositories.items()
    }
    return SetFor(entries, directory, now)


def fetched_as(
    how: Literal["shallow", "partial"],
    configuration: Configuration,
    directory: Directory,
    now: Callable[[str, str], str],
) -> Collection[Target]:
    """Return the repositories that are fetched in this way."""
    entries = {
        directory.read(name): entry.clone
        for name, entry in configuration.repositories.items()
        if entry.clone == how
    }
    return SetFor(entries, directory, now)


def page_url_of(configuration: Configuration, secret_key: SecretStr) -> str:
    """Return the address at which people open the page."""
    if not plain_url_of(configuration):
        return configuration.base_url
    return f"http://{private_host(secret_key)}:{configuration.settings.port}"


def plain_url_of(configuration: Configuration) -> str:
    """Return the page's address for browsers that do not resolve its own name; else empty."""
    if configuration.settings.bridge_base_url or configuration.settings.host not in _LOCAL_HOSTS:
        return ""
    host = "[::1]" if configuration.settings.host == "::1" else "127.0.0.1"
    return f"http://{host}:{configuration.settings.port}"


def tools_url_of(configuration: Configuration) -> str:
    """Return the address at which agents on this machine call the bridge's tools."""
    host = configuration.settings.host
    if host in _LOCAL_HOSTS:
        host = "[::1]" if host == "::1" else "127.0.0.1"
    return f"http://{host}:{configuration.settings.port}{TOOLS_PATH}"


def hosts_of(configuration: Configuration, page_url: str) -> set[str]:
    """List the Host headers that mean this bridge."""
    port = configuration.settings.port
    own = {"127.0.0.1", "localhost", "[::1]", configuration.settings.host}
    reached = {urlsplit(url).netloc for url in (configuration.base_url, page_url)}
    return {f"{host}:{port}" for host in own} | reached | {SOCKET_HOST}
