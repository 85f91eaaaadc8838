"""Effects of accessing a file."""

import pytest

from qwed.guards.file_effects import file_effects, is_run_later
from qwed.model import EffectKind, Risk, risk_of

LATER = [
    "/etc/cron.d/job",
    "/etc/crontab",
    "/etc/cron.daily/clean",
    "/var/spool/cron/root",
    "/etc/profile.d/x.sh",
    "/home/a/.bashrc",
    ".bashrc",
    "/root/.zshrc",
    "/home/a/.ssh/authorized_keys",
    "/etc/systemd/system/x.service",
    "/home/a/.config/systemd/user/x.service",
    "/home/a/.config/autostart/x.desktop",
    "repo/.git/hooks/pre-commit",
    "/usr/lib/python3/dist-packages/sitecustomize.py",
    "venv/lib/python3.11/site-packages/x.pth",
    "/usr/local/bin/ls",
    "/etc/ld.so.preload",
    "/Library/LaunchDaemons/x.plist",
    r"C:\Users\a\AppData\Roaming\Microsoft\Windows\Start Menu\Programs\Startup\x.bat",
    ".github/workflows/ci.yml",
    "/etc//cron.d/job",
    "/etc/./crontab",
    "/etc/x/../cron.d/job",
    "/etc/%63ron.d/job",
    "/etc/cron.d",
    "repo/.git/config",
    "~/.gitconfig",
    "~/.config/fish/config.fish",
    "/home/a/.ssh/config",
    "/etc/udev/rules.d/9.rules",
    "/proc/sys/kernel/core_pattern",
]
NOT_LATER = [
    "notes.txt",
    "/srv/data/report.csv",
    "src/bashrc.md",
    "docs/cron.md",
    "etc/notes.txt",
    "bin/readme/notes.txt",
    "my.pth.txt",
    "startup_notes.txt",
    "data/profile.json",
    "src/startup/main.py",
    "src/git/config",
    "src/sys/paths.txt",
]


@pytest.mark.parametrize("path", LATER)
def test_writing_where_others_run_it_is_running_it(path: str) -> None:
    kinds = {effect.kind for effect in file_effects(EffectKind.WRITE, path)}
    assert kinds >= {EffectKind.WRITE, EffectKind.EXECUTE}
    assert risk_of(file_effects(EffectKind.WRITE, path)) is Risk.CRITICAL
    assert EffectKind.EXECUTE not in {effect.kind for effect in file_effects(EffectKind.READ, path)}


@pytest.mark.parametrize("path", NOT_LATER)
def test_writing_anywhere_else_is_writing(path: str) -> None:
    assert not is_run_later(path)
    assert [effect.kind for effect in file_effects(EffectKind.WRITE, path)] == [EffectKind.WRITE]


@pytest.mark.parametrize("kind", [EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE])
def test_a_secret_file_is_a_secret_whatever_is_done_to_it(kind: EffectKind) -> None:
    assert EffectKind.SECRET in {effect.kind for effect in file_effects(kind, "/home/a/.ssh/id_rsa")}


@pytest.mark.parametrize("kind", [EffectKind.NETWORK, EffectKind.EXECUTE, EffectKind.UNRESOLVED])
def test_what_is_not_done_to_a_file_is_left_alone(kind: EffectKind) -> None:
    assert [effect.kind for effect in file_effects(kind, "/home/a/.ssh/id_rsa")] == [kind]
