"""The ucp pack as an engine."""

from qwed.engines.pack_adapter import pack_engine
from qwed_ucp.ucp_checks import CHECKS

verify = pack_engine("ucp", CHECKS)
