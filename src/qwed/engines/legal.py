"""The legal pack as an engine."""

from qwed.engines.pack_adapter import pack_engine
from qwed_legal.legal_checks import CHECKS

verify = pack_engine("legal", CHECKS)
