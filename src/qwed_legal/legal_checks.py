"""Table of the legal pack's checks."""

from qwed.packs.check import PackCheck, by_name
from qwed_legal import citation, deadline, jurisdiction, liability, limitations, provenance

CHECKS: dict[str, PackCheck] = by_name(
    (
        *deadline.CHECKS,
        *citation.CHECKS,
        *liability.CHECKS,
        *jurisdiction.CHECKS,
        *limitations.CHECKS,
        *provenance.CHECKS,
    )
)
