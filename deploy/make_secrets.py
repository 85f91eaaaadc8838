"""Makes the secrets of compose.yaml, each once: `python3 deploy/make_secrets.py` writes deploy/secrets/."""

import secrets
import shutil
import sys
from pathlib import Path


def main(place: Path) -> None:
    """Write all of them, or none; nothing is ever written over."""
    if place.exists() and any(place.iterdir()):
        sys.exit(f"{place} has secrets already: passwords of a database that is there cannot be made anew")
    # Under another name first: what is cut short on the way is begun anew.
    made = place.with_name(f"{place.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700)
    for name, text in _texts().items():
        file = made / name
        file.write_text(text + "\n")
        # The directory is yours alone; inside a container another user reads the file.
        file.chmod(0o444)
    made.rename(place)


def _texts() -> dict[str, str]:
    """What each file says. Passwords are letters, digits, `-` and `_`: nothing of them needs a quote."""
    root, database, cache = (secrets.token_urlsafe(32) for _ in range(3))
    return {
        "postgres-password": root,
        "postgres-roles.sql": f"CREATE ROLE qwed LOGIN PASSWORD '{database}';\nCREATE DATABASE qwed OWNER qwed;",
        "database-url": f"postgresql://qwed:{database}@postgres:5432/qwed",
        "redis.conf": f'requirepass {cache}\nmaxmemory 256mb\nmaxmemory-policy noeviction\nsave ""\nappendonly no',
        "redis-url": f"redis://:{cache}@redis:6379/0",
    }


if __name__ == "__main__":
    main(Path(__file__).resolve().parent / "secrets" if len(sys.argv) < 2 else Path(sys.argv[1]))
