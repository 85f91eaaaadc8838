"""Parts as a client may join them: separately, concatenated, or on separate lines."""

import pytest

from qwed_a2a.message import PayloadType
from qwed_a2a.parsing import UnparsableMessage
from qwed_a2a.proxy.content import MessageContent
from qwed_a2a.proxy.message_schema import A2APart
from qwed_a2a.proxy.payloads import extract_payloads


def codes(*texts: str) -> list[str]:
    result = extract_payloads(MessageContent(tuple(A2APart(text=text) for text in texts)))
    assert not isinstance(result, UnparsableMessage)
    return [payload.payload["code"] for payload in result.payloads if payload.kind is PayloadType.CODE_EXECUTION]


LINES = [
    ("f = __import__", "g = f('os')", "g.system('x')"),
    ("x = 1 #", "f = __import__('os')", "f.system('x')"),
    ("```python", "import os as o", "o.system('x')", "```"),
]


@pytest.mark.parametrize("texts", LINES)
def test_a_program_of_which_every_part_is_a_line_is_found(texts: tuple[str, ...]) -> None:
    whole = "\n".join(text for text in texts if "```" not in text)
    assert whole in codes(*texts)


def test_a_program_in_pieces_is_one_program_and_not_also_a_torn_one() -> None:
    whole = "import os\nprint(os.getcwd())"
    pieces = [whole[position : position + 3] for position in range(0, len(whole), 3)]
    assert codes("```python\n", *pieces, "\n```")[0] == whole
    assert codes("```python\n", *pieces, "\n```").count(whole) == 1
    assert not any("\n\n" in text for text in codes("```python\n", *pieces, "\n```"))


def test_texts_without_end_are_read_as_one() -> None:
    assert codes("```python\n", *("x = 1\n",) * 500, "print(x)\n```") == ["x = 1\n" * 500 + "print(x)"]
