"""What touching a file amounts to: the deed itself, a secret touched, or a program planted for others to run."""

import re

from qwed.guards.path import resolve
from qwed.words import ON_FILES, Effect, EffectKind

_RUN_LATER = re.compile(
    r"""(?:^|/)(?:
        etc/(?:cron(?:tab$|\.[a-z]+(?:/|$))|rc\.local$|init\.d(?:/|$)|profile(?:$|\.d(?:/|$))|bash\.bashrc$
            |ld\.so\.(?:preload$|conf)|sudoers|pam\.d(?:/|$)|xdg/autostart(?:/|$)|systemd/system(?:/|$)|environment$
            |udev/rules\.d(?:/|$)|apt/apt\.conf|logrotate\.d(?:/|$)|update-motd\.d(?:/|$))
        |var/spool/cron(?:/|$)|(?:usr/)?lib/systemd/system(?:/|$)|\.config/(?:systemd/user|autostart)(?:/|$)
        |library/launch(?:agents|daemons)(?:/|$)|programs/startup(?:/|$)
        |\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|kshrc|cshrc
            |tcshrc|inputrc|xprofile|xinitrc|xsession|vimrc|exrc|tmux\.conf|pam_environment|psqlrc|sqliterc|wgetrc
            |curlrc|gitconfig|pythonrc(?:\.py)?|npmrc|yarnrc(?:\.yml)?|envrc)$
        |\.config/(?:git/config|fish/config\.fish|nvim/init\.(?:vim|lua)|pip/pip\.conf)$|\.git/(?:hooks(?:/|$)|config$)
        |\.ssh/(?:rc|config|authorized_keys2?)$|(?:site|user)customize\.py$|[^/]*\.pth$
        |(?:usr/)?(?:local/)?s?bin/[^/]+$|system32/|\.github/workflows/|\.vscode/tasks\.json$|conftest\.py$
    )|^/(?:proc/)?sys/""",
    re.IGNORECASE | re.VERBOSE,
)
"""Places whose content some program runs or believes when it starts, without being asked again."""


def file_effects(kind: EffectKind, target: str) -> tuple[Effect, ...]:
    """The effect, and what it means for a file of this name; anything that is not done to a file stays as it is."""
    effects = [Effect(kind, target)]
    if kind not in ON_FILES:
        return tuple(effects)
    if is_secret(target):
        effects.append(Effect(EffectKind.SECRET, target))
    if kind is EffectKind.WRITE and runs_later(target):
        effects.append(Effect(EffectKind.EXECUTE, target))
    return tuple(effects)


def is_secret(target: str) -> bool:
    """Whether a file, or a file a pattern may pick, is known to hold secrets."""
    return resolve(target, None).sensitive


_FULL_OF_SECRETS = frozenset({"", "/etc", "/root", "/home", "/home/*", "~", "/proc", "/var", "/Users"})


def holds_secrets(directory: str) -> bool:
    """Whether reading every file below a directory reads secrets too."""
    return directory.rstrip("/") in _FULL_OF_SECRETS and bool(directory)


def runs_later(target: str) -> bool:
    """Whether what is written there will be run by somebody else, however its path is spelt."""
    return any(_RUN_LATER.search(form) for form in (target.replace("\\", "/"), resolve(target, None).path))
