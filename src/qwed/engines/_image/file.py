"""An image as its bytes say: opened with few formats, few pixels and no trust in names or headers."""

import io
import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from PIL import ExifTags, Image, UnidentifiedImageError

from qwed.engines.uploads import Refused

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
MAX_PIXELS = 40_000_000
MAX_FRAMES = 10_000
MAX_FRAME_PIXELS = 200_000_000
"""Pixels of all frames that are walked to count them."""
MAX_TAGS = 200
_MAX_TAG = 500

# What decoders raise over damaged or hostile bytes; none of it says anything about a claim.
BROKEN = (
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
    """One image, its first frame decoded."""

    image: Image.Image
    content: bytes
    format: str
    frames: int | None
    """None where there are more than are counted."""

    @property
    def width(self) -> int:
        """In pixels."""
        return self.image.width

    @property
    def height(self) -> int:
        """In pixels."""
        return self.image.height

    @cached_property
    def exif(self) -> Mapping[str, str]:
        """What the file says about itself, by the names of the standard; empty where it says nothing readable."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return _tags(self.image)
            except BROKEN:
                return {}

    @property
    def turned(self) -> bool:
        """Whether the file asks to be shown another way than it is stored."""
        return self.exif.get("Orientation", "1") not in ("", "0", "1")

    @property
    def on_its_side(self) -> bool:
        """Whether it is shown with its width for its height."""
        return self.exif.get("Orientation") in ("5", "6", "7", "8") and self.width != self.height

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the file, though it can be read."""
        left = len(self.content) - _end(self.content, self.format)
        return (f"{left} bytes follow the end of the image: it may be another file, too",) if left > 0 else ()


def open_picture(content: bytes) -> Picture:
    """The image, wholly decoded; raises Refused where it is none, damaged, or too large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            image = Image.open(io.BytesIO(content), formats=list(FORMATS))
            _require_small(image)
            image.load()
            frames = _count_frames(image)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise Refused(f"the image has more than {MAX_PIXELS} pixels") from None
        except UnidentifiedImageError:
            raise Refused(f"the file is none of {', '.join(FORMATS)}") from None
        except BROKEN as broken:
            raise Refused(f"the image is damaged or cut off: {type(broken).__name__}") from None
    # A camera's file of several pictures is a JPEG that carries more.
    return Picture(image, content, "JPEG" if image.format == "MPO" else str(image.format), frames)


def _require_small(image: Image.Image) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise Image.DecompressionBombError


def _count_frames(image: Image.Image) -> int | None:
    """How many frames there really are: a header may say anything."""
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


def _tags(image: Image.Image) -> dict[str, str]:
    exif = image.getexif()
    found: dict[str, str] = {}
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
                found.setdefault(tags[key], _written(value))
    return found


def _written(value: object) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return text.strip("\x00 ")[:_MAX_TAG]


def _end(content: bytes, kind: str) -> int:
    """Where the image is over, as far as its format tells; the length of the file otherwise."""
    if kind == "PNG":
        return _end_of_png(content)
    if kind == "WEBP":
        return 8 + int.from_bytes(content[4:8], "little") + content[4] % 2
    if kind == "BMP":
        return int.from_bytes(content[2:6], "little") or len(content)
    mark = {"JPEG": b"\xff\xd9", "GIF": b"\x00\x3b"}.get(kind)
    at = content.rfind(mark) if mark else -1
    return at + 2 if at >= 0 else len(content)


def _end_of_png(content: bytes) -> int:
    at = 8
    while at + 12 <= len(content):
        kind = content[at + 4 : at + 8]
        at += 12 + int.from_bytes(content[at : at + 4], "big")
        if kind == b"IEND":
            return at
    return len(content)
