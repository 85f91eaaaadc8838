"""Parts as a client may put them together: each by itself, one after another, each on a line of its own."""

import pytest

from qwed_a2a.message import PayloadType
from qwed_a2a.payloads import Unread
from qwed_a2a.proxy.contents import Content
from qwed_a2a.proxy.reading import found_in
from qwed_a2a.proxy.terms import Part


def codes(*texts: str) -> list[str]:
    found = found_in(Content(tuple(Part(text=text) for text in texts)))
    assert not isinstance(found, Unread)
    return [each.payload["code"] for each in found.payloads if each.kind is PayloadType.CODE_EXECUTION]


LINES = [
    ("f = __import__", "g = f('os')", "g.system('x')"),
    ("x = 1 #", "f = __import__('os')", "f.system('x')"),
    ("```python", "import os as o", "o.system('x')", "```"),
]


@pytest.mark.parametrize("texts", LINES)
def test_a_program_of_which_every_part_is_a_line_is_found(texts: tuple[str, ...]) -> None:
    whole = "\n".join(each for each in texts if "```" not in each)
    assert whole in codes(*texts)


def test_a_program_in_pieces_is_one_program_and_not_also_a_torn_one() -> None:
    whole = "import os\nprint(os.getcwd())"
    pieces = [whole[at : at + 3] for at in range(0, len(whole), 3)]
    assert codes("```python\n", *pieces, "\n```")[0] == whole
    assert codes("```python\n", *pieces, "\n```").count(whole) == 1
    assert not any("\n\n" in each for each in codes("```python\n", *pieces, "\n```"))


def test_texts_without_end_are_read_as_one() -> None:
    assert codes("```python\n", *("x = 1\n",) * 500, "print(x)\n```") == ["x = 1\n" * 500 + "print(x)"]
