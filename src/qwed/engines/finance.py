"""The finance pack as an engine."""

from qwed.engines.packs import verifying
from qwed_finance.questions import QUESTIONS

verify = verifying("finance", QUESTIONS)
