"""Kubernetes manifest: its structure, the rights of its pods, and a server with keys from a Secret."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import jsonschema

from qwed.ledger.keyring import read_keyring
from qwed.settings import settings_from
from tests.support.server import Server
from tests.unit.deploy.deploy_files import TEXT, TEXTS, TRUTH, WHOLE, WORDS, documents, mapped, record, several

LABELS = record("matchLabels", matchLabels=mapped(TEXT))
QUANTITY = {"type": "string", "pattern": r"^\d+(m|Mi|Gi)?$"}
META = record("name labels", name={"const": "qwed"}, labels=WORDS)
PROBE = record(
    "httpGet",
    httpGet=record("path port", path={"enum": ["/health", "/ready"]}, port={"const": "http"}),
    periodSeconds=WHOLE,
    timeoutSeconds=WHOLE,
    failureThreshold=WHOLE,
)
CONTAINER = record(
    "name image volumeMounts securityContext resources",
    name=TEXT,
    image=TEXT,
    command=TEXTS,
    args=TEXTS,
    ports=several(record("name containerPort", name=TEXT, containerPort=WHOLE)),
    env=several(record("name value", name=TEXT, value=TEXT)),
    volumeMounts=several(record("name mountPath", name=TEXT, mountPath=TEXT, readOnly=TRUTH)),
    startupProbe=PROBE,
    readinessProbe=PROBE,
    livenessProbe=PROBE,
    lifecycle=record("preStop", preStop=record("exec", exec=record("command", command=TEXTS))),
    securityContext=record(
        "allowPrivilegeEscalation readOnlyRootFilesystem capabilities",
        allowPrivilegeEscalation={"const": False},
        readOnlyRootFilesystem={"const": True},
        capabilities=record("drop", drop={"const": ["ALL"]}),
    ),
    resources=record("requests limits", requests=mapped(QUANTITY), limits=mapped(QUANTITY)),
)
VOLUME = record(
    "name",
    name=TEXT,
    emptyDir=record(medium={"const": "Memory"}, sizeLimit=QUANTITY),
    secret=record("secretName defaultMode", secretName=TEXT, defaultMode={"const": 0o440}),
)
POD = record(
    "serviceAccountName securityContext initContainers containers volumes automountServiceAccountToken",
    serviceAccountName=TEXT,
    automountServiceAccountToken={"const": False},
    enableServiceLinks=TRUTH,
    terminationGracePeriodSeconds=WHOLE,
    securityContext=record(
        "runAsNonRoot runAsUser runAsGroup fsGroup seccompProfile",
        runAsNonRoot={"const": True},
        runAsUser={"const": 10001},
        runAsGroup={"const": 10001},
        fsGroup={"const": 10001},
        seccompProfile={"const": {"type": "RuntimeDefault"}},
    ),
    topologySpreadConstraints=several(
        record(
            "maxSkew topologyKey whenUnsatisfiable labelSelector",
            maxSkew=WHOLE,
            topologyKey=TEXT,
            whenUnsatisfiable={"enum": ["DoNotSchedule", "ScheduleAnyway"]},
            labelSelector=LABELS,
        )
    ),
    initContainers=several(CONTAINER),
    containers=several(CONTAINER),
    volumes=several(VOLUME),
)
PORTS = several(record("protocol port", protocol={"enum": ["TCP", "UDP"]}, port=WHOLE))
PEERS = several(record(podSelector=LABELS, namespaceSelector=LABELS))
SPECS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "ServiceAccount": ("v1", None),
    "Deployment": (
        "apps/v1",
        record(
            "replicas selector strategy template",
            replicas={"type": "integer", "minimum": 2},
            selector=LABELS,
            strategy=record("type", type={"const": "Recreate"}),
            template=record("metadata spec", metadata=record("labels", labels=WORDS), spec=POD),
        ),
    ),
    "Service": (
        "v1",
        record(
            "type selector ports",
            type={"const": "ClusterIP"},
            selector=WORDS,
            ports=several(record("name port targetPort", name=TEXT, port=WHOLE, targetPort={"const": "http"})),
        ),
    ),
    "PodDisruptionBudget": ("policy/v1", record("minAvailable selector", minAvailable=WHOLE, selector=LABELS)),
    "NetworkPolicy": (
        "networking.k8s.io/v1",
        record(
            "podSelector policyTypes ingress egress",
            podSelector=LABELS,
            policyTypes={"const": ["Ingress", "Egress"]},
            ingress=several(record("from ports", ports=PORTS, **{"from": PEERS})),
            egress=several(record("ports", ports=PORTS, to=PEERS)),
        ),
    ),
}


def manifest() -> dict[str, Any]:
    by_kind = {item["kind"]: item for item in documents("kubernetes.yaml")}
    assert len(by_kind) == len(documents("kubernetes.yaml"))
    return by_kind


def pod() -> Any:
    return manifest()["Deployment"]["spec"]["template"]["spec"]


def test_each_object_is_one() -> None:
    assert set(manifest()) == set(SPECS)
    for kind, (version, spec) in SPECS.items():
        head = {"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": META}
        more = {"automountServiceAccountToken": {"const": False}} if spec is None else {"spec": spec}
        jsonschema.validate(manifest()[kind], record(" ".join([*head, *more]), **head, **more))


def test_each_selector_finds_the_pods() -> None:
    objects = manifest()
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        objects["Deployment"]["spec"]["selector"]["matchLabels"],
        objects["Service"]["spec"]["selector"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        pod()["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ]
    assert selectors == [labels] * 5
    assert objects["PodDisruptionBudget"]["spec"]["minAvailable"] < objects["Deployment"]["spec"]["replicas"]


def test_what_is_mounted_is_a_volume_and_the_ports_are_one() -> None:
    volumes = {volume["name"] for volume in pod()["volumes"]}
    mounts = {
        mount["name"] for item in (*pod()["containers"], *pod()["initContainers"]) for mount in item["volumeMounts"]
    }
    assert mounts == volumes
    [main] = pod()["containers"]
    [port] = main["ports"]
    assert port == {"name": "http", "containerPort": 8000}
    [ingress] = manifest()["NetworkPolicy"]["spec"]["ingress"]
    assert [item["port"] for item in ingress["ports"]] == [8000]
    assert main["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert main["livenessProbe"]["httpGet"]["path"] == "/health"


def environment_at(root: Path) -> dict[str, str]:
    [main] = pod()["containers"]
    return {item["name"]: re.sub(r"^(?=/(?:data|urls)/)", str(root), item["value"]) for item in main["env"]}


def test_a_server_starts_with_the_keys_of_a_secret_and_is_the_node_it_was(tmp_path: Path) -> None:
    first = Server(tmp_path / "first")
    key, issuer = first.owner_key, read_keyring(first.data_dir).issuer
    assert first.stop() == 0
    # A Secret in a pod with an fsGroup: every file is readable by the group.
    (tmp_path / "keys").mkdir()
    for name in ("signing.key", "signing.jwks", "vault.key"):
        shutil.copy(first.data_dir / name, tmp_path / "keys" / name)
        (tmp_path / "keys" / name).chmod(0o440)
    (tmp_path / "data").mkdir()
    [init] = pod()["initContainers"]
    words = [
        word.replace("/keys/", f"{tmp_path}/keys/").replace("/data/", f"{tmp_path}/data/") for word in init["command"]
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    # In place of PostgreSQL.
    shutil.copy(first.data_dir / "qwed.db", tmp_path / "data" / "qwed")
    named = environment_at(tmp_path)
    named = {name: value for name, value in named.items() if not name.endswith("_URL_FILE") and name != "QWED_DATA_DIR"}
    second = Server(tmp_path / "data" / "qwed", **named)
    try:
        with httpx.Client(base_url=second.base_url, headers={"X-API-Key": key}, timeout=30) as client:
            assert client.get("/agents").status_code == 200
            rotated = client.post("/signing-key/rotate", json={"reason": "try"})
    finally:
        assert second.stop() == 0
    assert rotated.status_code >= 400
    assert read_keyring(tmp_path / "data" / "qwed").issuer == issuer
    assert not (tmp_path / "data" / "qwed" / "owner.key").exists()


def test_the_addresses_are_read_from_the_files_of_a_secret(tmp_path: Path) -> None:
    (tmp_path / "urls").mkdir()
    (tmp_path / "urls" / "database-url").write_text("postgresql://qwed:word@db/qwed\n")
    (tmp_path / "urls" / "redis-url").write_text("rediss://:word@cache:6379/0")
    read = settings_from(environment_at(tmp_path))
    assert (read.database_url, read.redis_url) == ("postgresql://qwed:word@db/qwed", "rediss://:word@cache:6379/0")
    assert (read.engine_workers, read.data_dir) == (2, tmp_path / "data" / "qwed")
