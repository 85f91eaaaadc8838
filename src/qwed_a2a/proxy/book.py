"""The card of the agent behind the proxy: seen, pinned, and shown to clients as our own."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from a2a.types import AgentCapabilities, AgentCard, AgentSkill

from qwed.ledger.keyring import Keyring
from qwed.proxies.identity import Say
from qwed.proxies.kernel import Kernel
from qwed.proxies.releases import Releases
from qwed.proxies.waiting import Waiting
from qwed_a2a.proxy.card import NoCard, digest_of, ours, reachable, reads_back
from qwed_a2a.proxy.fetching import Unreached, fetch_card, fetch_extended
from qwed_a2a.proxy.held import CARD, EXTENDED, HeldCard, findings
from qwed_a2a.proxy.options import JWKS_PATH, Options
from qwed_a2a.proxy.pins import Pin, changes, keep, kept, pin_of
from qwed_a2a.proxy.signatures import Trusted, is_signed, keys_in, signed
from qwed_sdk.hook.call import Unusable

PROTOCOL = "a2a"
RELEASE = "release_agent_card"
_AGAIN = 5.0
"""Seconds before a card that could not be seen is looked for again."""
_TRIES = 3
_PAUSE = 0.5
_NOT_READ_BACK = (
    "with --compat-0-3 clients of 1.x cannot verify this card: its security schemes have members of 1.x where 0.3 has "
    "others"
)
_HELD = "The card of this agent is held back until an approver has released it: until then no message passes."


class CardBook:
    """Looks at the agent's card at the start and ever again; one that is not the pinned one stops every message."""

    def __init__(
        self, options: Options, place: Path, keyring: Keyring, kernel: Kernel, say: Say, beside: Keyring | None = None
    ) -> None:
        self._options = options
        self._beside = beside
        self._place = place
        self._keyring = keyring
        self._kernel = kernel
        self._say = say
        self._turn = asyncio.Lock()
        self._trusted: Mapping[str, Trusted] | None = None
        self._pin: Pin | None = None
        self._seen: AgentCard | None = None
        self._shown: AgentCard | None = None
        self._reachable: AgentCard | None = None
        self._held: HeldCard | None = None
        self._unseen: str | None = None
        self._releases: Releases[HeldCard] | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look at the agent's card for the first time; Unusable where there is none to pin."""
        jwks, upstream = self._options.upstream_jwks, self._options.upstream
        self._trusted = None if jwks is None else keys_in(jwks)
        self._pin = kept(self._place, upstream)
        waiting = Waiting(PROTOCOL, self._kernel.place, self._kernel.agent_id)
        try:
            await self._look()
        except (NoCard, Unreached) as error:
            hint = "; is the agent running there?" if isinstance(error, Unreached) else ""
            raise Unusable(f"the card of {upstream} cannot be used: {error}{hint}") from None
        self._task = asyncio.create_task(self._watch(waiting))

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def card(self) -> AgentCard:
        """The card that clients are shown: addresses of ours, signed by us. While one is held, the one before it."""
        if self._shown is None:
            self._shown = self._signed(self._pin.card if self._pin else _placeholder(self._options.name))
        return self._shown

    async def extended(self, headers: Mapping[str, str]) -> AgentCard | str:
        """The extended card, asked for with these headers, pinned and held as the card is; else why it is not shown."""
        refusal, pin = self.refusal(), self._pin
        if refusal is not None or pin is None:
            return refusal or "no card of the agent is pinned yet"
        try:
            # By name in small letters: where both name a header, the operator's is sent and the client's is not.
            sent = {name.lower(): value for every in (headers, self._options.headers) for name, value in every.items()}
            card = await fetch_extended(self.upstream(), sent)
            self._reads_back(card)
            digest = digest_of(card)
            held = None if digest in pin.extended else await self._held_extended(card, digest)
        except (NoCard, Unreached, Unusable) as error:
            return f"the extended card of `{self._options.name}` cannot be shown: {error}"
        return self._signed(card) if held is None else self._told(held)

    async def _held_extended(self, card: AgentCard, digest: str) -> HeldCard | None:
        async with self._turn:
            pin = self._pin
            reasons = ("it is not one that was seen before",) if pin is None or pin.extended else ()
            held = await self._screened(card, digest, reasons, EXTENDED)
            if held is None and pin is not None:
                await self._keep(pin.with_extended(digest))
                self._say(f"pinned the extended card of `{self._options.name}` at first sight: sha256 {digest}")
        return held

    def upstream(self) -> AgentCard:
        """The agent's own card, its interfaces those we may speak to, at the address that the proxy was told."""
        if self._reachable is None:
            known = self._pin.card if self._pin is not None else self._seen
            if known is None:
                raise NoCard("it was not seen yet")
            self._reachable = reachable(known, self._options.upstream)
        return self._reachable

    def refusal(self) -> str | None:
        """Why no message may pass now, and what to do; None where all may."""
        if self._task is None or self._task.done():
            return "nobody looks at the agent's card: start the proxy again"
        if self._unseen is not None:
            return self._unseen
        return None if self._held is None else self._told(self._held)

    def jwks(self) -> dict[str, Any]:
        """The public keys with which cards are signed, and those that sign verdicts where they are ours too."""
        beside = [] if self._beside is None else self._beside.public_jwks()
        return {"keys": [*self._keyring.public_jwks(), *beside]}

    def _signed(self, card: AgentCard) -> AgentCard:
        url = self._options.public_url
        shown = ours(card, url, compat=self._options.compat)
        return signed(shown, self._keyring.current, url + JWKS_PATH)

    def _reads_back(self, card: AgentCard) -> bool:
        return not self._options.compat or reads_back(ours(card, self._options.public_url, compat=True))

    def _told(self, held: HeldCard) -> str:
        said = f"no message passes `{held.name}`" if held.what == CARD else f"`{held.name}` does not show it"
        if self._releases is None:
            return f"{said}: its {held.what} is held: {'; '.join(held.reasons)} (an approver is about to be asked)"
        self._releases.see([held])
        refusal = self._releases.refusal(held, held.name)
        return f"{said}: {refusal.reason}" + (f"; {refusal.suggestion}" if refusal.suggestion else "")

    async def _watch(self, waiting: Waiting) -> None:
        async with anyio.create_task_group() as tasks:
            self._releases = Releases(self._kernel, waiting, tasks, self._release, RELEASE)
            if self._held is not None:
                self._say(self._told(self._held))
            while self._options.recheck > 0:
                await anyio.sleep(self._options.recheck if self._unseen is None else _AGAIN)
                await self._look_again()
            await anyio.sleep_forever()

    async def _look_again(self) -> None:
        before, held = self._unseen, self._held
        try:
            await self._look()
        except (NoCard, Unreached, Unusable) as error:
            self._unseen = (
                f"no message passes `{self._options.name}`: its card cannot be looked at ({error}); it is looked for "
                f"again every {_AGAIN:g} seconds"
            )
        if self._unseen is not None and before is None:
            self._say(self._unseen)
        if before is not None and self._unseen is None and self._held is None:
            self._say(f"messages pass `{self._options.name}` again: its card is the one that is pinned")
        if self._held is not None and (held is None or held.digest != self._held.digest):
            self._say(self._told(self._held))

    async def _look(self) -> None:
        """See the card as it is now, and whether it is the one that is pinned."""
        card = await self._fetched()
        if self._trusted is not None and not is_signed(card, self._trusted):
            raise NoCard("none of the keys in --upstream-jwks signed it")
        reachable(card, self._options.upstream)
        compatible = self._reads_back(card)
        async with self._turn:
            self._held = await self._held_now(card)
            if not compatible and self._seen is None:
                self._say(_NOT_READ_BACK)
            self._seen, self._unseen = card, None

    async def _held_now(self, card: AgentCard) -> HeldCard | None:
        digest, pin = digest_of(card), self._pin
        if pin is not None and pin.digest == digest:
            return None
        if self._held is not None and self._held.digest == digest:
            return self._held
        held = await self._screened(card, digest, () if pin is None else changes(pin.card, card), CARD)
        if held is None:
            await self._keep(pin_of(self._options.upstream, card))
            self._say(f"pinned the card of `{self._options.name}` at first sight: sha256 {digest}")
        return held

    async def _fetched(self) -> AgentCard:
        """The card; one that was not reached is tried again, since a look that fails stops every message."""
        for _ in range(_TRIES - 1):
            with suppress(Unreached):
                return await fetch_card(self._options.upstream, self._options.headers)
            await anyio.sleep(_PAUSE)
        return await fetch_card(self._options.upstream, self._options.headers)

    async def _screened(self, card: AgentCard, digest: str, reasons: Iterable[str], what: str) -> HeldCard | None:
        """The card as it is held; None where nothing speaks against it."""
        said = await anyio.to_thread.run_sync(findings, card)
        every = (*reasons, *(each.reason for each in said))
        if not every:
            return None
        options, previous = self._options, "" if self._pin is None else self._pin.digest
        words = tuple(each.words for each in said if each.words)
        return HeldCard(options.name, options.upstream, card, digest, every, previous, words, what)

    async def _release(self, held: HeldCard, by: str) -> None:
        """Let exactly this card pass, if it is still the one that the agent has."""
        async with self._turn:
            try:
                done = await (self._release_extended(held) if held.what == EXTENDED else self._release_card(held, by))
            except Unusable as error:
                self._say(f"the {held.what} of `{held.name}` was released and is not shown yet: {error}")
                return
        if done:
            self._say(f"{by} released the {held.what} of `{held.name}`: sha256 {held.digest}")

    async def _release_card(self, held: HeldCard, by: str) -> bool:
        if self._held is None or self._held.digest != held.digest:
            return False
        extended = () if self._pin is None else self._pin.extended
        await self._keep(pin_of(self._options.upstream, held.card, by, extended))
        self._held = None
        return True

    async def _release_extended(self, held: HeldCard) -> bool:
        if self._pin is None:
            return False
        await self._keep(self._pin.with_extended(held.digest))
        return True

    async def _keep(self, pin: Pin) -> None:
        await anyio.to_thread.run_sync(keep, self._place, pin)
        self._pin, self._shown, self._reachable = pin, None, None


def _placeholder(name: str) -> AgentCard:
    """What clients are shown of an agent whose first card is held."""
    skill = AgentSkill(id="held", name="held", description=_HELD, tags=["held"])
    plain = ["text/plain"]
    return AgentCard(
        name=name,
        description=_HELD,
        version="0",
        capabilities=AgentCapabilities(),
        skills=[skill],
        default_input_modes=plain,
        default_output_modes=plain,
    )
