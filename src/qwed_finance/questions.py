"""What the finance pack can be asked from outside, one row for each check."""

from qwed.packs.question import Question, by_name

QUESTIONS: dict[str, Question] = by_name(())
