"""Generated test images by name: small ones of every format, and hostile ones."""

import io
import struct
import zlib

from PIL import Image


def encode(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def flag_image(width=640, height=480):
    """Return an image with a red left half, a blue right quarter, and the rest white."""
    image = Image.new("RGB", (width, height), "#ffffff")
    image.paste("#ff0000", (0, 0, width // 2, height))
    image.paste("#0000ff", (width - width // 4, 0, width, height))
    return image


def exif():
    tags = Image.Exif()
    tags[271], tags[272], tags[274] = "Canon", "Canon EOS R5", 6
    tags[305], tags[315] = "GIMP 2.10", "Ada Lovelace"
    tags.get_ifd(0x8769)[36867] = "2024:05:01 10:20:30"
    tags.get_ifd(0x8825).update({1: "N", 2: (51.0, 30.0, 0.0)})
    return tags


def transparent_image():
    image = Image.new("RGBA", (100, 50), (0, 128, 0, 255))
    image.paste((0, 0, 0, 0), (0, 0, 10, 50))
    return image


def animated_image(count=3):
    first, *others = (Image.new("RGB", (20, 20), (40 * number % 256, 0, 200)) for number in range(count))
    return encode(first, "GIF", save_all=True, append_images=others, duration=50, loop=0)


def noise_image(width=300, height=300):
    """Return an image with more colours than are counted individually."""
    image = Image.new("RGB", (width, height))
    image.putdata([(n * 7 % 256, n * 13 // 256 % 256, n % 251) for n in range(width * height)])
    return image


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def png(width, height, *chunks):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND", b"")


PICTURES = {
    "flag.png": lambda: encode(flag_image(), "PNG"),
    "flag.jpg": lambda: encode(flag_image(), "JPEG", quality=95, exif=exif(), dpi=(300, 300)),
    "flag.webp": lambda: encode(flag_image(64, 48), "WEBP", lossless=True),
    "flag.bmp": lambda: encode(flag_image(64, 48), "BMP"),
    "flag.tiff": lambda: encode(flag_image(64, 48), "TIFF"),
    "gray.png": lambda: encode(Image.new("L", (30, 40), 128), "PNG"),
    "gray_rgb.png": lambda: encode(Image.new("RGB", (30, 30), "#808080"), "PNG"),
    "white.png": lambda: encode(Image.new("RGB", (50, 50), "#ffffff"), "PNG"),
    "glass.png": lambda: encode(transparent_image(), "PNG"),
    "opaque_rgba.png": lambda: encode(Image.new("RGBA", (9, 16), (1, 2, 3, 255)), "PNG"),
    "film.gif": animated_image,
    "still.gif": lambda: animated_image(1),
    "palette.png": lambda: encode(flag_image(64, 48).quantize(4), "PNG"),
    "cmyk.jpg": lambda: encode(Image.new("CMYK", (20, 20), (0, 255, 255, 0)), "JPEG"),
    "deep.png": lambda: encode(Image.new("I;16", (20, 20), 40_000), "PNG"),
    "noise.png": lambda: encode(noise_image(), "PNG"),
    "polyglot.png": lambda: encode(flag_image(64, 48), "PNG") + b"PK\x03\x04" + b"x" * 100,
}

_PIXELS = zlib.compress(b"\0" * 1000)
HOSTILE = {
    "no bytes": lambda: b"",
    "text": lambda: b"just text, no image at all",
    "html": lambda: b"<html><img src=x onerror=alert(1)></html>",
    "svg": lambda: b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="640" height="480"/>',
    "eps": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 640 480\n",
    "pdf": lambda: b"%PDF-1.7\n1 0 obj\n",
    "icns": lambda: b"icns" + struct.pack(">I", 8),
    "ico": lambda: encode(flag_image(64, 48).convert("RGBA"), "ICO"),
    "ppm": lambda: encode(flag_image(64, 48), "PPM"),
    "png header only": lambda: b"\x89PNG\r\n\x1a\n",
    "half a png": lambda: PICTURES["flag.png"]()[:600],
    "half a jpeg": lambda: PICTURES["flag.jpg"]()[:4000],
    "half a gif": lambda: animated_image()[:100],
    "half a webp": lambda: encode(noise_image(), "WEBP")[:500],
    "half a tiff": lambda: PICTURES["flag.tiff"]()[:500],
    "half a bmp": lambda: PICTURES["flag.bmp"]()[:500],
    "png of no size": lambda: png(0, 0, chunk(b"IDAT", _PIXELS)),
    "tiny file of 60000x60000": lambda: png(60_000, 60_000, chunk(b"IDAT", _PIXELS)),
    "just too many pixels": lambda: png(8_000, 6_000, chunk(b"IDAT", _PIXELS)),
    "less data than pixels": lambda: png(5_000, 5_000, chunk(b"IDAT", _PIXELS)),
    "text chunk bomb": lambda: png(10, 10, chunk(b"zTXt", b"a\0\0" + zlib.compress(b"\0" * (8 << 20)))),
    "bad checksum": lambda: PICTURES["flag.png"]().replace(b"IHDR", b"IHDS"),
    "gif of a large screen": lambda: b"GIF89a" + struct.pack("<HHBBB", 65_535, 65_535, 0, 0, 0) + b"\x3b",
}
