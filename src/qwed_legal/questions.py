"""What the legal pack can be asked from outside, one row for each check."""

from qwed.packs.question import Question, by_name
from qwed_legal import citation, deadline, jurisdiction, liability, limitations, provenance

QUESTIONS: dict[str, Question] = by_name(
    (
        *deadline.QUESTIONS,
        *citation.QUESTIONS,
        *liability.QUESTIONS,
        *jurisdiction.QUESTIONS,
        *limitations.QUESTIONS,
        *provenance.QUESTIONS,
    )
)
