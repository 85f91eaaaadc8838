"""Dashboard, scrape configuration and alerts: they name exported metrics and are valid."""

import re
from typing import Any

import httpx
import jsonschema
import pytest
from prometheus_client import CollectorRegistry, ProcessCollector

from qwed.api.routes import ROUTES
from qwed.api.server.metrics import COMMIT_SECONDS, FAMILIES, REQUEST_SECONDS, SPAN_OUTCOMES, WEBHOOK_OUTCOMES
from qwed.model import Decision, ErrorCode, Status
from tests.support.server import Server
from tests.unit.deploy import promql
from tests.unit.deploy.deploy_files import DEPLOY, DURATION, TEXT, TEXTS, WORDS, dashboard, document, record, several

ADDED = {"job", "instance"}
"""Labels that Prometheus adds to every sample."""


def exported() -> dict[str, set[str]]:
    """Every name that can be asked for, with its labels."""
    process = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=process)
    names = {sample.name for family in process.collect() for sample in family.samples}
    exported = {name: set(row.labels) for name, row in FAMILIES.items()} | {name: set[str]() for name in names}
    timed = {REQUEST_SECONDS: {"route"}, COMMIT_SECONDS: set[str]()}
    exported |= {f"{name}_bucket": labels | {"le"} for name, labels in timed.items()}
    return exported | {f"{name}_count": labels for name, labels in timed.items()} | {"up": set()}


EXPORTED = exported()
VALUES: dict[str, set[str]] = {
    "decision": set(Decision),
    "code": {row.code for row in ErrorCode} | {"none"},
    "route": {row.path for row in ROUTES},
    "outcome": {*WEBHOOK_OUTCOMES, *SPAN_OUTCOMES, "published"},
    "status": {"500", "503"} | {status.on_agent_wire for status in Status},
    "job": {"qwed", "$job"},
    "instance": {"$instance"},
}


def targets() -> list[tuple[str, str, str]]:
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    ]


def rules() -> list[dict[str, Any]]:
    return [rule for group in document("prometheus/qwed.rules.yml")["groups"] for rule in group["rules"]]


def require_exported(expression: str) -> set[str]:
    """The labels that what comes out may have."""
    named = promql.read(expression)
    assert named.metrics
    for metric, matchers in named.metrics:
        assert metric in EXPORTED, metric
        assert set(matchers) <= EXPORTED[metric] | ADDED, (metric, matchers)
        for label, (sign, text) in matchers.items():
            wanted = text if sign in ("=~", "!~") and not text.startswith("$") else re.escape(text)
            assert any(re.fullmatch(wanted, value) for value in VALUES[label]), (label, text)
    carried = set.union(*(EXPORTED[metric] for metric, _ in named.metrics)) | ADDED
    assert set(named.groups) <= carried, expression
    return set(named.groups) if named.groups else carried


def test_each_expression_of_the_dashboard_names_what_we_export() -> None:
    assert len(targets()) > 30
    for title, expression, legend in targets():
        labels = require_exported(expression)
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= labels, title


def test_the_dashboard_shows_every_metric() -> None:
    metrics_used = {metric for _, expression, _ in targets() for metric, _ in promql.read(expression).metrics}
    assert {*FAMILIES, f"{REQUEST_SECONDS}_bucket", f"{COMMIT_SECONDS}_bucket"} <= metrics_used


@pytest.mark.parametrize(
    "broken",
    [
        "sum(rate(qwed_decisions_total[5m])",
        "sum by decision (rate(qwed_decisions_total[5m]))",
        "rate(qwed_decisions_total[5])",
        "frobnicate(qwed_decisions_total)",
        'qwed_decisions_total{decision="APPROVED"',
        'qwed_decisions_total{colour="red"}',
        'qwed_decisions_total{code="QWED-AGENT-999"}',
        "qwed_decision_total",
        "sum by (route) (qwed_decisions_total)",
        "qwed_decisions_total qwed_decisions_total",
        "qwed_decisions_total offset 5",
        "qwed_decisions_total / ignoring (code) qwed_decisions_total",
        "",
    ],
)
def test_an_expression_that_is_wrong_is_seen(broken: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        require_exported(broken)


PANEL = {
    "type": "object",
    "required": ["id", "type", "title", "gridPos"],
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "type": {"enum": ["row", "stat", "timeseries"]},
        "title": TEXT,
        "gridPos": record(
            "x y w h",
            x={"type": "integer", "minimum": 0, "maximum": 23},
            y={"type": "integer", "minimum": 0},
            w={"type": "integer", "minimum": 1, "maximum": 24},
            h={"type": "integer", "minimum": 1},
        ),
        "targets": {"type": "array", "items": {"type": "object", "required": ["refId", "expr", "datasource"]}},
    },
    "if": {"not": {"properties": {"type": {"const": "row"}}}},
    "then": {"required": ["targets", "datasource", "fieldConfig", "options"]},
}
BOARD = {
    "type": "object",
    "required": ["uid", "title", "schemaVersion", "panels", "templating", "time", "annotations", "tags", "refresh"],
    "properties": {
        "uid": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "panels": {"type": "array", "items": PANEL},
        "templating": record("list", list=several({"type": "object", "required": ["name", "type", "query"]})),
    },
}


def test_the_dashboard_is_one() -> None:
    board = dashboard()
    jsonschema.validate(board, BOARD)
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    names = {variable["name"] for variable in board["templating"]["list"]}
    text = (DEPLOY / "grafana" / "qwed.json").read_text()
    assert set(re.findall(r"\$\{?(\w+)\}?", text)) - {"__rate_interval"} == names
    # The dashboard can be imported anywhere: it refers to no data source and no dashboard id of another server.
    assert set(re.findall(r'"uid": "([^"]*)"', text)) == {"${datasource}", "qwed"}
    assert "id" not in board


def test_no_panel_lies_on_another() -> None:
    occupied: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24, panel["title"]
        assert not cells & occupied, panel["title"]
        occupied |= cells


RULE = record(
    "alert expr labels annotations",
    alert={"type": "string", "pattern": "^Qwed[A-Za-z]+$"},
    expr=TEXT,
    labels=record("severity", severity={"enum": ["critical", "warning", "info"]}),
    annotations=record("summary description", summary=TEXT, description=TEXT),
    **{"for": DURATION},
)


def test_each_alert_is_one_and_names_what_we_export() -> None:
    jsonschema.validate(
        document("prometheus/qwed.rules.yml"),
        record("groups", groups=several(record("name rules", name=TEXT, rules=several(RULE)))),
    )
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        labels = require_exported(rule["expr"])
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["description"])) <= labels, rule["alert"]


def test_series_that_are_compared_have_the_same_labels_or_ignore_those_they_have_not() -> None:
    """A label that the one has and the other has not, or has with another value, makes no pair of them."""
    compared = 0
    for rule in rules():
        named = promql.read(rule["expr"])
        if len(named.metrics) < 2 or named.groups:
            continue
        compared += 1
        matchers_list = [
            {label: text for label, (_sign, text) in matchers.items()} for _metric, matchers in named.metrics
        ]
        differing = {
            label for one in matchers_list for other in matchers_list for label in one if one[label] != other.get(label)
        }
        assert differing <= set(named.ignored), rule["alert"]
    assert compared == 2


def test_whatever_the_page_of_metrics_calls_worth_an_alert_has_one() -> None:
    page = (DEPLOY.parent / "docs" / "metrics.md").read_text().split("## Worth an alert")[1]
    worth = set(re.findall(r"^\| `(qwed_\w+)", page, re.MULTILINE))
    assert worth
    assert worth <= {metric for rule in rules() for metric, _ in promql.read(rule["expr"]).metrics}


SCRAPE = record(
    "job_name static_configs http_headers",
    job_name=TEXT,
    metrics_path={"const": "/metrics"},
    scheme={"enum": ["http", "https"]},
    scrape_timeout=DURATION,
    http_headers={"type": "object", "additionalProperties": record("files", files=TEXTS)},
    static_configs=several(record("targets", targets=TEXTS, labels=WORDS)),
)
PROMETHEUS = record(
    "scrape_configs",
    **{"global": record(scrape_interval=DURATION, evaluation_interval=DURATION)},
    rule_files=TEXTS,
    scrape_configs=several(SCRAPE),
)


def test_the_scrape_is_one_and_its_rules_lie_beside_it() -> None:
    config = document("prometheus/prometheus.yml")
    jsonschema.validate(config, PROMETHEUS)
    assert all((DEPLOY / "prometheus" / name).exists() for name in config["rule_files"])
    [scrape] = config["scrape_configs"]
    assert f'up{{job="{scrape["job_name"]}"}}' in rules()[0]["expr"]


def test_a_scrape_as_it_is_written_is_answered(server: Server) -> None:
    [scrape] = document("prometheus/prometheus.yml")["scrape_configs"]
    [header] = scrape["http_headers"]
    # Prometheus strips the file.
    headers = {header: (server.data_dir / "owner.key").read_text().strip()}
    answer = httpx.get(server.base_url + scrape["metrics_path"], headers=headers, timeout=30)
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert httpx.get(server.base_url + scrape["metrics_path"], timeout=30).status_code == 401
