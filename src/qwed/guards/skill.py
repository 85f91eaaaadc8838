"""Guide, SkillProvenanceGuard: where a skill comes from, read off its manifest alone.

A domain counts only where it is spelled plainly: what a reader, a browser or a resolver could take for another one
(a port, a user, a dot too many, letters of other alphabets) is refused, not repaired.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from qwed.guards.path import resolve
from qwed.guards.text import strings_in
from qwed.words import Record

TRUSTED_DOMAINS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "pypi.org", "npmjs.com", "qwedai.com"})
BLOCKED_REGISTRIES = frozenset({"clawdhub.com", "moltbot.io", "skillhub.ai", "agentstore.dev", "llm-tools.net"})
DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
FEW_DOWNLOADS = 10
ROUND_DOWNLOADS = 1000
MAX_URL = 2_048
MAX_FINDINGS = 50
MAX_SHOWN = 100

_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
_DIGEST = re.compile(r"([a-z0-9]{1,20}):([0-9a-fA-F]{1,256})")
_LOOK_ALIKES = str.maketrans("013457", "oleast")
_METADATA = frozenset({"name", "description", "source_url"})
_SUSPICIOUS_TEXT = (
    (r"(?<![\w.])(?:eval|exec|execfile|compile|__import__)\s*\(", "runs text as code"),
    (r"\bnew\s+function\s*\(|(?<![\w.])function\s*\(\s*['\"]|\bvm\.runin|\bimportlib\b", "runs text as code"),
    (r"\bos\s*\.\s*(?:system|popen|exec[lv]p?e?|spawn\w*)\b|\bsubprocess\b|\bchild_process\b", "starts processes"),
    (r"\b(?:pickle|marshal|dill)\s*\.\s*loads?\b|\byaml\s*\.\s*(?:unsafe_)?load\s*\(", "rebuilds objects from bytes"),
    (r"\b(?:curl|wget|fetch|iwr)\b[^|;&\n]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b", "downloads text and runs it"),
    (r"base64\s+(?:-d|--decode)\b|\bb64decode\s*\(|\bfrombase64string\b|\batob\s*\(", "decodes hidden text"),
    (r"\brm\s+-[a-z]*[rf]|/dev/tcp/|\bnc(?:at)?\s+-\w*e|\bchmod\s+[0-7]*777", "attacks the system"),
    (r"\bpowershell\b.{0,40}-e(?:nc|p)", "attacks the system"),
    (r"\bos\s*\.\s*(?:environ|getenv)\b|\bprocess\s*\.\s*env\b|\bgetenv\s*\(|\bprintenv\b", "reads credentials"),
    (r"\.ssh/|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws/credentials|/etc/(?:passwd|shadow)", "reads credentials"),
    (r"\.netrc\b|\.git-credentials|\bkeychain\b|\bkeyring\s*\.|/proc/self/environ", "reads credentials"),
    (r"\bsecurity\s+find-generic-password|\bcredential_?manager\b|wallet\.dat", "reads credentials"),
)
_SUSPICIOUS = tuple((re.compile(pattern, re.IGNORECASE), what) for pattern, what in _SUSPICIOUS_TEXT)


@dataclass(frozen=True)
class SkillVerdict(Record):
    """Whether the skill may be loaded, and every finding against it."""

    verified: bool
    status: str
    skill_name: str
    risk_level: str
    findings: list[str]
    message: str


class _Finding(NamedTuple):
    text: str
    grave: bool = True


class SkillProvenanceGuard:
    """Vets the manifest of a skill before it is loaded."""

    def __init__(
        self,
        trusted_registries: Iterable[str] | None = None,
        trusted_domains: Iterable[str] | None = None,
        require_digest: bool = True,
    ) -> None:
        self.trusted_registries = None if trusted_registries is None else frozenset(map(_folded, trusted_registries))
        self.trusted_domains = TRUSTED_DOMAINS | frozenset(map(_folded, trusted_domains or ()))
        self.require_digest = require_digest

    def verify_skill(self, manifest: Mapping[str, Any]) -> SkillVerdict:
        """TRUSTED where every check passes, otherwise BLOCKED with the findings; never raises."""
        if not isinstance(manifest, Mapping):
            return _verdict("", [_Finding("the manifest is not an object of fields")])
        checks: tuple[Callable[[Mapping[str, Any]], Iterator[_Finding]], ...] = (
            _required,
            self._registry,
            self._source,
            self._digest,
            _downloads,
            _content,
        )
        name = manifest.get("name")
        return _verdict(name if isinstance(name, str) else "", [each for check in checks for each in check(manifest)])

    def _registry(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        given = manifest.get("registry")
        if not isinstance(given, str) or not given.strip():
            yield _Finding("`registry` is missing, name the domain the skill was loaded from")
            return
        domain = _folded(given)
        if self.trusted_registries is not None:
            if domain not in self.trusted_registries or domain != given.lower():
                yield _Finding(f"registry `{shown(given)}` is not one of the trusted registries")
        elif _is_blocked(domain):
            yield _Finding(f"registry `{shown(given)}` is known not to vet its skills")
        elif not _DOMAIN.fullmatch(domain) or domain != given.lower():
            yield _Finding(f"registry `{shown(given)}` is not a plain domain name")
        elif real := self._imitated(domain):
            yield _Finding(f"registry `{shown(given)}` looks like `{real}` and is not")

    def _imitated(self, domain: str) -> str:
        """The known domain that this one could be taken for."""
        for known in sorted(self.trusted_domains | BLOCKED_REGISTRIES):
            if domain == known or domain.endswith(f".{known}"):
                return ""
        for known in sorted(self.trusted_domains | BLOCKED_REGISTRIES):
            if _skeleton(domain) == _skeleton(known) or domain.startswith(f"{known}.") or f".{known}." in domain:
                return known
        return "an internationalised name" if "xn--" in domain else ""

    def _source(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        given = manifest.get("source_url")
        if not isinstance(given, str) or not given.strip():
            yield _Finding("`source_url` is missing, give the https address of the source")
            return
        problem = _address_problem(given)
        if problem:
            yield _Finding(f"source_url `{shown(given)}` {problem}")
            return
        domain = (urlsplit(given).hostname or "").lower()
        if domain.removeprefix("www.") not in self.trusted_domains and domain not in self.trusted_domains:
            yield _Finding(f"source_url domain `{shown(domain)}` is not trusted")

    def _digest(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        given = manifest.get("digest")
        if given is None or given == "":
            if self.require_digest:
                yield _Finding("`digest` is missing, give it as `sha256:<hex>`")
            return
        found = _DIGEST.fullmatch(given) if isinstance(given, str) else None
        if found is None:
            yield _Finding("`digest` is not of the form `algorithm:hex_digest`")
        elif found[1] not in DIGEST_LENGTHS:
            yield _Finding(f"digest algorithm `{found[1]}` is not supported, use {', '.join(DIGEST_LENGTHS)}")
        elif len(found[2]) != DIGEST_LENGTHS[found[1]]:
            yield _Finding(f"`digest` has {len(found[2])} hex digits, {found[1]} has {DIGEST_LENGTHS[found[1]]}")
        elif len(set(found[2].lower())) == 1:
            yield _Finding("`digest` is a placeholder, not the digest of anything")


def _required(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    for field in ("name", "version"):
        value = manifest.get(field)
        if not isinstance(value, str) or not value.strip():
            yield _Finding(f"`{field}` is missing or empty")
        elif not value.isprintable():
            yield _Finding(f"`{field}` holds invisible characters")


def _downloads(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    count = manifest.get("download_count")
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        yield _Finding("`download_count` is not a count", grave=False)
    elif count < FEW_DOWNLOADS:
        yield _Finding(f"only {count} downloads, the skill may have been planted", grave=False)
    elif count % ROUND_DOWNLOADS == 0:
        yield _Finding(f"exactly {shown(str(count))} downloads, the count may be inflated", grave=False)


def _content(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    """Code and credential paths where a manifest has no reason to hold any."""
    strings = strings_in({key: value for key, value in manifest.items() if key not in _METADATA})
    if not strings.complete:
        yield _Finding("the manifest is too large to be read, shorten it")
    seen: set[str] = set()
    for _, text in strings:
        plain = unicodedata.normalize("NFKC", text)
        found = [what for pattern, what in _SUSPICIOUS if pattern.search(plain)]
        if not found and "\n" not in plain and "/" in plain and resolve(plain, None).sensitive:
            found = ["reads credentials"]
        for what in found:
            if what not in seen:
                seen.add(what)
                yield _Finding(f"suspicious content `{shown(plain)}`: {what}")


def _address_problem(address: str) -> str:
    if len(address) > MAX_URL or not address.isascii() or not address.isprintable() or re.search(r"[\s\\]", address):
        return "is not a plain address"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme.lower() != "https":
        return "is not https"
    if "@" in parts.netloc:
        return "names a user before its domain"
    if port not in (None, 443):
        return "names a port"
    return "" if _DOMAIN.fullmatch((parts.hostname or "").lower()) else "has no plain domain"


def _folded(domain: str) -> str:
    """The domain as a careless reader takes it."""
    text = unicodedata.normalize("NFKC", str(domain)).casefold().strip()
    visible = "".join(each for each in text if unicodedata.category(each) not in ("Cf", "Cc", "Mn"))
    return visible.replace("\u3002", ".")


def _is_blocked(domain: str) -> bool:
    """Whether any way of reading `domain` ends at a blocked registry."""
    bare = domain.partition("://")[2] or domain
    host = re.split(r"[/?#\\]", bare, maxsplit=1)[0].rpartition("@")[2].partition(":")[0].rstrip(".")
    return any(host == blocked or host.endswith(f".{blocked}") for blocked in BLOCKED_REGISTRIES)


def _skeleton(domain: str) -> str:
    plain = domain.translate(_LOOK_ALIKES).replace("rn", "m").replace("vv", "w").replace("i", "l")
    return plain.replace("-", "").replace(".", "")


def shown(text: str) -> str:
    """The text as a finding shows it: short, and with nothing in it that a terminal would obey."""
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return short if short.isprintable() else ascii(short)[1:-1]


def blocked(name: str, finding: str) -> SkillVerdict:
    """The verdict on a skill that cannot even be looked at."""
    return _verdict(name, [_Finding(finding)])


def _verdict(name: str, findings: list[_Finding]) -> SkillVerdict:
    texts = [finding.text for finding in findings][:MAX_FINDINGS]
    if not texts:
        message = f"skill `{shown(name)}` passed every check"
        return SkillVerdict(True, "TRUSTED", name, "none", [], message)
    risk = "high" if any(finding.grave for finding in findings) else "medium"
    message = f"skill `{shown(name)}` is blocked: {texts[0]}"
    return SkillVerdict(False, "BLOCKED", name, risk, texts, message)
