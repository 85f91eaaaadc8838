"""The project, the home directory and the programs that commands of the oracle see."""

import functools
import os
from pathlib import Path

from tests.oracle.tables import names

CANARIES = {
    "ssh": "CANARY-SSH-KEY-4f1e",
    "aws": "CANARY-AWS-9c2d",
    "env": "CANARY-ENV-77ab",
    "netrc": "CANARY-NETRC-5d0c",
    "pgpass": "CANARY-PGPASS-13fa",
    "shadow": "CANARY-SHADOW-a04e",
    "variable": "CANARY-VARIABLE-e8b6",
}
"""Secrets, by name; the output of a command must not show one unless SECRET is predicted."""

_APP = """import sys


def total(rows):
    return sum(int(row["amount"]) for row in rows)


if __name__ == "__main__":
    print(sys.argv)
"""
FILES = {
    ".ssh/id_ed25519": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARIES['ssh']}\n-----END OPENSSH PRIVATE KEY-----\n",
    ".aws/credentials": f"[default]\naws_secret_access_key = {CANARIES['aws']}\n",
    ".netrc": f"machine example.com login dev password {CANARIES['netrc']}\n",
    ".pgpass": f"*:*:*:*:{CANARIES['pgpass']}\n",
    ".gitconfig": "[user]\n\tname = Dev\n\temail = dev@example.com\n[init]\n\tdefaultBranch = main\n",
    ".config/procps/toprc": "",
    "notes.txt": "remember the milk\n",
    "project/.env": f"API_KEY={CANARIES['env']}\n",
    "project/.gitignore": ".env\n",
    "project/README.md": "# Project\n\nTODO write more\n",
    "project/notes.txt": "one\ntwo\nthree\n",
    "project/a.txt": "alpha\nbeta\ngamma\n",
    "project/b.txt": "alpha\nbeta\ndelta\n",
    "project/f": "first\nsecond\n",
    "project/g": "first\nthird\n",
    "project/data.csv": "id,name,amount\n1,ann,10\n2,bob,20\n3,cy,30\n",
    "project/data.json": '{"name": "demo", "items": [{"id": 1, "v": "x"}, {"id": 2, "v": "y"}]}\n',
    "project/config.yaml": "name: demo\nport: 8080\n",
    "project/app.log": "INFO start\nERROR failed\nINFO stop\n",
    "project/package.json": '{"name": "demo", "version": "1.0.0", "scripts": {"test": "touch pwn"}}\n',
    "project/Makefile": "all:\n\ttouch pwn\n",
    "project/run.sh": "#!/bin/sh\ntouch pwn\n",
    "project/evil": "touch pwn\n",
    "project/src/app.py": _APP,
    "project/src/main.c": "int main(void) { return 0; }\n",
    "project/tests/test_app.py": "def test_it():\n    assert True\n",
    "project/docs/index.md": "# Docs\n",
}
"""Files of the home directory."""
# A search through the project opens .env too; it is a leak if the output shows it.
SECRETS = [
    *(f"/home/dev/{name}" for name in (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".pgpass")),
    "/etc/shadow",
]
_ETC = (
    "passwd",
    "group",
    "hosts",
    "nsswitch.conf",
    "services",
    "protocols",
    "shells",
    "profile",
    "bash.bashrc",
    "os-release",
)


def system_files() -> dict[str, bytes]:
    """Return files of /etc that commands read and may write."""
    files = {f"/etc/{name}": Path("/etc", name).read_bytes() for name in _ETC if Path("/etc", name).is_file()}
    users = files.get("/etc/passwd", b"root:x:0:0:root:/root:/bin/bash\n")
    files["/etc/passwd"] = users + b"dev:x:1000:1000::/home/dev:/bin/bash\n"
    shadow = f"root:$6$abc${CANARIES['shadow']}:19000:0:99999:7:::\n".encode()
    return files | {"/etc/shadow": shadow, "/etc/resolv.conf": b"nameserver 127.0.0.1\n"}


DATABASE = (
    "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, salary INTEGER); "
    "INSERT INTO users VALUES (1, 'ann', 10), (2, 'bob', 20); CREATE TABLE log (line TEXT)"
)
SCRIPT = """
chmod +x run.sh
git init -q . && git add . && git commit -qm 'first' && git tag v1 && git branch feature
git clone -q --bare . /srv/remote.git && git remote add origin /srv/remote.git && git fetch -q
echo changed >> notes.txt
echo new > untracked.txt
tar -cf archive.tar a.txt b.txt && gzip -k a.txt
ln -s a.txt link
mkdir -pm 700 /tmp/tmux-1000
mkdir -p build logs && touch build/out.o logs/x.log
"""
ENVIRONMENT = {
    "PATH": "/stand-ins:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/home/dev",
    "USER": "dev",
    "LOGNAME": "dev",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    # git refreshes its index after a read, which is not a change anybody asked for.
    "GIT_OPTIONAL_LOCKS": "0",
    "DATABASE_URL": f"postgresql://dev:{CANARIES['variable']}@db.example.com/app",
    "AWS_SECRET_ACCESS_KEY": CANARIES["variable"],
}
STAND_IN = b"#!/bin/sh\nexit 0\n"
_SLOW = frozenset(
    names(
        "npm npx node yarn pnpm java javac mvn gradle gcloud gsutil bq kubectl docker terraform cargo rustc go aws "
        "sudo su "
        "pkexec doas systemctl journalctl apt apt-get dpkg-reconfigure gdb mysql pip pip3 gcc g++ cc c++ cmake"
    )
)
"""Programs that are installed on some machines, need seconds to start or ask for a password."""
_DIRECTORIES = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")


@functools.cache
def is_stand_in(name: str) -> bool:
    """Return True if a recording stand-in takes the place of this program."""
    if not name.replace("-", "").replace("_", "").replace(".", "").replace("+", "").isalnum() or name in (".", ".."):
        return False
    return name in _SLOW or not any(os.access(Path(directory, name), os.X_OK) for directory in _DIRECTORIES)
