"""SkillProvenanceGuard: check the origin of a skill by its manifest, and the digest of its content (guide).

A domain is accepted only in its plain form: an address that a reader, a browser or a resolver could take for another
one (a port, a user, an extra dot, letters of other alphabets) is refused, not repaired.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from qwed.guards._skill.code import find_suspicious, manifest_problem
from qwed.guards._skill.domains import candidate_hosts, fold_domain, imitated_domain, is_within
from qwed.guards.text_scan import is_readable
from qwed.model import Record

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
    """Verdict on a skill, with every finding against it."""

    verified: bool
    status: str
    skill_name: str
    risk_level: str
    findings: list[str]
    message: str


class _Finding(NamedTuple):
    text: str
    is_severe: bool = True


class SkillProvenanceGuard:
    """Checker for the manifest of a skill before it is loaded."""

    def __init__(
        self,
        trusted_registries: Iterable[str] | None = None,
        trusted_domains: Iterable[str] | None = None,
        require_digest: bool = True,
    ) -> None:
        extra_domains = _domain_set("trusted_domains", trusted_domains or ())
        self.trusted_registries = (
            None if trusted_registries is None else _domain_set("trusted_registries", trusted_registries)
        )
        self.trusted_domains = TRUSTED_DOMAINS | extra_domains
        self.require_digest = require_digest

    def verify_skill(self, manifest: Mapping[str, Any], content: bytes | None = None) -> SkillVerdict:
        """Return TRUSTED if every check passes, otherwise BLOCKED with the findings; never raises.

        With the `content` of the skill its digest is compared with the one in the manifest.
        """
        if not isinstance(manifest, Mapping):
            return blocked_verdict("", "the manifest is not an object of fields")
        name = manifest.get("name")
        skill_name = name if isinstance(name, str) else ""
        if problem := manifest_problem(manifest):
            return blocked_verdict(skill_name, problem)
        checks: tuple[Callable[[Mapping[str, Any]], Iterator[_Finding]], ...] = (
            _check_required,
            self._check_registry,
            self._check_source,
            self._check_digest,
            _check_downloads,
            _check_code,
        )
        findings = [finding for check in checks for finding in check(manifest)]
        return _verdict(skill_name, findings + list(_compare_digest(manifest.get("digest"), content)))

    def _check_registry(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        registry = manifest.get("registry")
        if not isinstance(registry, str) or not registry.strip():
            yield _Finding("`registry` is missing, name the domain the skill was loaded from")
            return
        if problem := self._registry_problem(registry, fold_domain(registry[:MAX_URL])):
            yield _Finding(f"registry `{display_text(registry)}` {problem}")

    def _registry_problem(self, spelling: str, domain: str) -> str:
        plain = spelling.isascii() and spelling.lower() == domain
        if self.trusted_registries is not None:
            is_trusted = plain and domain in self.trusted_registries
            return "" if is_trusted else f"is not one of the trusted registries{self._lookalike_note(spelling)}"
        if any(is_within(host, registry) for host in candidate_hosts(spelling) for registry in BLOCKED_REGISTRIES):
            return "is known not to vet its skills"
        if not plain or not _DOMAIN.fullmatch(domain):
            return f"is not a plain domain name{self._lookalike_note(spelling)}"
        if real := imitated_domain(domain, self._known_domains):
            return f"looks like `{real}` and is not"
        return "is an internationalised name, which can look like any other" if "xn--" in domain else ""

    def _check_source(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        source_url = manifest.get("source_url")
        if not isinstance(source_url, str) or not source_url.strip():
            yield _Finding("`source_url` is missing, give the https address of the source")
            return
        if problem := _address_problem(source_url):
            yield _Finding(f"source_url `{display_text(source_url)}` {problem}{self._lookalike_note(source_url)}")
            return
        domain = urlsplit(source_url).hostname or ""
        if domain.removeprefix("www.") not in self.trusted_domains and domain not in self.trusted_domains:
            yield _Finding(
                f"source_url domain `{display_text(domain)}` is not trusted{self._lookalike_note(source_url)}"
            )

    @property
    def _known_domains(self) -> frozenset[str]:
        return self.trusted_domains | BLOCKED_REGISTRIES | (self.trusted_registries or frozenset())

    def _lookalike_note(self, address: str) -> str:
        """Return a note that names the known domain which a refused address could be taken for, or ""."""
        authority = address.partition("://")[2].partition("/")[0].lower() or address.lower()
        for host in candidate_hosts(address):
            if real := imitated_domain(host, self._known_domains) or (
                host if host in self._known_domains and host != authority else ""
            ):
                return f", it looks like `{real}`"
        return ""

    def _check_digest(self, manifest: Mapping[str, Any]) -> Iterator[_Finding]:
        digest = manifest.get("digest")
        if digest is None or digest == "":
            if self.require_digest:
                yield _Finding("`digest` is missing, give it as `sha256:<hex>`")
            return
        match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
        if match is None:
            yield _Finding("`digest` is not of the form `algorithm:hex_digest`")
        elif match[1] not in DIGEST_LENGTHS:
            yield _Finding(f"digest algorithm `{match[1]}` is not supported, use {', '.join(DIGEST_LENGTHS)}")
        elif len(match[2]) != DIGEST_LENGTHS[match[1]]:
            yield _Finding(f"`digest` has {len(match[2])} hex digits, {match[1]} has {DIGEST_LENGTHS[match[1]]}")


def _compare_digest(digest: Any, content: bytes | None) -> Iterator[_Finding]:
    """Yield a finding if the content does not match the digest or cannot be compared."""
    if content is None:
        return
    if not isinstance(content, bytes | bytearray | memoryview):
        yield _Finding(f"the content is a `{type(content).__name__}` and not bytes, so its digest cannot be compared")
        return
    match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if match is None or match[1] not in DIGEST_LENGTHS:
        yield _Finding("`digest` is not usable, so the content cannot be compared with it")
    elif not hmac.compare_digest(hashlib.new(match[1], content).hexdigest(), match[2].lower()):
        yield _Finding("the content does not match `digest`, do not load it")


def _check_required(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    for field in ("name", "version"):
        value = manifest.get(field)
        if not isinstance(value, str) or not value.strip():
            yield _Finding(f"`{field}` is missing or empty")
        elif not value.isprintable() or not is_readable(value):
            yield _Finding(f"`{field}` contains invisible characters")
        elif len(value) > MAX_NAME:
            yield _Finding(f"`{field}` is longer than {MAX_NAME} characters")


def _check_downloads(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    count = manifest.get("download_count")
    if count is None:
        return
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        yield _Finding("`download_count` is not a count", is_severe=False)
    elif count > MAX_DOWNLOADS:
        yield _Finding(f"`download_count` is more than {MAX_DOWNLOADS}, which is not plausible", is_severe=False)
    elif count < FEW_DOWNLOADS:
        yield _Finding(f"only {count} downloads, the skill may have been planted", is_severe=False)
    elif count % ROUND_DOWNLOADS == 0:
        yield _Finding(f"exactly {count} downloads, the count may be inflated", is_severe=False)


def _check_code(manifest: Mapping[str, Any]) -> Iterator[_Finding]:
    """Yield a finding for each kind of code or credential path in the manifest."""
    seen: set[str] = set()
    for text, what in find_suspicious(manifest):
        if what not in seen:
            seen.add(what)
            yield _Finding(f"suspicious content `{display_text(text)}`: {what}")


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


def _domain_set(parameter: str, values: Iterable[str]) -> frozenset[str]:
    domains = [values] if isinstance(values, str | bytes) else list(values)
    if isinstance(values, str | bytes) or not all(isinstance(domain, str) for domain in domains):
        raise TypeError(f"{parameter} takes a set of domain names, such as {{'skills.example.org'}}")
    return frozenset(map(fold_domain, domains))


def display_text(text: str) -> str:
    """Return the text shortened, with control characters escaped for a terminal."""
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return short if short.isprintable() else ascii(short)[1:-1]


def blocked_verdict(name: str, finding: str) -> SkillVerdict:
    """Return the verdict on a skill that cannot be checked."""
    return _verdict(name, [_Finding(finding)])


def _verdict(name: str, findings: list[_Finding]) -> SkillVerdict:
    texts = [finding.text for finding in findings][:MAX_FINDINGS]
    if not texts:
        message = f"skill `{display_text(name)}` passed every check"
        return SkillVerdict(True, "TRUSTED", name, "none", [], message)
    risk = "high" if any(finding.is_severe for finding in findings) else "medium"
    message = f"skill `{display_text(name)}` is blocked: {texts[0]}"
    return SkillVerdict(False, "BLOCKED", name, risk, texts, message)
