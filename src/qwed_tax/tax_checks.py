"""Table of checks of the tax pack."""

from qwed.packs.check import PackCheck, by_name
from qwed_tax import gst, india_crypto, sales_tax, us_payroll

CHECKS: dict[str, PackCheck] = by_name((*us_payroll.CHECKS, *sales_tax.CHECKS, *india_crypto.CHECKS, *gst.CHECKS))
