"""The files for containers: valid by the schemas of Kubernetes, and in step with the bridge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped] # it has no types
import pytest
import yaml

from app.config.settings import NAMES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
OBJECTS: list[dict[str, Any]] = [
    each
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for each in yaml.safe_load_all(path.read_text())
]
PODS = [each["spec"]["template"]["spec"] for each in OBJECTS if "template" in each.get("spec", {})]
BRIDGES: list[dict[str, Any]] = [
    service
    for path in (ROOT / "compose.yaml", DEPLOY / "compose.postgres.yaml")
    for service in yaml.safe_load(path.read_text())["services"].values()
    if service["image"] == "agent-bridge"
]
RELEASES = ["1.33", "1.37"]
"""The first in which a pod may see all of its /proc without a feature gate, and a late one."""


@pytest.mark.parametrize("release", RELEASES)
def test_kubernetes_takes_every_object(release: str) -> None:
    taken = [kubernetes_validate.validate(each, release, strict=True) for each in OBJECTS]

    assert len(taken) == 9


def test_every_pod_is_harmless_to_its_node_and_can_isolate_agents() -> None:
    assert len(PODS) == 2
    for pod in PODS:
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["hostUsers"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "procMount": "Unmasked",
            "appArmorProfile": {"type": "Unconfined"},
            "seccompProfile": {"type": "Localhost", "localhostProfile": "agent-bridge.json"},
        }


def test_pods_get_more_time_to_end_than_turns() -> None:
    (settings,) = (each["data"] for each in OBJECTS if each["kind"] == "ConfigMap")

    assert {pod["terminationGracePeriodSeconds"] for pod in PODS} == {150}
    assert int(settings["GRACE_SECONDS"]) + 30 <= 150
    assert set(settings) <= {*NAMES}


def test_every_container_of_compose_is_harmless_and_can_isolate_agents() -> None:
    assert len(BRIDGES) == 4
    for service in BRIDGES:
        assert service["cap_drop"] == ["ALL"]
        assert set(service["security_opt"]) == {
            "seccomp=deploy/seccomp.json",
            "apparmor=unconfined",
            "systempaths=unconfined",
            "no-new-privileges=true",
        }
        assert set(service["environment"]) <= {*NAMES}


def test_every_container_has_an_end_of_memory_and_processes() -> None:
    pods = [pod["containers"][0]["resources"]["limits"]["memory"] for pod in PODS]

    assert sorted(pods) == ["16Gi", "2Gi"]
    assert {(each["mem_limit"], each["pids_limit"]) for each in BRIDGES} == {("4g", 8192)}


def test_each_member_has_a_disk_of_its_own_and_all_share_one() -> None:
    disks = [tuple(service["volumes"]) for service in BRIDGES[1:]]

    assert len({own for own, _ in disks}) == len(disks) == 3
    assert {shared for _, shared in disks} == {"shared:/shared"}
