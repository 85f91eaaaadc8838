"""Effects of a file access: the access itself, access to a secret, or a file that another program executes later."""

import re

from qwed.guards.path import resolve
from qwed.model import FILE_EFFECTS, Effect, EffectKind

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
"""Paths whose content some program executes or trusts at startup."""


_SETTINGS = re.compile(r"(?:^|/)\.env(?:\.[\w-]+)?$")
"""Files of settings of a project, which are often copied from an example; writing one reveals no secret."""


def file_effects(kind: EffectKind, target: str) -> tuple[Effect, ...]:
    """Return the effect and the further effects it has because of the file's path; effects on other targets are
    returned unchanged."""
    effects = [Effect(kind, target)]
    if kind not in FILE_EFFECTS:
        return tuple(effects)
    if is_secret(target) and not (kind is EffectKind.WRITE and _SETTINGS.search(target)):
        effects.append(Effect(EffectKind.SECRET, target))
    if kind is EffectKind.WRITE and is_run_later(target):
        effects.append(Effect(EffectKind.EXECUTE, target))
    return tuple(effects)


def is_secret(target: str) -> bool:
    """Return True if the file, or a file that the pattern can match, is known to hold secrets."""
    return resolve(target, None).sensitive


_SECRET_DIRECTORIES = frozenset({"", "/etc", "/root", "/home", "/home/*", "~", "/proc", "/var", "/Users"})


def has_secrets_below(directory: str) -> bool:
    """Return True if reading every file below the directory would read secrets."""
    return directory.rstrip("/") in _SECRET_DIRECTORIES and bool(directory)


def is_run_later(target: str) -> bool:
    """Return True if another program executes what is written to this path."""
    return any(_RUN_LATER.search(form) for form in (target.replace("\\", "/"), resolve(target, None).path))
