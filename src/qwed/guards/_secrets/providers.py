"""Token patterns that the rules from gitleaks lack, or have with one length only.

Each row is a kind, the required literals, and a pattern whose group 1, or whole match, is the secret.
"""

from qwed.model.data_files import read_rows, read_table

VENDOR_PREFIXES = tuple(read_table(__file__, "vendor_prefixes.txt").split())
"""Prefixes of tokens whose length their vendors do not state; what follows must be random."""
_PARTS = {
    "{vendor_prefixes}": " ".join(VENDOR_PREFIXES),
    "{vendor}": "|".join(prefix.replace(".", r"\.") for prefix in VENDOR_PREFIXES),
    "{uuid}": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "{start}": "(?<![A-Za-z0-9])",
    "{end}": "(?![A-Za-z0-9])",
}


def _insert_parts(text: str) -> str:
    for name, part in _PARTS.items():
        text = text.replace(name, part)
    return text


PROVIDERS: tuple[tuple[str, str, str], ...] = tuple(
    (kind, _insert_parts(literals), _insert_parts(pattern))
    for kind, literals, pattern in read_rows(__file__, "providers.txt", 3)
)
