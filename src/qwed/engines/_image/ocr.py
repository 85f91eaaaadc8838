"""OCR with tesseract, if it is installed; through pipes, because a worker may not write files."""

import io
import shutil
import subprocess
from functools import lru_cache

from PIL import Image

SECONDS = 8
_MAX_SIDE = 4_000
_MAX_TEXT = 100_000


@lru_cache(maxsize=1)
def tesseract_path() -> str | None:
    """Return the path of tesseract, or None if it is not installed."""
    return shutil.which("tesseract")


def recognise_text(image: Image.Image) -> str | None:
    """Return the recognised text, or None if OCR is unavailable or fails."""
    program = tesseract_path()
    if program is None:
        return None
    page = image.convert("RGB")
    page.thumbnail((_MAX_SIDE, _MAX_SIDE))
    buffer = io.BytesIO()
    page.save(buffer, "PNG")
    try:
        process = subprocess.run(  # noqa: S603 - a fixed program without a shell, and the image goes through a pipe
            [program, "stdin", "stdout"], input=buffer.getvalue(), capture_output=True, timeout=SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.decode("utf-8", "replace")[:_MAX_TEXT]
