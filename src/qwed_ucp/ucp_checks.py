"""Table of checks of the UCP pack."""

from qwed.packs.check import PackCheck, by_name
from qwed_ucp import ucp_verifier

CHECKS: dict[str, PackCheck] = by_name((*ucp_verifier.CHECKS,))
