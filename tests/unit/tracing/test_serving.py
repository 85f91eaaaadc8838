"""A server that is traced, and one that is not."""

import subprocess
import sys
from pathlib import Path

import httpx

from tests.support.server import SERVE, Server
from tests.support.trace_collector import TraceCollector, attributes_of, below, roots

NOTHING_IMPORTED = """
import sys
from qwed.api.app import App
from qwed.cli import serve
from qwed.kernel.bootstrap import close_services, open_services
from qwed.settings import Settings

services = open_services(Settings(), in_memory=True).services
app = App(services)
assert app.services is services and services.at_stage is None and services.engines.on_submit is None
close_services(services)
unwanted = ("opentelemetry", "google.protobuf", "requests", "qwed.tracing.e")
print([name for name in sys.modules if name.startswith(unwanted)])
"""
NOT_INSTALLED = """
import sys
sys.modules["opentelemetry.proto"] = None
from qwed.cli import main
sys.exit(main())
"""


def test_a_server_sends_the_spans_of_its_engines_and_what_is_left_when_it_stops(tmp_path: Path) -> None:
    collector = TraceCollector()
    headers = "authorization=Bearer%20hunter2"
    server = Server(tmp_path / "data", QWED_OTEL_ENDPOINT=collector.url, QWED_OTEL_HEADERS=headers)
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=60) as client:
        agent = client.post("/agents/register", json={"name": "a", "principal_id": "p"}).json()["agent_id"]
        action = {"type": "execute_sql", "query": "SELECT hunter2 FROM t"}
        body = {"action": action, "context": {"conversation_id": "c", "step_number": 1}}
        assert client.post(f"/agents/{agent}/verify", json=body).json()["verification"]["engine"] == "sql"
    assert server.stop() == 0
    spans = collector.spans()
    [root] = [span for span in roots(spans) if span.name == "POST /agents/{agent_id}/verify"]
    [stage] = [span for span in below(spans, root) if span.name == "run_engine"]
    wait, run = below(spans, stage)
    assert [(span.name, attributes_of(span)) for span in (wait, run)] == [
        ("engine wait", {"qwed.engine": "sql"}),
        ("engine run", {"qwed.engine": "sql"}),
    ]
    assert stage.start_time_unix_nano <= wait.start_time_unix_nano <= wait.end_time_unix_nano
    assert wait.end_time_unix_nano == run.start_time_unix_nano < run.end_time_unix_nano <= stage.end_time_unix_nano
    assert {heard.headers["authorization"] for heard in collector.heard} == {"Bearer hunter2"}
    assert b"hunter2" not in b"".join(heard.body for heard in collector.heard)
    assert "hunter2" not in server.log.read_text()
    collector.close()


def test_without_a_collector_nothing_is_imported_and_nothing_is_hooked() -> None:
    done = subprocess.run([sys.executable, "-c", NOTHING_IMPORTED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_package_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOT_INSTALLED, *SERVE[3:], "--data-dir", str(tmp_path / "data")],
        env={"QWED_OTEL_ENDPOINT": "http://127.0.0.1:9", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == "qwed: QWED_OTEL_ENDPOINT: traces need a package: pip install 'qwed[otel]'"
    assert not (tmp_path / "data" / "qwed.db").exists()
