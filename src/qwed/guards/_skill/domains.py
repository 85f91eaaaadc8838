"""Detection of domains that imitate a known domain by their letters, their suffix or their subdomains."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import unquote

from qwed.model.data_files import read_mapping
from qwed.model.unicode_normal import normalize

MAX_HOST = 300
"""Characters of a domain that are checked; no domain name is longer than 253."""

LOOKALIKE_LETTERS = read_mapping(__file__, "lookalike_letters.txt")
"""Letters of other alphabets, by the Latin letter they resemble."""
_LOOKALIKE_MARKS = {
    ".": "\u3002\uff61\u2024\u00b7\u2027\u0589\u06d4",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212\u30fc\u02d7",
    "/": "\u2044\u2215\u29f8\u2571",
}
"""Punctuation that resembles the separators of a URL."""
_TO_MARK = str.maketrans({twin: mark for mark, twins in _LOOKALIKE_MARKS.items() for twin in twins})
LOOKALIKES = _TO_MARK | str.maketrans({twin: letter for letter, twins in LOOKALIKE_LETTERS.items() for twin in twins})
"""Translation table of letters and punctuation that resemble Latin ones."""
_DIGITS = str.maketrans("0134579", "oleastg")
_INVISIBLE_CATEGORIES = frozenset(("Cf", "Cc", "Mn"))
_BEFORE_COUNTRY = frozenset({"ac", "co", "com", "edu", "gov", "ne", "net", "or", "org"})
_SIBLING_DOMAINS = frozenset(
    {"bitbucket.io", "github.dev", "github.io", "githubusercontent.com", "gitlab.io", "npmjs.org"}
)
"""Other domains of the owners of the known ones: they are not imitations, but not trusted either."""
_LONG_NAME, _LONG_PART = 6, 5


def fold_domain(text: str) -> str:
    """Normalise the text as a careless reader or a lenient program would: lower case, compatibility forms, nothing
    invisible."""
    plain = normalize("NFKC", text).casefold().strip()
    return "".join(
        character for character in plain if unicodedata.category(character) not in _INVISIBLE_CATEGORIES
    ).translate(_TO_MARK)


def to_latin(text: str) -> str:
    """Replace every letter that resembles a Latin one with that one."""
    decomposed = normalize("NFKD", text.translate(LOOKALIKES))
    return "".join(
        character for character in decomposed if unicodedata.category(character) not in _INVISIBLE_CATEGORIES
    ).translate(LOOKALIKES)


def candidate_hosts(address: str) -> Iterator[str]:
    """Yield every part of a URL that could be taken for its domain."""
    text = fold_domain(unquote(address[: 2 * MAX_HOST]))
    bare = (text.partition("://")[2] or text).lstrip("/")
    for part in re.split(r"[/?#\\]", bare, maxsplit=1)[0].split("@"):
        yield part.partition(":")[0].strip(". ")[:MAX_HOST]


def is_within(host: str, domain: str) -> bool:
    """Return True if the host is the domain or a subdomain of it."""
    return host == domain or host.endswith(f".{domain}")


def imitated_domain(host: str, known: Iterable[str]) -> str:
    """Return the known domain that `host` could be taken for, or ""; a host of a known domain imitates nothing."""
    known_domains = sorted(known)
    if any(is_within(host, domain) for domain in (*known_domains, *_SIBLING_DOMAINS)):
        return ""
    latin = to_latin(_decode_punycode(host[:MAX_HOST])).casefold()
    return next((domain for domain in known_domains if _resembles(latin, domain)), "")


def _resembles(host: str, known_domain: str) -> bool:
    labels, parts = _labels(host), _labels(known_domain)
    if _skeleton(host.replace(".", "")) == _skeleton(known_domain.replace(".", "")) or labels[-len(parts) :] == parts:
        return True
    if f".{_words(known_domain)}." in f".{_words(host)}." or "".join(parts) in labels[:-1]:
        return True
    return len(parts) == 2 and _name_resembles(host, known_domain)


def _name_resembles(host: str, known_domain: str) -> bool:
    """Return True if the registered name is the known one with another suffix, a typing error or an addition."""
    name, ending = _registered_name(host)
    real, real_ending = _registered_name(known_domain)
    if _skeleton(name) == _skeleton(real):
        return True
    if _skeleton(real) in map(_skeleton, name.split("-")):
        return True
    if len(real) >= _LONG_PART and _skeleton(real) in _skeleton(name):
        return True
    return ending == real_ending and len(real) >= _LONG_NAME and _is_one_edit(name, real)


def _registered_name(host: str) -> tuple[str, str]:
    labels = host.split(".")
    index = -3 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _BEFORE_COUNTRY else -2
    return (labels[index], ".".join(labels[index + 1 :])) if len(labels) >= -index else (host, "")


def _is_one_edit(left: str, right: str) -> bool:
    """Return True if one letter is added, omitted or replaced, or two adjacent letters are swapped."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = next((index for index, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), None)
    if start is None:
        return len(left) != len(right)
    one, other = left[start:], right[start:]
    return one[1:] == other[1:] or one[1:] == other or one == other[1:] or one == other[1::-1] + other[2:]


def _words(host: str) -> str:
    """Return the words of a host, separated by dots or hyphens."""
    return ".".join(_labels(host.replace("-", ".")))


def _labels(host: str) -> list[str]:
    return [_skeleton(label) for label in host.split(".")]


@lru_cache(maxsize=512)
def _skeleton(text: str) -> str:
    plain = text.translate(_DIGITS).replace("rn", "m").replace("vv", "w").replace("cl", "d").replace("i", "l")
    return plain.replace("-", "")


def _decode_punycode(host: str) -> str:
    """Return the host with its internationalised labels decoded."""
    return ".".join(map(_decode_label, host.split(".")))


def _decode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label
