"""The tax pack as an engine."""

from qwed.engines.pack_adapter import pack_engine
from qwed_tax.tax_checks import CHECKS

verify = pack_engine("tax", CHECKS)
