"""qwed_sdk.langchain without LangChain, or with langchain-core only."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({absent!r}))
import qwed_sdk.langchain as integration
from qwed_sdk.langchain import QWEDMiddleware, QWEDVerificationCallback
for integration_class in (QWEDVerificationCallback, QWEDMiddleware):
    try:
        print(type(integration_class("agent_1")).__name__)
    except ImportError as error:
        print(error)
try:
    integration.QWEDSomething
except AttributeError as error:
    print(error)
"""
NO_CALLBACK = "`QWEDVerificationCallback` needs a package that is not installed: pip install langchain-core"
NO_MIDDLEWARE = "`QWEDMiddleware` needs a package that is not installed: pip install langchain"
NO_SUCH = "module `qwed_sdk.langchain` has no `QWEDSomething`"


def python(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("absent", "printed"),
    [
        (["langchain", "langchain_core", "langgraph"], [NO_CALLBACK, NO_MIDDLEWARE, NO_SUCH]),
        (["langchain", "langgraph"], ["QWEDVerificationCallback", NO_MIDDLEWARE, NO_SUCH]),
    ],
)
def test_each_class_says_which_package_it_needs_when_one_is_made(absent: list[str], printed: list[str]) -> None:
    assert python(WITHOUT.format(absent=absent)) == printed


def test_the_callback_loads_no_more_than_the_core_and_the_module_itself_nothing() -> None:
    print_loaded = "; print(sorted({'langchain', 'langchain_core', 'langgraph'} & set(sys.modules)))"
    assert python(f"import sys, qwed_sdk.langchain{print_loaded}") == ["[]"]
    assert python(f"import sys; from qwed_sdk.langchain import QWEDVerificationCallback{print_loaded}") == [
        "['langchain_core']"
    ]


def test_without_an_agent_it_says_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    from qwed_sdk.langchain import QWEDVerificationCallback

    monkeypatch.delenv("QWED_AGENT_ID", raising=False)
    with pytest.raises(ValueError, match="QWED_AGENT_ID"):
        QWEDVerificationCallback()
    monkeypatch.setenv("QWED_AGENT_ID", "agent_1")
    QWEDVerificationCallback()
