"""Classification of values assigned to a secret's name: secrets, placeholders, references, hashes, plain words."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from math import log2

from qwed.guards._secrets.public_examples import is_public_example
from qwed.model.data_files import read_table

_MAX_PLACEHOLDER_WORD = 64
_MAX_EXAMINED = 512
"""Characters; placeholders are never longer."""
_PLACEHOLDER = re.compile(
    r"(?is)<.*>?|\$\{.*|\$\(.*|(?-i:\$[A-Za-z_]\w*)|\{\{.*|\{.*\}|%\(?\w*\)?[sd%]?|%[A-Za-z_]\w*%|:[a-z_]\w*|\?+"
    r"|(.)\1*|#\{.*|@@?[\w.-]+@@?|__\w+__|\[\[.*|<%.*|\{cipher\}.*|ENC\[.*|[x*.#_\u2022\u25cf-]+|x{3,}[\w-]*"
    r"|[\w-]*xxxx|[\w.-]*\.\.\.|\[(?:secret|redacted|masked|hidden|filtered|removed|token|your|api|password).*"
    r"|(?:your|my|insert|replace|enter|put|add|paste|change|set)[_ -].*[_ -]?"
    r"(?:here|key|token|secret|password|pass|me|this|value)"
    r"|(?:your|insert|replace|enter)[_ -].*|the[_ -](?:key|token|secret|password).*|.*[_ -](?:goes[_ -])?here"
    r"|(?:dummy|fake|example|sample|mock|placeholder|not-?a-?real)(?:[_ .-].*)?"
    r"|(?:.*[_ .-])?(?:dummy|fake|example|placeholder|changeme|redacted|notreal)(?:[_ .-].*)?"
    r"|test[_-](?:key|token|secret|api[_-]?key|password|value)(?:[_-]?\d{1,4})?"
)
_REFERENCE = re.compile(
    r"(?is)(?:os\.(?:environ|getenv)|process\.env|import\.meta\.env|deno\.env|system\.getenv|env\.|env\[|getenv"
    r"|environ\[).*|arn:aws[\w-]*:.*|projects/[^/]+/secrets/.*|@microsoft\.keyvault.*"
    r"|(?:vault|secretref|ref|ssm|op|gcp|awssm|azkv|keyvault|keyring|kms|sops|secret|secrets?manager|parameterstore"
    r"|gsm|sm)[:+](?://?)?.*|!(?:ref|sub|getatt|vault|secret|env).*|(?:fn::|resolve:|\$this->).*|random_password\..*"
    r"|(?:var|local|module|data|self|this|settings|config|conf|cfg|secrets|args|opts|options|params|props|state|ctx"
    r"|request|req|env|context|credentials|values|inputs|steps|event|process|app|user|body|form|session|creds)"
    r"(?:\.|->|\?\.)[\w.>?-]+"
)
# Name of a constant or a field in place of its value.
_OWN_NAME = re.compile(
    r"(?i:[a-z]+(?:_[a-z]+)*_(?:password|passwd|pass|pwd|secret|token|key))"
    r"|(?i:(?:password|passwd|secret|token)(?:_[a-z]+)+)|[a-z]+(?:[A-Z][a-z]+)*(?:Password|Token|Secret|Key)"
)
_PLACEHOLDER_TEXT = read_table(__file__, "placeholders.txt")
_STAND_INS = (_PLACEHOLDER, _REFERENCE, _OWN_NAME)
_PLACEHOLDER_WORDS = frozenset(_PLACEHOLDER_TEXT.split())
_SEPARATORS = re.compile(r"[_\s.!?:*-]+")

_HASH = re.compile(
    r"(?i)\$(?:2[abxy]?|argon2\w*|pbkdf2\S*|scrypt|[156y]|apr1|P|H|S)\$.*|(?:sha\d+|md5|blake2\w|sri)[:$-].*"
    r"|(?:pbkdf2_sha\d+|bcrypt_sha256|argon2|scrypt:\S+|pbkdf2:\S+)\$.*|\{(?:ssha|sha|md5|crypt|pbkdf2)[^}]*\}.*"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?")
_VERSION = re.compile(r"[~^>=<v]{0,2}\d+\.\d+(?:\.\d+)?(?:[-+.][\w.]{1,20})?")
_ADDRESS = re.compile(
    r"(?i)[a-z][a-z0-9+.-]{1,20}://(?![^/@\s:]*:[^/@\s]*@)"
    r"|\$\{?[a-z_]\w{0,40}\}?/|(?:\./|\.\./|~/|[a-z]:\\|/(?=[\w.-]+/|[\w-]+\Z|[\w-]+\.\w+\Z))"
)
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+(?<!\d{3})[!;]?")
# Addresses of crypto tokens are public; the private keys are longer.
_ACCOUNT = re.compile(r"0x[0-9a-fA-F]{40}")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_VOWEL = re.compile(r"(?i)[aeiouy]")
_HARSH = re.compile(r"(?i)[bcdfghjklmnpqrstvwxz]{4}")
_SLUG_WORD = r"(?:[a-z]+|[A-Z]+|[A-Z][a-z]+|\d{1,4}|v\d+)"
_SLUG = re.compile(rf"{_SLUG_WORD}(?:[-_./:]{_SLUG_WORD})+")
_LONG_NUMBER = re.compile(r"\d{6,}|0x")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_SWITCH = re.compile("[A-Za-z][0-9]+(?=[A-Za-z])")
_MIN_SWITCHES = 3
_SHORTEST_WORD = 4
_WORDY_SHARE = 0.6
_MIN_RANDOM = 12


def is_placeholder(value: str) -> bool:
    """Return True if the value is a placeholder or a reference to a secret."""
    if len(value) > _MAX_EXAMINED:
        return value.startswith(("<", "${", "{{"))
    lowered = value.lower()
    if "your_" in lowered or "your-" in lowered or any(pattern.fullmatch(value) for pattern in _STAND_INS):
        return True
    return len(value) <= _MAX_PLACEHOLDER_WORD and _SEPARATORS.sub("", lowered) in _PLACEHOLDER_WORDS


def is_hash(value: str) -> bool:
    """Return True if the value is a digest, from which the secret cannot be recovered."""
    return _HASH.fullmatch(value) is not None


def is_non_secret(value: str) -> bool:
    """Return True if the value is a path, a URL, a date, a version or a name in code."""
    return _ADDRESS.match(value) is not None or any(
        pattern.fullmatch(value) for pattern in (_DATE, _VERSION, _DOTTED, _ACCOUNT)
    )


def is_uuid(value: str) -> bool:
    """Return True if the value is a UUID."""
    return _UUID.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Return True if the value is long, has no blanks, and mixes letters and digits."""
    return len(value) >= _MIN_RANDOM and " " not in value and bool(_DIGIT.search(value) and _LETTER.search(value))


def is_wordy(value: str) -> bool:
    """Return True if most of the value reads like words with small numbers between them."""
    if _SLUG.fullmatch(value) or _LONG_NUMBER.search(value):
        return not _LONG_NUMBER.search(value)
    if value.isalnum() and len(_SWITCH.findall(value)) >= _MIN_SWITCHES:
        return False
    shouted = value.isupper()
    words = [word for word in _WORD.findall(value) if len(word) >= _SHORTEST_WORD and (shouted or not word.isupper())]
    readable = sum(len(word) for word in words if _VOWEL.search(word) and not _HARSH.search(word))
    letters = sum(map(str.isalnum, value))
    return readable >= _WORDY_SHARE * letters


def is_jumbled(value: str) -> bool:
    """Return True if upper and lower case are mixed as in no word and no identifier."""
    if len(value) < _MIN_JUMBLED or not value.isascii() or not value.isalpha() or value.islower() or value.isupper():
        return False
    words = _WORD.findall(value)
    readable = sum(len(word) for word in words if len(word) >= _SHORTEST_WORD and _VOWEL.search(word))
    return sum(len(word) > 1 and not _VOWEL.search(word) for word in words) > 1 and 3 * readable <= len(value)


_MIN_JUMBLED = 10


def is_password_like(value: str) -> bool:
    """Return True if the value looks like a generated password: both cases, digits, no words."""
    if is_jumbled(value.strip("!?@#$%^&*+")):
        return True
    mixed = not value.islower() and not value.isupper() and bool(_DIGIT.search(value) and _LETTER.search(value))
    return mixed and len(value) >= _MIN_PASSWORD_LIKE and not is_wordy(value) and not _ALGORITHM.search(value)


_MIN_PASSWORD_LIKE = 8
_ALGORITHM = re.compile(r"(?i)sha-?\d|md5|hmac|kdf|aes|rsa|crypt|argon|utf|base\d|x509|oauth|http|[_/\\(]")


def entropy(value: str) -> float:
    """Return the bits of entropy in each character of the value."""
    size = len(value)
    return -sum(count / size * log2(count / size) for count in Counter(value).values())


def is_composed(value: str) -> bool:
    """Return True if the value has a letter, and a digit or a special character inside, as no word has."""
    body = value.strip("!?.:,;")
    return bool(_LETTER.search(body) and _NOT_LETTER.search(body)) and not _QUANTITY.fullmatch(body)


_NOT_LETTER = re.compile("[0-9!@#$%^&*?+~|]")
_QUANTITY = re.compile(r"[0-9]+[\w.-]{0,2}[A-Za-z-]{0,12}|[A-Za-z]+-?[0-9]{1,2}|[a-z_]+")


def is_strongly_composed(value: str) -> bool:
    """Return True if the value is of at least three of lower case, upper case, digits and special characters."""
    if len(value) < _MIN_PASSWORD_LIKE or not _DIGIT.search(value):
        return False
    return _classes(value) >= _MIN_CLASSES and not _SLUG.fullmatch(value)


def has_all_classes(value: str) -> bool:
    """Return True if the value has lower case, upper case, digits and special characters."""
    return len(value) >= _MIN_PASSWORD_LIKE and _classes(value) == len(_CLASSES)


def _classes(value: str) -> int:
    body = _PERCENT.sub("", value)
    return sum(pattern.search(body) is not None for pattern in _CLASSES)


_PERCENT = re.compile("%[0-9A-Fa-f]{2}")
_CLASSES = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"), re.compile(r"[!@#$%^&*?+~]"))
_MIN_CLASSES = 3


def is_real_value(value: str) -> bool:
    """Return True if the value is a real secret: no placeholder, reference, hash or template."""
    if is_hash(value) or is_public_example(value) or (is_placeholder(value) and not _is_disguised(value)):
        return False
    return not _MARKS.intersection(value) or len(_TEMPLATED.sub("", value)) >= _MIN_REAL


def _is_disguised(value: str) -> bool:
    """Return True if the value is a password with the word for a placeholder beside it."""
    rest = _PLACEHOLDER_PART.sub("", value[:_MAX_EXAMINED])
    return len(rest) < len(value) and rest.isascii() and has_all_classes(rest) and not _MARKS.intersection(rest)


_PLACEHOLDER_PART = re.compile(r"(?i)[_ .-]?(?:dummy|fake|example|placeholder|changeme|redacted|notreal)[_ .-]?")
_MARKS = frozenset("{$%")
_TEMPLATED = re.compile(r"\$?\{[^{}]{0,80}\}|%\w{1,40}%|(?:^|(?<=[:/@ ]))\$[A-Za-z_]\w{0,40}")
_MIN_REAL = 4


def base64_bytes(value: str) -> bytes:
    """Decode base64 in either alphabet, with or without padding; return b"" if it is not valid."""
    body = value.rstrip("=").translate(_TO_STANDARD)
    whole = len(body) - (len(body) % 4 == 1)
    try:
        return b64decode(body[:whole] + "=" * (-whole % 4), validate=True)
    except NotBase64:
        return b""


def decode_base64(value: str) -> str:
    """Decode base64; return "" if it is not valid."""
    return base64_bytes(value).decode("latin-1")


_TO_STANDARD = str.maketrans("-_", "+/")


def is_base64_text(value: str) -> bool:
    """Return True if the value is base64 of readable text."""
    inner = decode_base64(value).rstrip("\n")
    return len(inner) >= _MIN_REAL and inner.isascii() and inner.isprintable()


def is_credentials(value: str) -> bool:
    """Return True if the value is base64 of `user:password`."""
    return is_base64_text(value) and ":" in decode_base64(value)


def is_very_random(value: str) -> bool:
    """Return True if the value is almost certainly random: long, mixed, and neither words nor an identifier."""
    return len(value) >= _MIN_VERY_RANDOM and looks_random(value) and not is_wordy(value) and not is_uuid(value)


_MIN_VERY_RANDOM = 24
