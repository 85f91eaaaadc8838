"""Normal forms: as Unicode has them, and never in the square of the length."""

import unicodedata
from typing import Literal, get_args

import pytest

from qwed.model.unicode_normal import MAX_COMBINING_MARKS, normalize

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
ANY_FORM = pytest.mark.parametrize("form", get_args(Form))
ACUTE, CEDILLA, WIDE_MARK, APART = "\u0301", "\u0327", "\uff9e", "\u0f73"


@ANY_FORM
def test_letters_have_the_form_that_unicode_gives_them(form: Form) -> None:
    text = " ".join(map(chr, (*range(0x250), *range(0x300, 0xD800, 13), *range(0xF900, 0x10000, 3))))
    assert normalize(form, text) == unicodedata.normalize(form, text)


@ANY_FORM
@pytest.mark.parametrize("marks", [ACUTE + CEDILLA, ACUTE + WIDE_MARK, ACUTE + APART, CEDILLA * 3])
def test_as_many_marks_as_a_letter_has_stay_and_no_more(form: Form, marks: str) -> None:
    few = (marks * MAX_COMBINING_MARKS)[:MAX_COMBINING_MARKS]
    assert normalize(form, f"e{few}x") == unicodedata.normalize(form, f"e{few}x")
    assert normalize(form, f"e{marks * 200_000}x") == unicodedata.normalize(form, f"e{few}x")
