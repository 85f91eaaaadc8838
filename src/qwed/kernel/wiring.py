"""Services put together: the embedded store, the engines, the signing key, the first organisation."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from qwed.engines.bound import Seat
from qwed.engines.pool import EnginePool
from qwed.engines.table import ENGINES
from qwed.engines.verdicts import Verdicts
from qwed.kernel.choosing import open_store, starting
from qwed.kernel.keeping.erasure import forget_content
from qwed.kernel.keeping.vault import Vault, opened_master
from qwed.kernel.people.organisations import minted
from qwed.kernel.proving.soundness import require_sound
from qwed.kernel.services import Services
from qwed.ledger.attest import Signer
from qwed.ledger.keyring import Keyring, fresh_keyring, open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.ledger.vault import MASTER_FILE, Master, VaultError, fresh_master
from qwed.settings import Settings, SettingsError
from qwed.store.protocol import VAULT, Store
from qwed.translate.provider import Provider, Translator
from qwed.words.clock import Clock
from qwed.words.ids import new_id

OWNER_KEY_FILE = "owner.key"
_PATIENCE = 30


class Opened(NamedTuple):
    """Everything that runs, the first organisation, and on the very first start the owner's key."""

    services: Services
    organisation_id: str
    owner_key: str | None


def open_services(
    settings: Settings, *, in_memory: bool = False, clock: Clock | None = None, seat: Seat | None = None
) -> Opened:
    """Open the store and whatever stands around it. The engine workers start with the first question for them."""
    clock = clock or Clock()
    directory = settings.directory
    with ExitStack() as failing, starting(settings, in_memory=in_memory):
        keyring = fresh_keyring() if in_memory else open_keyring(directory, settings.signing_key_file)
        sequencer = Sequencer(keyring, clock)
        store = open_store(settings, clock, sequencer, in_memory=in_memory)
        # A start that fails gives the directory back.
        failing.callback(store.close)
        pool = _pool(settings, seat)
        opened = _around(store, settings, clock, None if in_memory else directory, sequencer, keyring, pool)
        failing.pop_all()
    return opened


def _around(
    store: Store,
    settings: Settings,
    clock: Clock,
    directory: Path | None,
    sequencer: Sequencer,
    keyring: Keyring,
    pool: EnginePool,
) -> Opened:
    require_sound(store, keyring)
    master = fresh_master() if directory is None else opened_master(directory / MASTER_FILE, store)
    _require_same(master, store, directory)
    services = Services(
        store=store,
        engines=Verdicts(pool, settings.engine_seconds),
        signer=Signer(keyring, settings.attestation_ttl_seconds),
        sequencer=sequencer,
        vault=Vault(store, master, clock),
        settings=settings,
        translator=_translator(settings),
        clock=clock,
    )
    store.on_erased = lambda: forget_content(services)
    store.on_beat = lambda: _refresh(keyring, services)
    renamed = store.rename_conversations(services.vault.fingerprint)
    if renamed is not None:
        renamed.block(_PATIENCE)
    organisation_id, owner_key = _first_organisation(store, clock, directory)
    return Opened(services, organisation_id, owner_key)


def _require_same(master: Master, store: Store, directory: Path | None) -> None:
    """Whoever has another key files steps and answers under other names: what was done could be done once more."""
    own = master.fingerprint("qwed")
    if store.mark(VAULT, own) != own:
        raise VaultError(
            f"{directory}/{MASTER_FILE} is not the key that what is kept in this database was sealed under: "
            "copy the keys from the data directory of the first server"
        )


def _refresh(keyring: Keyring, services: Services) -> None:
    if keyring.refresh():
        services.log.info("another process has rotated the signing key: this one signs with %s", keyring.current.kid)


def _pool(settings: Settings, seat: Seat | None) -> EnginePool:
    memory = settings.engine_memory_mb
    if seat is None:
        return EnginePool(ENGINES.values(), size=settings.engine_workers or None, memory_mb=memory)
    return EnginePool(ENGINES.values(), size=seat.workers, memory_mb=memory, bound=seat.bound)


def close_services(services: Services) -> None:
    """Write what is queued, end the workers."""
    services.reports.close()
    services.store.close()
    services.engines.close()
    if services.translator is not None:
        services.translator.close()


def _translator(settings: Settings) -> Translator | None:
    if not settings.llm_base_url:
        return None
    if not settings.llm_model:
        raise SettingsError("QWED_LLM_MODEL: a model is needed beside QWED_LLM_BASE_URL")
    return Translator(Provider(settings.llm_base_url, settings.llm_api_key, settings.llm_model))


def _first_organisation(store: Store, clock: Clock, directory: Path | None) -> tuple[str, str | None]:
    known = store.first_organisation()
    if known is not None:
        return known, None
    organisation_id, now = new_id("org"), clock.now()
    owner = minted(organisation_id, "first owner", "owner", now)
    if directory is not None:
        # Before the store knows it: a crash between the two leaves a key that opens nothing, not a locked house.
        _write_private(directory / OWNER_KEY_FILE, owner.text)
    # Together: an organisation whose owner has no key would be a locked house.
    store.add_organisation(organisation_id, "default", now, owner.key).block(_PATIENCE)
    return organisation_id, owner.text


def _write_private(file: Path, text: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as out:
        out.write(text + "\n")
        out.flush()
        os.fsync(out.fileno())
