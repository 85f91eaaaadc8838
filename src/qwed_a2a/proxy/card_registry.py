"""Registry of the agent's card: fetched, pinned, screened, and published to clients as the proxy's own."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from a2a.types import AgentCapabilities, AgentCard, AgentSkill

from qwed.ledger.keyring import Keyring
from qwed.proxies.agent_identity import PrintLine
from qwed.proxies.backend import DecisionBackend
from qwed.proxies.pending_approvals import PendingApprovals
from qwed.proxies.quarantine import ReleaseRequests
from qwed_a2a.proxy.agent_card import (
    InvalidCardError,
    card_digest,
    proxy_card,
    restrict_interfaces,
    survives_v0_3_round_trip,
)
from qwed_a2a.proxy.card_client import CardUnreachableError, fetch_card, fetch_extended_card
from qwed_a2a.proxy.card_pin import CardPin, describe_changes, load_pin, make_pin, save_pin
from qwed_a2a.proxy.proxy_options import JWKS_PATH, A2AProxyOptions
from qwed_a2a.proxy.quarantined_card import CARD, EXTENDED, QuarantinedCard, screen_card
from qwed_a2a.proxy.signatures import is_signed_by, load_trusted_keys, sign_card
from qwed_sdk.errors import UsageError

if TYPE_CHECKING:
    from jwt import PyJWK

PROTOCOL = "a2a"
RELEASE_TOOL = "release_agent_card"
RETRY_SECONDS = 5.0
"""Seconds before a card that could not be fetched is fetched again."""
_FETCH_ATTEMPTS = 3
FETCH_PAUSE_SECONDS = 0.5
_COMPAT_WARNING = (
    "with --compat-0-3 clients of 1.x cannot verify this card: its security schemes have members of 1.x where 0.3 has "
    "others"
)
_QUARANTINED_DESCRIPTION = (
    "The card of this agent is held back until an approver has released it: until then no message passes."
)


class CardRegistry:
    """Checks the agent's card at the start and periodically; a card that is not the pinned one stops every message."""

    def __init__(
        self,
        options: A2AProxyOptions,
        directory: Path,
        keyring: Keyring,
        backend: DecisionBackend,
        print_line: PrintLine,
        verdict_keyring: Keyring | None = None,
    ) -> None:
        self._options = options
        self._verdict_keyring = verdict_keyring
        self._directory = directory
        self._keyring = keyring
        self._backend = backend
        self._print_line = print_line
        self._lock = asyncio.Lock()
        self._trusted: Mapping[str, PyJWK] | None = None
        self._pin: CardPin | None = None
        self._seen: AgentCard | None = None
        self._published: AgentCard | None = None
        self._reachable: AgentCard | None = None
        self._quarantined: QuarantinedCard | None = None
        self._unavailable: str | None = None
        self._releases: ReleaseRequests[QuarantinedCard] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch the agent's card for the first time; raise UsageError if there is none to pin."""
        jwks, upstream = self._options.upstream_jwks, self._options.upstream
        self._trusted = None if jwks is None else load_trusted_keys(jwks)
        self._pin = load_pin(self._directory, upstream)
        pending = PendingApprovals(PROTOCOL, self._backend.location, self._backend.agent_id)
        try:
            await self._check_card()
        except (InvalidCardError, CardUnreachableError) as error:
            hint = "; is the agent running there?" if isinstance(error, CardUnreachableError) else ""
            raise UsageError(f"the card of {upstream} cannot be used: {error}{hint}") from None
        self._task = asyncio.create_task(self._watch(pending))

    async def close(self) -> None:
        """Stop the periodic check."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def card(self) -> AgentCard:
        """Return the published card, with our addresses and signature; while one is quarantined, the one before it."""
        if self._published is None:
            self._published = self._sign(self._pin.card if self._pin else _placeholder_card(self._options.name))
        return self._published

    async def extended(self, headers: Mapping[str, str]) -> AgentCard | str:
        """Return the extended card, fetched with these headers and pinned like the card, or why it is not shown."""
        refusal, pin = self.refusal(), self._pin
        if refusal is not None or pin is None:
            return refusal or "no card of the agent is pinned yet"
        try:
            # By lower-case name: if both set a header, the operator's value is sent and not the client's.
            all_headers = {
                name.lower(): value for group in (headers, self._options.headers) for name, value in group.items()
            }
            card = await fetch_extended_card(self.upstream(), all_headers)
            self._is_compatible(card)
            digest = card_digest(card)
            quarantined = None if digest in pin.extended else await self._quarantine_extended(card, digest)
        except (InvalidCardError, CardUnreachableError, UsageError) as error:
            return f"the extended card of `{self._options.name}` cannot be shown: {error}"
        return self._sign(card) if quarantined is None else self._refusal_text(quarantined)

    async def _quarantine_extended(self, card: AgentCard, digest: str) -> QuarantinedCard | None:
        async with self._lock:
            pin = self._pin
            reasons = ("it is not one that was seen before",) if pin is None or pin.extended else ()
            quarantined = await self._screen(card, digest, reasons, EXTENDED)
            if quarantined is None and pin is not None:
                await self._save(pin.with_extended(digest))
                self._print_line(f"pinned the extended card of `{self._options.name}` at first sight: sha256 {digest}")
        return quarantined

    def upstream(self) -> AgentCard:
        """Return the agent's own card, with the interfaces that the proxy may use, at the configured address."""
        if self._reachable is None:
            card = self._pin.card if self._pin is not None else self._seen
            if card is None:
                raise InvalidCardError("it has not been fetched yet")
            self._reachable = restrict_interfaces(card, self._options.upstream)
        return self._reachable

    def refusal(self) -> str | None:
        """Return why no message may pass now, and what to do; None if messages may pass."""
        if self._task is None or self._task.done():
            return "the agent's card is not being checked: restart the proxy"
        if self._unavailable is not None:
            return self._unavailable
        return None if self._quarantined is None else self._refusal_text(self._quarantined)

    def jwks(self) -> dict[str, Any]:
        """Return the public keys that sign cards, and those that sign verdicts if they are ours."""
        verdict_keys = [] if self._verdict_keyring is None else self._verdict_keyring.public_jwks()
        return {"keys": [*self._keyring.public_jwks(), *verdict_keys]}

    def _sign(self, card: AgentCard) -> AgentCard:
        url = self._options.public_url
        published = proxy_card(card, url, compat=self._options.compat)
        return sign_card(published, self._keyring.current, url + JWKS_PATH)

    def _is_compatible(self, card: AgentCard) -> bool:
        return not self._options.compat or survives_v0_3_round_trip(
            proxy_card(card, self._options.public_url, compat=True)
        )

    def _refusal_text(self, quarantined: QuarantinedCard) -> str:
        prefix = (
            f"no message passes `{quarantined.name}`"
            if quarantined.what == CARD
            else f"`{quarantined.name}` does not show it"
        )
        if self._releases is None:
            reasons = "; ".join(quarantined.reasons)
            return f"{prefix}: its {quarantined.what} is held: {reasons} (an approver is about to be asked)"
        self._releases.request_release([quarantined])
        refusal = self._releases.refusal(quarantined, quarantined.name)
        return f"{prefix}: {refusal.reason}" + (f"; {refusal.suggestion}" if refusal.suggestion else "")

    async def _watch(self, pending: PendingApprovals) -> None:
        async with anyio.create_task_group() as tasks:
            self._releases = ReleaseRequests(self._backend, pending, tasks, self._release, RELEASE_TOOL)
            if self._quarantined is not None:
                self._print_line(self._refusal_text(self._quarantined))
            while self._options.recheck > 0:
                await anyio.sleep(self._options.recheck if self._unavailable is None else RETRY_SECONDS)
                await self._recheck()
            await anyio.sleep_forever()

    async def _recheck(self) -> None:
        before, previous = self._unavailable, self._quarantined
        try:
            await self._check_card()
        except (InvalidCardError, CardUnreachableError, UsageError) as error:
            self._unavailable = (
                f"no message passes `{self._options.name}`: its card cannot be checked ({error}); the check is "
                f"repeated every {RETRY_SECONDS:g} seconds"
            )
        if self._unavailable is not None and before is None:
            self._print_line(self._unavailable)
        if before is not None and self._unavailable is None and self._quarantined is None:
            self._print_line(f"messages pass `{self._options.name}` again: its card is the one that is pinned")
        if self._quarantined is not None and (previous is None or previous.digest != self._quarantined.digest):
            self._print_line(self._refusal_text(self._quarantined))

    async def _check_card(self) -> None:
        """Fetch the current card and compare it with the pinned one."""
        card = await self._fetch()
        if self._trusted is not None and not is_signed_by(card, self._trusted):
            raise InvalidCardError("none of the keys in --upstream-jwks signed it")
        restrict_interfaces(card, self._options.upstream)
        compatible = self._is_compatible(card)
        async with self._lock:
            self._quarantined = await self._quarantine_card(card)
            if not compatible and self._seen is None:
                self._print_line(_COMPAT_WARNING)
            self._seen, self._unavailable = card, None

    async def _quarantine_card(self, card: AgentCard) -> QuarantinedCard | None:
        digest, pin = card_digest(card), self._pin
        if pin is not None and pin.digest == digest:
            return None
        if self._quarantined is not None and self._quarantined.digest == digest:
            return self._quarantined
        quarantined = await self._screen(card, digest, () if pin is None else describe_changes(pin.card, card), CARD)
        if quarantined is None:
            await self._save(make_pin(self._options.upstream, card))
            self._print_line(f"pinned the card of `{self._options.name}` at first sight: sha256 {digest}")
        return quarantined

    async def _fetch(self) -> AgentCard:
        """Return the card, with retries: a failed check stops every message."""
        for _ in range(_FETCH_ATTEMPTS - 1):
            with suppress(CardUnreachableError):
                return await fetch_card(self._options.upstream, self._options.headers)
            await anyio.sleep(FETCH_PAUSE_SECONDS)
        return await fetch_card(self._options.upstream, self._options.headers)

    async def _screen(self, card: AgentCard, digest: str, reasons: Iterable[str], what: str) -> QuarantinedCard | None:
        """Return the card as quarantined, or None if it has no findings."""
        findings = await anyio.to_thread.run_sync(screen_card, card)
        all_reasons = (*reasons, *(finding.reason for finding in findings))
        if not all_reasons:
            return None
        options, previous = self._options, "" if self._pin is None else self._pin.digest
        words = tuple(finding.words for finding in findings if finding.words)
        return QuarantinedCard(options.name, options.upstream, card, digest, all_reasons, previous, words, what)

    async def _release(self, quarantined: QuarantinedCard, by: str) -> None:
        """Pin exactly this card if it is still the current one."""
        async with self._lock:
            try:
                done = await (
                    self._release_extended(quarantined)
                    if quarantined.what == EXTENDED
                    else self._release_card(quarantined, by)
                )
            except UsageError as error:
                self._print_line(
                    f"the {quarantined.what} of `{quarantined.name}` was released and is not shown yet: {error}"
                )
                return
        if done:
            self._print_line(
                f"{by} released the {quarantined.what} of `{quarantined.name}`: sha256 {quarantined.digest}"
            )

    async def _release_card(self, quarantined: QuarantinedCard, by: str) -> bool:
        if self._quarantined is None or self._quarantined.digest != quarantined.digest:
            return False
        extended = () if self._pin is None else self._pin.extended
        await self._save(make_pin(self._options.upstream, quarantined.card, by, extended))
        self._quarantined = None
        return True

    async def _release_extended(self, quarantined: QuarantinedCard) -> bool:
        if self._pin is None:
            return False
        await self._save(self._pin.with_extended(quarantined.digest))
        return True

    async def _save(self, pin: CardPin) -> None:
        await anyio.to_thread.run_sync(save_pin, self._directory, pin)
        self._pin, self._published, self._reachable = pin, None, None


def _placeholder_card(name: str) -> AgentCard:
    """Return the published card of an agent whose first card is quarantined."""
    skill = AgentSkill(id="held", name="held", description=_QUARANTINED_DESCRIPTION, tags=["held"])
    plain = ["text/plain"]
    return AgentCard(
        name=name,
        description=_QUARANTINED_DESCRIPTION,
        version="0",
        capabilities=AgentCapabilities(),
        skills=[skill],
        default_input_modes=plain,
        default_output_modes=plain,
    )
