"""The tax pack as an engine."""

from qwed.engines.packs import verifying
from qwed_tax.questions import QUESTIONS

verify = verifying("tax", QUESTIONS)
