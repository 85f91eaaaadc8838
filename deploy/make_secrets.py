"""Makes the secrets of compose.yaml, each once: `python3 deploy/make_secrets.py` writes deploy/secrets/."""

import secrets
import sys
from pathlib import Path


def main(place: Path) -> None:
    """Write what is not there yet; nothing is ever written over."""
    place.mkdir(mode=0o700, exist_ok=True)
    database, cache = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    texts = {
        "postgres-password": database,
        "database-url": f"postgresql://qwed:{database}@postgres:5432/qwed",
        "redis.conf": f'requirepass {cache}\nmaxmemory 256mb\nmaxmemory-policy noeviction\nsave ""\nappendonly no',
        "redis-url": f"redis://:{cache}@redis:6379/0",
    }
    if any((place / name).exists() for name in texts):
        sys.exit(f"{place} has secrets already: passwords of a database that is there cannot be made anew")
    for name, text in texts.items():
        file = place / name
        file.write_text(text + "\n")
        # The directory is yours alone; inside a container another user reads the file.
        file.chmod(0o444)


if __name__ == "__main__":
    main(Path(__file__).resolve().parent / "secrets" if len(sys.argv) < 2 else Path(sys.argv[1]))
