"""Parsing of execution reports (spec 7.1)."""

import json
from typing import Any

import pytest

from qwed.kernel.agents.execution import ExecutionReport, ExecutionRequest, report_of
from qwed.kernel.answer import Problem
from qwed.kernel.request_schema import parse
from qwed.model import sha256_of


def read_report(raw: Any) -> ExecutionReport | Problem:
    request = parse(raw, ExecutionRequest)
    return request if isinstance(request, Problem) else report_of(request)


HASH = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("raw", "report"),
    [
        ({"success": True}, ExecutionReport(True, None, None)),
        ({"success": False, "result": None}, ExecutionReport(False, None, None)),
        ({"success": True, "result_hash": HASH}, ExecutionReport(True, HASH, None)),
        ({"success": True, "attestation": "a.b.c"}, ExecutionReport(True, None, "a.b.c")),
        ({"success": True, "result": {"rows": 3}}, ExecutionReport(True, f"sha256:{sha256_of({'rows': 3})}", None)),
        ({"success": True, "result": 0}, ExecutionReport(True, f"sha256:{sha256_of(0)}", None)),
        ({"success": True, "result": ""}, ExecutionReport(True, f"sha256:{sha256_of('')}", None)),
    ],
    ids=json.dumps,
)
def test_a_report_is_read(raw: Any, report: ExecutionReport) -> None:
    assert read_report(raw) == report


def test_a_result_has_one_hash_whatever_the_order_of_its_members() -> None:
    one, other = ({"success": True, "result": result} for result in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert read_report(one) == read_report(other)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "the body must be an object"),
        ("success", "the body must be an object"),
        (None, "the body must be an object"),
        ({}, "`success` is required"),
        ({"success": 1}, "true or false"),
        ({"success": "true"}, "true or false"),
        ({"success": None}, "true or false"),
        ({"success": True, "ok": True}, "unknown field `ok`"),
        ({"success": True, "x" * 1000: 1}, "unknown field `xxx"),
        ({"success": True, "attestation": 7}, "`attestation` must be what came with the decision"),
        ({"success": True, "result_hash": "a" * 64}, "`result_hash` must be"),
        ({"success": True, "result_hash": f"sha256:{'A' * 64}"}, "`result_hash` must be"),
        ({"success": True, "result_hash": f"{HASH}\n"}, "`result_hash` must be"),
        ({"success": True, "result_hash": 7}, "`result_hash` must be"),
        ({"success": True, "result_hash": HASH, "result": 1}, "not the hash of `result`"),
        ({"success": True, "result": float("nan")}, "`result`"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_kept_is_refused_by_name(raw: Any, message: str) -> None:
    refused = read_report(raw)
    assert isinstance(refused, Problem)
    assert message in refused.message
    assert len(refused.message) < 400
