"""What the finance pack can be asked from outside, one row for each check."""

from qwed.packs.question import Question, by_name
from qwed_finance import iso, verifier

QUESTIONS: dict[str, Question] = by_name((*verifier.QUESTIONS, *iso.QUESTIONS))
