"""Guide, SkillProvenanceGuard: where a skill comes from, read off its manifest, and whether its bytes are the ones.

A domain counts only where it is spelled plainly: what a reader, a browser or a resolver could take for another one
(a port, a user, a dot too many, letters of other alphabets) is refused, not repaired.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from qwed.guards._skill.code import suspicious, trouble_in
from qwed.guards._skill.domains import hosts_in, imitated, read_as, within
from qwed.guards.text import readable
from qwed.words import Record

TRUSTED_DOMAINS = frozenset({"github.com", "gitlab.com", "bitbucket.org", "pypi.org", "npmjs.com", "qwedai.com"})
BLOCKED_REGISTRIES = frozenset({"clawdhub.com", "moltbot.io", "skillhub.ai", "agentstore.dev", "llm-tools.net"})
DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
FEW_DOWNLOADS = 10
ROUND_DOWNLOADS = 1000
MAX_DOWNLOADS = 10**15
MAX_URL = 2_048
MAX_NAME = 256
MAX_FINDINGS = 50
MAX_SHOWN = 100

_DOMAIN = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
_DIGEST = re.compile(r"([a-z0-9]{1,20}):([0-9a-fA-F]{1,256})")
_CLIMBS = re.compile(r"(?:^|/)\.\.?(?:/|$)")


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
        listed = _listed("trusted_domains", trusted_domains or ())
        self.trusted_registries = (
            None if trusted_registries is None else _listed("trusted_registries", trusted_registries)
        )
        self.trusted_domains = TRUSTED_DOMAINS | listed
        self.require_digest = require_digest

    def verify_skill(self, manifest: Mapping[str, Any], content: bytes | None = None) -> SkillVerdict:
        """TRUSTED where every check passes, otherwise BLOCKED with the findings; never raises.

        With the `content` of the skill its digest is compared with the one that the manifest names.
        """
        if not isinstance(manifest, Mapping):
            return blocked("", "the manifest is not an object of fields")
        name = manifest.get("name")
        called = name if isinstance(name, str) else ""
        if trouble := trouble_in(manifest):
            return blocked(called, trouble)
        checks: tuple[Callable[[Mapping[str, Any]], Iterator[_Finding]], ...] = (
            _required,
            self._registry,
            self._source,
            self._digest,
            _downloads,
            _code,
        )
        found = [each for check in checks for each in check(manifest)]
        return _verdict(called, found + list(_compared(manifest.get("digest"), content)))

    def _registry(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        given = manifest.get("registry")
        if not isinstance(given, str) or not given.strip():
            yield _Finding("`registry` is missing, name the domain the skill was loaded from")
            return
        if problem := self._registry_problem(given, read_as(given[:MAX_URL])):
            yield _Finding(f"registry `{shown(given)}` {problem}")

    def _registry_problem(self, given: str, domain: str) -> str:
        plain = given.isascii() and given.lower() == domain
        if self.trusted_registries is not None:
            known = plain and domain in self.trusted_registries
            return "" if known else f"is not one of the trusted registries{self._alike(given)}"
        if any(within(host, registry) for host in hosts_in(given) for registry in BLOCKED_REGISTRIES):
            return "is known not to vet its skills"
        if not plain or not _DOMAIN.fullmatch(domain):
            return f"is not a plain domain name{self._alike(given)}"
        if real := imitated(domain, self._known):
            return f"looks like `{real}` and is not"
        return "is an internationalised name, which can look like any other" if "xn--" in domain else ""

    def _source(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        given = manifest.get("source_url")
        if not isinstance(given, str) or not given.strip():
            yield _Finding("`source_url` is missing, give the https address of the source")
            return
        if problem := _address_problem(given):
            yield _Finding(f"source_url `{shown(given)}` {problem}{self._alike(given)}")
            return
        domain = urlsplit(given).hostname or ""
        if domain.removeprefix("www.") not in self.trusted_domains and domain not in self.trusted_domains:
            yield _Finding(f"source_url domain `{shown(domain)}` is not trusted{self._alike(given)}")

    @property
    def _known(self) -> frozenset[str]:
        return self.trusted_domains | BLOCKED_REGISTRIES | (self.trusted_registries or frozenset())

    def _alike(self, address: str) -> str:
        """Which known domain an address that is refused could be taken to lead to."""
        spelt = address.partition("://")[2].partition("/")[0].lower() or address.lower()
        for host in hosts_in(address):
            if real := imitated(host, self._known) or (host if host in self._known and host != spelt else ""):
                return f", it looks like `{real}`"
        return ""

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


def _compared(digest: Any, content: bytes | None) -> Iterator[_Finding]:
    """Whether the bytes are those that the digest was made of; what cannot be compared is not the same."""
    if content is None:
        return
    if not isinstance(content, bytes | bytearray | memoryview):
        yield _Finding(f"the content is a `{type(content).__name__}` and not bytes, so its digest cannot be compared")
        return
    found = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if found is None or found[1] not in DIGEST_LENGTHS:
        yield _Finding("`digest` names nothing that the content could be compared with")
    elif not hmac.compare_digest(hashlib.new(found[1], content).hexdigest(), found[2].lower()):
        yield _Finding("the content is not the one that `digest` was made of, do not load it")


def _required(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    for field in ("name", "version"):
        value = manifest.get(field)
        if not isinstance(value, str) or not value.strip():
            yield _Finding(f"`{field}` is missing or empty")
        elif not value.isprintable() or not readable(value):
            yield _Finding(f"`{field}` holds invisible characters")
        elif len(value) > MAX_NAME:
            yield _Finding(f"`{field}` is longer than {MAX_NAME} characters")


def _downloads(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    count = manifest.get("download_count")
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        yield _Finding("`download_count` is not a count", grave=False)
    elif count > MAX_DOWNLOADS:
        yield _Finding(f"`download_count` is more than {MAX_DOWNLOADS}, nobody counted that", grave=False)
    elif count < FEW_DOWNLOADS:
        yield _Finding(f"only {count} downloads, the skill may have been planted", grave=False)
    elif count % ROUND_DOWNLOADS == 0:
        yield _Finding(f"exactly {count} downloads, the count may be inflated", grave=False)


def _code(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    """Code and credential paths where a manifest has no reason to hold any."""
    seen: set[str] = set()
    for text, what in suspicious(manifest):
        if what not in seen:
            seen.add(what)
            yield _Finding(f"suspicious content `{shown(text)}`: {what}")


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
    if _CLIMBS.search(unquote(parts.path)):
        return "does not lead where it seems to, leave `..` out"
    return "" if _DOMAIN.fullmatch((parts.hostname or "").lower()) else "has no plain domain"


def _listed(parameter: str, given: Iterable[str]) -> frozenset[str]:
    domains = [given] if isinstance(given, str | bytes) else list(given)
    if isinstance(given, str | bytes) or not all(isinstance(each, str) for each in domains):
        raise TypeError(f"{parameter} takes a set of domain names, such as {{'skills.example.org'}}")
    return frozenset(map(read_as, domains))


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
