"""Import names that the documents print, each imported in a process of its own."""

import subprocess
import sys

import pytest

PROMISED = {
    "qwed_sdk": ["QWEDClient", "QWEDAsyncClient", "QWEDAgentClient", "ToolApprovalSystem", "verify_attestation"],
    "qwed_sdk.cache": ["VerificationCache", "CacheContext", "CacheStats"],
    "qwed_sdk.langchain": ["QWEDVerificationCallback", "QWEDMiddleware"],
    "qwed_sdk.crewai": ["QWEDVerifiedAgent"],
    "qwed_sdk.openai_agents": [],
    "qwed_sdk.pydantic_ai": [],
    "qwed_sdk.guards.system_guard": ["SystemGuard"],
    "qwed_sdk.guards.config_guard": ["ConfigGuard"],
    "qwed_new.engines.math_engine": ["verify_math_expression"],
    "qwed_new.engines.logic_engine": ["verify_logic_statement"],
    "qwed_new.guards.code_guard": ["CodeGuard"],
    "qwed_new.guards.sql_guard": ["SQLGuard"],
    "qwed_new.core.tool_approval": ["ToolApprovalSystem"],
    "qwed_mcp.observability.aibom": ["AIBOMGenerator"],
    "qwed_mcp.security": ["SkillProvenanceGuard", "RiskBasedExecutionGateway"],
    "qwed_a2a": [
        "A2AVerificationInterceptor",
        "AgentMessage",
        "InterceptorConfig",
        "PayloadType",
        "TrustBoundary",
        "VerdictStatus",
        "VerificationVerdict",
        "verify_attestation",
    ],
    "qwed_legal": [
        "CitationGuard",
        "DeadlineGuard",
        "FairnessGuard",
        "JurisdictionGuard",
        "LegalGuard",
        "LiabilityGuard",
        "ProvenanceGuard",
        "StatuteOfLimitationsGuard",
    ],
    "qwed_finance": ["FinanceVerifier", "ISOGuard"],
    "qwed_ucp": ["UCPVerifier"],
    "qwed_tax": ["TaxVerifier"],
}
"""Import names, and what is imported from each."""

ENGINES = {"sympy", "z3", "sqlglot", "lark", "duckdb", "PIL", "pint", "rapidfuzz", "tree_sitter"}
SERVER = {"starlette", "uvicorn", "reportlab", "prometheus_client"}
FRAMEWORKS = {"langchain", "langchain_core", "crewai", "agents", "pydantic_ai"}

LIGHT = """
import importlib.metadata, re, sys

# As after `pip install qwed`: the distribution's requirements without extras, and theirs.
def reached(name, seen):
    for line in importlib.metadata.requires(name) or []:
        needed = re.match(r"[A-Za-z0-9._-]+", line)[0].lower().replace("_", "-")
        if "extra ==" not in line and needed not in seen:
            seen.add(needed)
            try:
                reached(needed, seen)
            except importlib.metadata.PackageNotFoundError:
                pass
    return seen

installed = reached("qwed", {"qwed"})
owners = importlib.metadata.packages_distributions()

class Light:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        homes = {owner.lower().replace("_", "-") for owner in owners.get(top, [])}
        if homes and not homes & installed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Light())
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported(module: str) -> str:
    names = ", ".join(PROMISED[module])
    return f"from {module} import {names}" if names else f"import {module}"


PACKS = ["qwed_legal", "qwed_finance", "qwed_ucp", "qwed_tax"]
OF_PACKS = {"holidays", "reporters_db", "courts_db", "eyecite", "lxml", "ucp_sdk", "pydantic"}
CLIENT_SIDE = [name for name in PROMISED if name.startswith("qwed_sdk")]


@pytest.mark.parametrize("module", [name for name in PROMISED if name not in CLIENT_SIDE])
def test_a_promised_name_is_there(module: str) -> None:
    run(imported(module))


@pytest.mark.parametrize("module", CLIENT_SIDE)
def test_a_promised_name_of_the_client_side_is_there_without_any_extra(module: str) -> None:
    run(LIGHT + imported(module))


def test_without_extras_the_client_asks() -> None:
    program = """
from qwed_sdk import QWEDClient, QWEDConnectionError
try:
    QWEDClient("k", "http://127.0.0.1:9", retries=0).health()
except QWEDConnectionError:
    print("sent")
"""
    assert run(LIGHT + program) == "sent\n"


@pytest.mark.parametrize("module", CLIENT_SIDE)
def test_importing_the_client_side_loads_no_engine_no_server_and_no_framework(module: str) -> None:
    loaded = set(run(f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})").split())
    assert loaded & (ENGINES | SERVER) == set()
    assert module.endswith(("langchain", "openai_agents", "pydantic_ai", "crewai")) or loaded & FRAMEWORKS == set()


def test_the_sdk_alone_does_not_even_load_the_http_client() -> None:
    loaded = set(run("import sys, qwed_sdk; print(*sys.modules)").split())
    assert loaded & {"httpx", "cryptography", "sqlite3", "asyncio", "typer", "rich"} == set()


@pytest.mark.parametrize("names", ["*", "A2AVerificationInterceptor, verify_attestation"])
def test_messages_between_agents_load_no_engine_no_server_and_no_protocol(names: str) -> None:
    loaded = set(run(f"import sys; from qwed_a2a import {names}; print(*sys.modules)").split())
    assert loaded & (ENGINES | SERVER | {"a2a", "grpc", "httpx"}) == set()


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("names", ["*", None], ids=["star", "each"])
def test_a_pack_loads_no_other_pack_none_of_its_libraries_and_nothing_above_it(pack: str, names: str | None) -> None:
    imports = names or ", ".join(PROMISED[pack])
    loaded = run(
        f"import sys\nfrom {pack} import {imports}\nimport {pack}.{pack[5:]}_checks\nprint(*sys.modules)"
    ).split()
    tops = {name.partition(".")[0] for name in loaded}
    assert tops & {*PACKS} == {pack}
    assert tops & (OF_PACKS | ENGINES | SERVER | {"qwed_sdk", "qwed_new", "qwed_mcp", "qwed_a2a"}) == set()
    above = [name for name in loaded if name.startswith("qwed.") and name.split(".")[1] not in ("packs", "model")]
    assert above == []


FIRST_USE = {
    "qwed_legal": [
        ("DeadlineGuard().verify('2026-01-15', '30 business days', '2026-03-02')", "qwed[legal]"),
        ("CitationGuard().verify('347 U.S. 483 (1954)')", "qwed[legal]"),
        ("LiabilityGuard().verify_cap(1000000, 150, 1500000).verified", "True"),
        ("JurisdictionGuard().verify_choice_of_law(['US', 'DE'], 'New York').verified", "True"),
        (
            "StatuteOfLimitationsGuard().verify('breach_of_contract', 'XX', '2022-01-12', '2025-06-01').verified",
            "False",
        ),
    ],
    "qwed_finance": [
        ("FinanceVerifier().verify_monthly_payment(250000, 0.065, 360, '$1,580.17').verified", "True"),
        ("ISOGuard().verify_payment_message('<a/>').verified", "False"),
        ("ISOGuard(schemas='.').verify_payment_message(MESSAGE, 'pain.001')", "qwed[finance]"),
    ],
    "qwed_ucp": [
        ("UCPVerifier().verify_checkout({'currency': 'USD'}).verified", "False"),
        ("UCPVerifier().verify_checkout(CHECKOUT)", "qwed[ucp]"),
    ],
    "qwed_tax": [("TaxVerifier().verify_sales_tax(100, 0.0825, 8.25).verified", "True")],
}
"""Results of a pack without its libraries: checks that need none work, the others name what to install."""
GIVEN = """
import pathlib
MESSAGE = pathlib.Path("tests/data/iso20022/pain.001.001.09-salaries.xml").read_text()
CHECKOUT = {"ucp": {"version": "2026-01-11", "capabilities": []}, "id": "c", "currency": "USD", "status": "incomplete",
    "line_items": [], "totals": [], "links": [], "payment": {}}

def result_or_error(call):
    try:
        return call()
    except ImportError as error:
        return error
"""


@pytest.mark.parametrize("pack", PACKS)
def test_without_extras_a_pack_is_imported_and_says_at_first_use_what_to_install(pack: str) -> None:
    program = "".join(
        f"print(repr(result_or_error(lambda: {ask})).replace(chr(10), ' '))\n" for ask, _ in FIRST_USE[pack]
    )
    lines = run(LIGHT + GIVEN + f"from {pack} import *\n" + program).splitlines()
    assert len(lines) == len(FIRST_USE[pack])
    for line, (ask, expected) in zip(lines, FIRST_USE[pack], strict=True):
        assert expected in line, (ask, line)


def test_every_name_of_the_sdk_is_there_and_listed() -> None:
    present = run(
        "import qwed_sdk; print(*(n for n in qwed_sdk.__all__ if getattr(qwed_sdk, n) and n in dir(qwed_sdk)))"
    )
    listed = run("import qwed_sdk; print(*qwed_sdk.__all__)")
    assert present == listed
    assert set(listed.split()) == set(run("import qwed_sdk; print(*qwed_sdk._MODULE_OF_NAME)").split())
