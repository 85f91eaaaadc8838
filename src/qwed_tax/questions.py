"""What the tax pack can be asked from outside, one row for each check."""

from qwed.packs.question import Question, by_name
from qwed_tax import gst, india_crypto, sales_tax, us_payroll

QUESTIONS: dict[str, Question] = by_name(
    (*us_payroll.QUESTIONS, *sales_tax.QUESTIONS, *india_crypto.QUESTIONS, *gst.QUESTIONS)
)
