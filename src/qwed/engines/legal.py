"""The legal pack as an engine."""

from qwed.engines.packs import verifying
from qwed_legal.questions import QUESTIONS

verify = verifying("legal", QUESTIONS)
