"""INTERFACES 5 and DESIGN 3: commands and files judged without a server; reads pass, writes only where allowed."""

from collections.abc import Iterable
from dataclasses import dataclass

from qwed.guards import shell
from qwed.guards.path import Place, resolve
from qwed.words import Effect, EffectKind, Record, Risk, risk_of

_WRITING = frozenset({"write", "append", "create", "edit", "modify", "update", "overwrite", "mkdir", "touch"})
_DELETING = frozenset({"delete", "remove", "unlink", "rmdir"})
_OPERATIONS: dict[str, EffectKind] = {
    **dict.fromkeys(("read", "list", "stat", "open", "exists"), EffectKind.READ),
    **dict.fromkeys(_WRITING, EffectKind.WRITE),
    **dict.fromkeys(_DELETING, EffectKind.DELETE),
}
_SAID: dict[EffectKind, str] = {
    EffectKind.WRITE: "writes",
    EffectKind.DELETE: "deletes",
    EffectKind.EXECUTE: "runs",
    EffectKind.NETWORK: "reaches the network at",
    EffectKind.COMMUNICATE: "sends a message to",
    EffectKind.SPEND: "spends money at",
    EffectKind.ADMIN: "changes the system with",
    EffectKind.SECRET: "touches the secret",
    EffectKind.UNRESOLVED: "cannot be resolved:",
}


@dataclass(frozen=True, kw_only=True)
class SystemVerdict(Record):
    """Whether it may be done, and every reason why not."""

    verified: bool
    message: str
    risk: str
    violations: tuple[str, ...] = ()
    effects: tuple[dict[str, str], ...] = ()


class SystemGuard:
    """Lets commands read what is not sensitive, and write inside the allowed paths.

    Without `allowed_paths` any file that is not sensitive may be read and none written; with them nothing outside is
    even read. A command never deletes; a single file inside the allowed paths may be deleted by name.
    `blocked_commands` are names of programs refused whatever they would do.
    """

    def __init__(
        self, allowed_paths: Iterable[str] | None = None, blocked_commands: Iterable[str] | None = None
    ) -> None:
        self._allowed = None if allowed_paths is None else _texts(allowed_paths)
        self._blocked = frozenset(_texts(blocked_commands or ()))

    def verify_shell_command(self, command: str) -> SystemVerdict:
        """Whether the command only reads, or writes inside the allowed paths; never raises."""
        if not isinstance(command, str):
            return _refused("the command must be text")
        try:
            found = shell.findings(command)
        except ImportError as missing:
            return _refused(str(missing))
        except RecursionError:
            return _refused("the command is nested too deep")
        reasons = [*found.violations, *(f"cannot be resolved: {each}" for each in found.unresolved)]
        blocked = next((name for name in found.programs if name in self._blocked), None)
        if blocked is not None:
            reasons.insert(0, f"`{blocked}` is a blocked command")
        reasons += [reason for effect in found.effects if (reason := self._command_refusal(effect))]
        return _verdict(found.effects, tuple(dict.fromkeys(reasons)))

    def verify_file_access(self, filepath: str, operation: str = "read") -> SystemVerdict:
        """Whether the file may be read, or written where writing is allowed; never raises."""
        if not isinstance(filepath, str) or not isinstance(operation, str):
            return _refused("the path and the operation must be text")
        kind = _OPERATIONS.get(operation.strip().lower())
        if kind is None:
            return _refused(f"unknown operation `{operation[:40]}`, use read, write or delete")
        reason = self._refusal(Effect(kind, filepath)) or self._unsafe(filepath)
        return _verdict((Effect(kind, filepath),), (reason,) if reason else ())

    def _unsafe(self, filepath: str) -> str:
        """A path to open is held to more than one inside a command: it must name one plain file."""
        found = resolve(filepath, self._allowed)
        return f"`{filepath[:128]}`: {found.reason}" if found.place is Place.UNRESOLVABLE else ""

    def _command_refusal(self, effect: Effect) -> str:
        """A command may delete more than it names."""
        return f"deletes `{effect.target[:128]}`" if effect.kind is EffectKind.DELETE else self._refusal(effect)

    def _refusal(self, effect: Effect) -> str:
        """Why this effect is not allowed, or nothing."""
        if effect.kind is EffectKind.UNRESOLVED:
            return "" if effect.target else "cannot be resolved"
        if effect.kind is EffectKind.READ:
            return self._read_refusal(effect.target)
        said = f"{_SAID[effect.kind]} `{effect.target[:128]}`"
        if effect.kind not in (EffectKind.WRITE, EffectKind.DELETE):
            return said
        if self._allowed is None:
            return f"{said}, and no allowed paths are given"
        found = resolve(effect.target, self._allowed)
        if found.sensitive:
            return f"{said}, which is sensitive"
        return "" if found.place is Place.INSIDE else f"{said}, which is not inside the allowed paths"

    def _read_refusal(self, target: str) -> str:
        found = resolve(target, self._allowed)
        if found.sensitive:
            return f"reads the sensitive file `{target[:128]}`"
        if self._allowed is not None and found.place is not Place.INSIDE:
            return f"reads `{target[:128]}`, which is not inside the allowed paths"
        return ""


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    """One text is one path, not its letters."""
    return (values,) if isinstance(values, str) else tuple(str(value) for value in values)


def _verdict(effects: tuple[Effect, ...], reasons: tuple[str, ...]) -> SystemVerdict:
    risk = risk_of(effects)
    return SystemVerdict(
        verified=not reasons,
        message=reasons[0] if reasons else "allowed",
        risk=(max(risk, Risk.MEDIUM) if reasons else risk).word,
        violations=reasons,
        effects=tuple({"kind": effect.kind.value, "target": effect.target} for effect in effects),
    )


def _refused(reason: str) -> SystemVerdict:
    return _verdict((Effect(EffectKind.UNRESOLVED, reason),), (reason,))
