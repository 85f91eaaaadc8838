"""Text in an image, read by tesseract where it is installed; through pipes, since a worker may write no file."""

import io
import shutil
import subprocess
from functools import lru_cache

from PIL import Image

SECONDS = 8
_MAX_SIDE = 4_000
_MAX_TEXT = 100_000


@lru_cache(maxsize=1)
def reader() -> str | None:
    """Where tesseract is; None where it is not installed."""
    return shutil.which("tesseract")


def text_of(image: Image.Image) -> str | None:
    """The text that was recognised; None where nothing can read it here."""
    program = reader()
    if program is None:
        return None
    page = image.convert("RGB")
    page.thumbnail((_MAX_SIDE, _MAX_SIDE))
    written = io.BytesIO()
    page.save(written, "PNG")
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program without a shell, and the image goes through a pipe
            [program, "stdin", "stdout"], input=written.getvalue(), capture_output=True, timeout=SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")[:_MAX_TEXT]
