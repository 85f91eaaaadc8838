"""The ucp pack as an engine."""

from qwed.engines.packs import verifying
from qwed_ucp.questions import QUESTIONS

verify = verifying("ucp", QUESTIONS)
