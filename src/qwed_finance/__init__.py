"""Interest, loans, cash flows and payment messages, computed again exactly."""

from typing import TYPE_CHECKING

from qwed.words.lazy import lazily

if TYPE_CHECKING:
    from qwed_finance.iso import ISOGuard
    from qwed_finance.verifier import FinanceVerifier

# Each is imported when it is first used, and its libraries when it is first asked.
_HOME = {
    "FinanceVerifier": "qwed_finance.verifier",
    "ISOGuard": "qwed_finance.iso",
}

__all__ = ["FinanceVerifier", "ISOGuard"]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return [*__all__]
