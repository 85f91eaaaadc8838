"""Image loader: decodes a few formats within pixel and frame limits, and trusts neither names nor headers."""

import io
import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from PIL import ExifTags, Image, UnidentifiedImageError

from qwed.engines.uploads import UploadError

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
MAX_PIXELS = 40_000_000
MAX_FRAMES = 10_000
MAX_FRAME_PIXELS = 200_000_000
"""Limit on the total pixels of the frames that are counted."""
MAX_TAGS = 200
_MAX_TAG = 500

# Exceptions that decoders raise for damaged or hostile bytes; none of them decides a claim.
DECODER_ERRORS = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    RuntimeError,
    struct.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


@dataclass(frozen=True)
class Picture:
    """Image with its first frame decoded."""

    image: Image.Image
    content: bytes
    format: str
    frames: int | None
    """Number of frames, or None if there are more than the limit."""

    @property
    def width(self) -> int:
        """Width in pixels."""
        return self.image.width

    @property
    def height(self) -> int:
        """Height in pixels."""
        return self.image.height

    @cached_property
    def exif(self) -> Mapping[str, str]:
        """EXIF entries by standard name; empty if there are none or they are unreadable."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return _read_exif(self.image)
            except DECODER_ERRORS:
                return {}

    @property
    def is_rotated(self) -> bool:
        """True if the EXIF orientation displays the image differently from how it is stored."""
        return self.exif.get("Orientation", "1") not in ("", "0", "1")

    @property
    def is_sideways(self) -> bool:
        """True if the EXIF orientation swaps width and height."""
        return self.exif.get("Orientation") in ("5", "6", "7", "8") and self.width != self.height

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Remarks about anomalies in a readable file."""
        trailing = len(self.content) - _image_end(self.content, self.format)
        return (
            (f"{trailing} bytes follow the end of the image: the file may contain another one",) if trailing > 0 else ()
        )


def open_picture(content: bytes) -> Picture:
    """Decode the image. Raise UploadError if it is not an image, damaged or too large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            image = Image.open(io.BytesIO(content), formats=list(FORMATS))
            _require_small(image)
            image.load()
            frames = _count_frames(image)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise UploadError(f"the image has more than {MAX_PIXELS} pixels") from None
        except UnidentifiedImageError:
            raise UploadError(f"the file format is not one of {', '.join(FORMATS)}") from None
        except DECODER_ERRORS as error:
            raise UploadError(f"the image is damaged or cut off: {type(error).__name__}") from None
    # MPO, a camera format with several pictures, is a JPEG with appended images.
    return Picture(image, content, "JPEG" if image.format == "MPO" else str(image.format), frames)


def _require_small(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise Image.DecompressionBombError


def _count_frames(image: Image.Image) -> int | None:
    """Count the frames by seeking, because a header may state any number; None if there are more than the limit."""
    pixels = image.width * image.height
    count = 1
    try:
        while count <= MAX_FRAMES and count * pixels <= MAX_FRAME_PIXELS:
            image.seek(count)
            count += 1
    except EOFError:
        image.seek(0)
        image.load()
        return count
    image.seek(0)
    image.load()
    return None


def _read_exif(image: Image.Image) -> dict[str, str]:
    exif = image.getexif()
    entries: dict[str, str] = {}
    for tags, values in (
        (ExifTags.TAGS, dict(exif)),
        (ExifTags.TAGS, exif.get_ifd(ExifTags.IFD.Exif)),
        (
            {key: f"GPS{name}" if not name.startswith("GPS") else name for key, name in ExifTags.GPSTAGS.items()},
            exif.get_ifd(ExifTags.IFD.GPSInfo),
        ),
    ):
        for key, value in list(values.items())[:MAX_TAGS]:
            if key in tags and not isinstance(value, Mapping):
                entries.setdefault(tags[key], _format_tag(value))
    return entries


def _format_tag(value: object) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return text.strip("\x00 ")[:_MAX_TAG]


def _image_end(content: bytes, kind: str) -> int:
    """Return the offset at which the image ends, or the length of the file if the format does not tell."""
    if kind == "PNG":
        return _png_end(content)
    if kind == "WEBP":
        return 8 + int.from_bytes(content[4:8], "little") + content[4] % 2
    if kind == "BMP":
        return int.from_bytes(content[2:6], "little") or len(content)
    mark = {"JPEG": b"\xff\xd9", "GIF": b"\x00\x3b"}.get(kind)
    at = content.rfind(mark) if mark else -1
    return at + 2 if at >= 0 else len(content)


def _png_end(content: bytes) -> int:
    at = 8
    while at + 12 <= len(content):
        kind = content[at + 4 : at + 8]
        at += 12 + int.from_bytes(content[at : at + 4], "big")
        if kind == b"IEND":
            return at
    return len(content)
