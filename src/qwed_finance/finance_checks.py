"""Table of the finance pack's checks."""

from qwed.packs.check import PackCheck, by_name
from qwed_finance import finance_verifier, iso

CHECKS: dict[str, PackCheck] = by_name((*finance_verifier.CHECKS, *iso.CHECKS))
