"""Inputs that are small to send and expensive to compute; each must be answered in time, and none VERIFIED."""

import base64
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class CostlyInput(NamedTuple):
    """Request to `/verify/<engine>`."""

    name: str
    engine: str
    body: dict[str, Any]
    file: Callable[[], bytes] | None = None
    """Builder of the file; it is compressed at sending time because that takes a while."""

    def sent(self) -> dict[str, Any]:
        """Return the whole request."""
        if self.file is None:
            return self.body
        return {**self.body, "content_base64": base64.b64encode(self.file()).decode()}


def _math(name: str, expression: str, **more: Any) -> CostlyInput:
    return CostlyInput(name, "math", {"expression": expression, **more})


def _logic(name: str, query: str) -> CostlyInput:
    return CostlyInput(name, "logic", {"query": query})


def costly_inputs() -> Iterator[CostlyInput]:
    """Yield every input."""
    yield from _formulas()
    yield from _propositions()
    yield from _texts()
    yield from _files()


def _formulas() -> Iterator[CostlyInput]:
    yield _math("multinomial", "(a+b+c+d+e+f)**12 = 1")
    yield _math("power tower", "9**9**9**9 = 1")
    yield _math("factorials of factorials", "factorial(factorial(factorial(factorial(9)))) = 1")
    yield _math("exclamation marks", "9!!!!!!!! = 1")
    yield _math("tower of exp", "exp(exp(exp(exp(exp(100))))) = 1")
    yield _math("3,000 parentheses", "(" * 3000 + "1" + ")" * 3000 + " = 2")
    yield _math("a hundred thousand digits", "9" * 100_000 + " = 1")
    yield _math("a large exponent", "(x+1)^100000 = x")
    yield _math("a long sum", "sum(k^k, k, 1, 10^12) = 1")
    yield _math("a hard integral", "integrate(sin(x^x)*exp(cos(x)^5)/(x^7+x+1), x) = x")
    yield _math("nested roots", "sqrt(1+" * 200 + "x" + ")" * 200 + " = 1")
    yield _math("many functions", " + ".join(f"sin(x+{n})*cos(x-{n})^{n % 7}" for n in range(400)) + " = 0")
    yield _math(
        "a wide matrix",
        "det([" + ",".join("[" + ",".join(f"x^{i}+{j}" for j in range(30)) + "]" for i in range(30)) + "]) = 1",
    )
    yield _math("LaTeX in LaTeX", "\\frac{1}{" * 1000 + "x" + "}" * 1000 + " = 1")


def _propositions() -> Iterator[CostlyInput]:
    yield _logic("pigeons", _pigeons(12))
    yield _logic("3-SAT at the threshold", _random_sat(250, 1065))
    yield _logic("a cubic", "(AND (GT x 0) (GT y 0) (GT z 0) (EQ (PLUS (POW x 3) (POW y 3)) (POW z 3)) (VAR x Int))")
    yield _logic(
        "quantifiers", "(FORALL ((a Int) (b Int)) (EXISTS ((c Int) (d Int)) (EQ (TIMES a b c) (PLUS 7 (TIMES d d d)))))"
    )
    yield _logic("3,000 negations", "(NOT " * 3000 + "p" + ")" * 3000)
    yield _logic("3,000 parentheses", "(" * 3000)


def _texts() -> Iterator[CostlyInput]:
    yield CostlyInput("nested SQL", "sql", {"query": "SELECT " + "(" * 3000 + "1" + ")" * 3000})
    yield CostlyInput("many joins", "sql", {"query": "SELECT 1 FROM a" + " JOIN b" * 5000})
    yield CostlyInput("many unions", "sql", {"query": " UNION ".join(["SELECT 1 FROM t"] * 5000)})
    yield CostlyInput("many negations", "sql", {"query": "SELECT 1 FROM t WHERE " + "NOT " * 5000 + "a"})
    yield CostlyInput("nested Python", "code", {"code": "[" * 5000 + "]" * 5000})
    yield CostlyInput("much Python", "code", {"code": "import os\n" + "x = os.listdir()\n" * 6000})
    yield CostlyInput("one expression", "code", {"code": "import os;x=" + "+".join(["os.listdir()"] * 7000)})
    yield CostlyInput("nested JavaScript", "code", {"code": "eval(" * 3000 + ")" * 3000, "language": "javascript"})
    yield CostlyInput("unclosed JavaScript", "code", {"code": "{[(" * 20_000, "language": "javascript"})
    yield CostlyInput("nested shell", "code", {"code": "$(" * 2000 + "rm -rf /" + ")" * 2000, "language": "bash"})
    yield CostlyInput("heredocs", "code", {"code": "cat <<A\n" * 1500 + "rm -rf /\n", "language": "bash"})
    yield CostlyInput(
        "a long context", "fact", {"claim": "The plant opened in 1999", "context": "The plant opened. " * 50_000}
    )
    yield CostlyInput("one endless word", "fact", {"claim": "a" * 5000, "context": "b" * 900_000})
    yield CostlyInput("catastrophic spaces", "fact", {"claim": "It rose by 5 %", "context": "1 " * 400_000 + "!"})


def _files() -> Iterator[CostlyInput]:
    yield _stats("a million rows", lambda: b"a\n" + b"1\n" * 1_000_000, "correlation of a and a > 2")
    yield _stats("many columns", lambda: (",".join(f"c{n}" for n in range(50_000)) + "\n").encode() * 2, "rows = 99")
    yield _stats("an open quote", lambda: b'a\n"' + b"x" * 5_000_000, "rows = 99")
    yield _stats("nested JSON", lambda: b"[" * 100_000, "rows = 99")
    yield _stats("a gzip of zeros", lambda: zlib.compress(bytes(50_000_000), 9), "rows = 99")
    yield CostlyInput("a large picture", "image", {"claim": "width = 1"}, lambda: _png(60_000, 60_000, 100))
    yield CostlyInput("zeros for pixels", "image", {"claim": "width = 1"}, lambda: _png(12_000, 12_000, 0))
    yield CostlyInput("a chunk of text", "image", {"claim": "width = 2"}, _text_bomb)


def _stats(name: str, file: Callable[[], bytes], claim: str) -> CostlyInput:
    return CostlyInput(name, "stats", {"query": claim}, file)


def _pigeons(count: int) -> str:
    holes = range(count - 1)
    housed = [f"(OR {' '.join(f'p{pigeon}h{hole}' for hole in holes)})" for pigeon in range(count)]
    alone = [
        f"(NOT (AND p{one}h{hole} p{other}h{hole}))" for hole in holes for one in range(count) for other in range(one)
    ]
    return f"(AND {' '.join(housed + alone)})"


def _random_sat(variables: int, clauses: int) -> str:
    chance = random.Random(7)

    def literal() -> str:
        name = f"v{chance.randrange(variables)}"
        return name if chance.random() < 0.5 else f"(NOT {name})"

    return f"(AND {' '.join(f'(OR {literal()} {literal()} {literal()})' for _ in range(clauses))} q (NOT q))"


def _png(width: int, height: int, cut: int) -> bytes:
    """Return an image of zeros with this declared size; it holds `cut` rows, or all."""
    rows = cut or height
    squeeze = zlib.compressobj(9)
    data = b"".join(squeeze.compress(bytes(1 + width)) for _ in range(rows)) + squeeze.flush()
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + _chunk(b"IDAT", data)
        + _chunk(b"IEND", b"")
    )


def _text_bomb() -> bytes:
    text = _chunk(b"zTXt", b"Comment\x00\x00" + zlib.compress(bytes(200_000_000), 9))
    small = _png(1, 1, 0)
    return small[:33] + text * 5 + small[33:]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
