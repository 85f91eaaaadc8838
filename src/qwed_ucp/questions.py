"""What the ucp pack can be asked from outside, one row for each check."""

from qwed.packs.question import Question, by_name
from qwed_ucp import verifier

QUESTIONS: dict[str, Question] = by_name((*verifier.QUESTIONS,))
