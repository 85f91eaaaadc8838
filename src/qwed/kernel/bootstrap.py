"""Composition root: builds the services from store, engines, signing key and first organisation."""

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from qwed.engines.global_concurrency import EngineShare
from qwed.engines.pool import EnginePool
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import VerdictCache
from qwed.kernel.admin.organisations import mint_key
from qwed.kernel.audit.integrity_check import require_intact_logs
from qwed.kernel.privacy.erasure import forget_content
from qwed.kernel.privacy.subject_keys import Vault, open_master_key
from qwed.kernel.services import Services
from qwed.kernel.store_factory import open_store, startup_lock
from qwed.ledger.attest import Signer
from qwed.ledger.keyring import Keyring, fresh_keyring, open_keyring
from qwed.ledger.sequencer import Sequencer
from qwed.ledger.subject_encryption import MASTER_FILE, MasterKey, VaultError, fresh_master
from qwed.model.clock import Clock
from qwed.model.ids import new_id
from qwed.model.private_files import write_private
from qwed.settings import Settings, SettingsError
from qwed.store.protocol import VAULT_ID, Store
from qwed.translate.provider import Provider, Translator

OWNER_KEY_FILE = "owner.key"
_TIMEOUT = 30


class OpenedServices(NamedTuple):
    """The services, the first organisation, and on the very first start the owner's key."""

    services: Services
    organisation_id: str
    owner_key: str | None


def open_services(
    settings: Settings, *, in_memory: bool = False, clock: Clock | None = None, seat: EngineShare | None = None
) -> OpenedServices:
    """Open the store and build the services. The engine workers start with the first request for them."""
    clock = clock or Clock()
    directory = settings.directory
    with ExitStack() as cleanup, startup_lock(settings, in_memory=in_memory):
        keyring = fresh_keyring() if in_memory else open_keyring(directory, settings.signing_key_file)
        sequencer = Sequencer(keyring, clock)
        store = open_store(settings, clock, sequencer, in_memory=in_memory)
        # A failed start releases the directory.
        cleanup.callback(store.close)
        pool = _pool(settings, seat)
        opened = _build_services(store, settings, clock, None if in_memory else directory, sequencer, keyring, pool)
        cleanup.pop_all()
    return opened


def _build_services(
    store: Store,
    settings: Settings,
    clock: Clock,
    directory: Path | None,
    sequencer: Sequencer,
    keyring: Keyring,
    pool: EnginePool,
) -> OpenedServices:
    require_intact_logs(store, keyring)
    master = fresh_master() if directory is None else open_master_key(directory / MASTER_FILE, store)
    _require_same_master(master, store, directory)
    services = Services(
        store=store,
        engines=VerdictCache(pool, settings.engine_seconds),
        signer=Signer(keyring, settings.attestation_ttl_seconds),
        sequencer=sequencer,
        vault=Vault(store, master, clock),
        settings=settings,
        translator=_translator(settings),
        clock=clock,
    )
    store.on_subject_erased = lambda: forget_content(services)
    store.on_heartbeat = lambda: _refresh(keyring, services)
    renamed = store.rename_conversations(services.vault.fingerprint)
    if renamed is not None:
        renamed.wait_result(_TIMEOUT)
    keyed = store.key_names()
    if keyed is not None:
        keyed.wait_result(_TIMEOUT)
    organisation_id, owner_key = _first_organisation(store, clock, directory)
    return OpenedServices(services, organisation_id, owner_key)


def _require_same_master(master: MasterKey, store: Store, directory: Path | None) -> None:
    """Require the same master key as the store was created with: with another one, recorded steps and answers would not
    be found, and actions could run twice."""
    fingerprint = master.fingerprint("qwed")
    if store.set_once(VAULT_ID, fingerprint) != fingerprint:
        raise VaultError(
            f"{directory}/{MASTER_FILE} is not the key that sealed the content of this database: "
            "copy the keys from the data directory of the first server"
        )


def _refresh(keyring: Keyring, services: Services) -> None:
    if keyring.refresh():
        services.log.info("signing key rotated by another process; now signing with %s", keyring.current.kid)


def _pool(settings: Settings, seat: EngineShare | None) -> EnginePool:
    memory = settings.engine_memory_mb
    if seat is None:
        return EnginePool(ENGINES.values(), size=settings.engine_workers or None, memory_mb=memory)
    return EnginePool(ENGINES.values(), size=seat.workers, memory_mb=memory, bound=seat.bound)


def close_services(services: Services) -> None:
    """Write queued changes and stop the workers."""
    services.reports.close()
    services.store.close()
    services.engines.close()
    if services.translator is not None:
        services.translator.close()


def _translator(settings: Settings) -> Translator | None:
    if not settings.llm_base_url:
        return None
    if not settings.llm_model:
        raise SettingsError("QWED_LLM_MODEL: required with QWED_LLM_BASE_URL")
    try:
        return Translator(Provider(settings.llm_base_url, settings.llm_api_key, settings.llm_model))
    except ImportError as error:
        raise SettingsError(f"QWED_LLM_BASE_URL: {error.name} is not installed: pip install 'qwed[server]'") from None


def _first_organisation(store: Store, clock: Clock, directory: Path | None) -> tuple[str, str | None]:
    organisation = store.first_organisation()
    if organisation is not None:
        return organisation, None
    organisation_id, now = new_id("org"), clock.now()
    owner = mint_key(organisation_id, "first owner", "owner", now)
    if directory is not None:
        # Before it is stored: a crash in between leaves a useless key file, not an organisation without access.
        write_private(directory / OWNER_KEY_FILE, f"{owner.text}\n".encode())
    # In one transaction: an organisation without an owner key could not be accessed.
    store.add_organisation(organisation_id, "default", now, owner.key).wait_result(_TIMEOUT)
    return organisation_id, owner.text
