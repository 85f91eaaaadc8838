"""What touching a file amounts to: the deed itself, a secret touched, or a program planted for others to run."""

import re

from qwed.guards.path import resolve
from qwed.words import ON_FILES, Effect, EffectKind

_RUN_LATER = re.compile(
    r"""(?:^|/)(?:
        etc/(?:cron(?:tab$|\.[a-z]+/)|rc\.local$|init\.d/|profile(?:$|\.d/)|bash\.bashrc$|ld\.so\.(?:preload$|conf)
            |sudoers|pam\.d/|xdg/autostart/|systemd/system/|environment$)
        |var/spool/cron/|(?:usr/)?lib/systemd/system/|\.config/(?:systemd/user|autostart)/|library/launch(?:agents|daemons)/
        |\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc|tcshrc|inputrc)$
        |\.git/hooks/|\.ssh/(?:rc|authorized_keys2?)$|(?:site|user)customize\.py$|[^/]*\.pth$|startup/[^/]*$
        |(?:usr/)?(?:local/)?s?bin/[^/]+$|system32/|\.github/workflows/|\.vscode/tasks\.json$|\.npmrc$|conftest\.py$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Places whose content some program runs or believes when it starts, without being asked again."""


def file_effects(kind: EffectKind, target: str) -> tuple[Effect, ...]:
    """The effect, and what it means for a file of this name; anything that is not done to a file stays as it is."""
    effects = [Effect(kind, target)]
    if kind not in ON_FILES:
        return tuple(effects)
    if resolve(target, None).sensitive:
        effects.append(Effect(EffectKind.SECRET, target))
    if kind is EffectKind.WRITE and runs_later(target):
        effects.append(Effect(EffectKind.EXECUTE, target))
    return tuple(effects)


def runs_later(target: str) -> bool:
    """Whether what is written there will be run by somebody else."""
    return _RUN_LATER.search(target.replace("\\", "/")) is not None
