"""The finance pack as an engine."""

from qwed.engines.pack_adapter import pack_engine
from qwed_finance.finance_checks import CHECKS

verify = pack_engine("finance", CHECKS)
