"""SystemGuard: verifies shell commands and file access without a server (INTERFACES 5, DESIGN 3)."""

from collections.abc import Iterable
from dataclasses import dataclass

from qwed.guards import shell
from qwed.guards.path import PathLocation, resolve_through_links
from qwed.model import Effect, EffectKind, Record, Risk, risk_of

_WRITING = frozenset({"write", "append", "create", "edit", "modify", "update", "overwrite", "mkdir", "touch"})
_DELETING = frozenset({"delete", "remove", "unlink", "rmdir"})
_OPERATIONS: dict[str, EffectKind] = {
    **dict.fromkeys(("read", "list", "stat", "open", "exists"), EffectKind.READ),
    **dict.fromkeys(_WRITING, EffectKind.WRITE),
    **dict.fromkeys(_DELETING, EffectKind.DELETE),
}
_EFFECT_TEXTS: dict[EffectKind, str] = {
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
    """Verdict about a command or a file access, with every reason for a refusal."""

    verified: bool
    message: str
    risk: str
    violations: tuple[str, ...] = ()
    effects: tuple[dict[str, str], ...] = ()


class SystemGuard:
    """Permits commands to read files that are not sensitive, and to write inside the allowed paths.

    Without `allowed_paths` any file that is not sensitive may be read, and none written; with them nothing outside is
    read either. Symbolic links are followed before paths are compared. A command never deletes; a single file inside
    the allowed paths may be deleted by name. `blocked_commands` are names of programs that are always refused.
    """

    def __init__(
        self, allowed_paths: Iterable[str] | None = None, blocked_commands: Iterable[str] | None = None
    ) -> None:
        self._allowed = None if allowed_paths is None else _as_tuple(allowed_paths)
        self._blocked = frozenset(_as_tuple(blocked_commands or ()))

    def verify_shell_command(self, command: str) -> SystemVerdict:
        """Verify that a command only reads, or writes inside the allowed paths; never raises."""
        if not isinstance(command, str):
            return _refusal("the command must be text")
        try:
            findings = shell.findings(command)
        except ImportError as missing:
            return _refusal(str(missing))
        except RecursionError:
            return _refusal("the command is nested too deep")
        reasons = [*findings.violations, *(f"cannot be resolved: {text}" for text in findings.unresolved)]
        blocked = next((name for name in findings.programs if name in self._blocked), None)
        if blocked is not None:
            reasons.insert(0, f"`{blocked}` is a blocked command")
        reasons += [reason for effect in findings.effects if (reason := self._command_refusal(effect))]
        return _verdict(findings.effects, tuple(dict.fromkeys(reasons)))

    def verify_file_access(self, filepath: str, operation: str = "read") -> SystemVerdict:
        """Verify that a file may be read, written or deleted; never raises."""
        if not isinstance(filepath, str) or not isinstance(operation, str):
            return _refusal("the path and the operation must be text")
        kind = _OPERATIONS.get(operation.strip().lower())
        if kind is None:
            return _refusal(f"unknown operation `{operation[:40]}`, use read, write or delete")
        reason = self._refusal(Effect(kind, filepath)) or self._unresolvable(filepath)
        return _verdict((Effect(kind, filepath),), (reason,) if reason else ())

    def _unresolvable(self, filepath: str) -> str:
        """Return why the path does not name one plain file, or nothing; a command may name several."""
        resolved = resolve_through_links(filepath, self._allowed)
        return f"`{filepath[:128]}`: {resolved.reason}" if resolved.location is PathLocation.UNRESOLVABLE else ""

    def _command_refusal(self, effect: Effect) -> str:
        """Return why a command may not have this effect: it may delete more than it names."""
        return f"deletes `{effect.target[:128]}`" if effect.kind is EffectKind.DELETE else self._refusal(effect)

    def _refusal(self, effect: Effect) -> str:
        """Return why this effect is not allowed, or nothing."""
        if effect.kind is EffectKind.UNRESOLVED:
            return "" if effect.target else "cannot be resolved"
        if effect.kind is EffectKind.READ:
            return self._read_refusal(effect.target)
        text = f"{_EFFECT_TEXTS[effect.kind]} `{effect.target[:128]}`"
        if effect.kind not in (EffectKind.WRITE, EffectKind.DELETE):
            return text
        if self._allowed is None:
            return f"{text}, and no allowed paths are given"
        resolved = resolve_through_links(effect.target, self._allowed)
        if resolved.sensitive:
            return f"{text}, which is sensitive"
        return "" if resolved.location is PathLocation.INSIDE else f"{text}, which is not inside the allowed paths"

    def _read_refusal(self, target: str) -> str:
        resolved = resolve_through_links(target, self._allowed)
        if resolved.sensitive:
            return f"reads the sensitive file `{target[:128]}`"
        if self._allowed is not None and resolved.location is not PathLocation.INSIDE:
            return f"reads `{target[:128]}`, which is not inside the allowed paths"
        return ""


def _as_tuple(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values as a tuple; a single text is one value."""
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


def _refusal(reason: str) -> SystemVerdict:
    return _verdict((Effect(EffectKind.UNRESOLVED, reason),), (reason,))
