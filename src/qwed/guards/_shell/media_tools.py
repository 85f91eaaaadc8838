"""Roles of operands of programs that convert images, sound, video and documents.

A name may choose a decoder (`msl:`), an address or a list of files, and a filter may open files of its own, so only
plain names with a known suffix and known filters are understood.
"""

import re

from qwed.guards._shell.command_model import names_in
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.model import EffectKind

_E = EffectKind
_PICTURES = "png|jpe?g|gif|webp|tiff?|bmp|heic|avif|ico|ppm|pgm|pnm|jp2|tga"
_PICTURE = re.compile(rf"[^:@|%()-][^:@|%()]*\.(?:{_PICTURES})(?:\[\d[\dx,+-]*\])?", re.IGNORECASE)
_PICTURE_TARGET = re.compile(rf"[^:@|%()-][^:@|()]*\.(?:{_PICTURES}|pdf)", re.IGNORECASE)
_MEDIA = re.compile(
    r"[^:@|-][^:@|]*\.(?:mp4|m4v|m4a|mov|mkv|mka|webm|avi|mpe?g|mp3|mp2|wav|flac|ogg|oga|ogv|opus|aac|ac3|wma|wmv|flv|3gp"
    r"|aiff?|caf|mts|m2ts|ts|gif|png|apng|jpe?g|bmp|webp|tiff?|srt|vtt|ass)",
    re.IGNORECASE,
)
_STREAMS = frozenset({"-", "pipe:0", "pipe:1", "/dev/null"})


def _plain_name(pattern: re.Pattern[str], kind: EffectKind) -> Role:
    """Return the role of a file whose name must match the pattern."""

    def report(context: RoleContext, argument: Argument) -> None:
        if not (argument.word.is_resolved and pattern.fullmatch(argument.word.text)):
            context.unresolved(f"`{argument.word.text[:64]}` is not a plain name of a file of a known kind")
        context.add_file(kind, argument.word)

    return report


def _stream_or(role: Role) -> Role:
    """Return the role of a file that may also be the standard input or output."""

    def report(context: RoleContext, argument: Argument) -> None:
        if argument.word.text not in _STREAMS:
            role(context, argument)

    return report


_MEDIA_FORMATS = names_in(
    "mp4 mov m4v matroska webm avi mpeg mpegts flv mp3 wav flac ogg opus adts ac3 aiff ipod gif apng image2 null"
    " s16le f32le rawvideo yuv4mpegpipe srt webvtt ass"
)


def _media_format(context: RoleContext, argument: Argument) -> None:
    """Report a format that reads or writes files of its own, such as `concat`, `tee` and `lavfi`."""
    if argument.word.text not in _MEDIA_FORMATS:
        context.unresolved(f"the format `{argument.word.text[:64]}` is not known to be harmless")


_FILTERS = (
    "scale|crop|fps|transpose|hflip|vflip|pad|setpts|asetpts|atempo|volume|loudnorm|format|aformat|rotate|trim|atrim|setsar"
    "|setdar|thumbnail|select|aselect|palettegen|paletteuse|split|asplit|concat|overlay|fade|afade|amix|amerge|pan|aresample"
    "|drawbox|yadif|bwdif|eq|unsharp|hqdn3d|boxblur|gblur|tile|null|anull|silenceremove|silencedetect|hstack|vstack|xstack"
    "|reverse|areverse|dynaudnorm|highpass|lowpass|equalizer|bass|treble|acompressor|adelay|apad|cropdetect|blackdetect|hue"
    "|negate|zoompan|minterpolate|tblend|colorchannelmixer|showwavespic|showspectrumpic|volumedetect|tpad|loop|aloop"
)
_LABELS = r"(?:\[[\w:]+\])*"
_FILTER = rf"\s*{_LABELS}\s*(?:{_FILTERS})(?:=(?:[^\\'\[\],;]|'[^'\\]*')*)?{_LABELS}\s*"
_FILTER_CHAIN = re.compile(rf"{_FILTER}(?:[,;]{_FILTER})*;?")


def _media_filter(context: RoleContext, argument: Argument) -> None:
    """Report a filter that may open files or load a plugin."""
    text = argument.word.text
    if not (argument.word.is_exact and _FILTER_CHAIN.fullmatch(text)) or "file" in text:
        context.unresolved(f"the filter `{text[:64]}` is not known to be harmless")


_COLOR = re.compile(r"#?\w+|s?(?:rgb|hsl|hsb|cmyk|gray)a?\([\d.,%\s]+\)")


def _image_color(context: RoleContext, argument: Argument) -> None:
    """Report a value that is not a color: it would be read as an image."""
    if not (argument.word.is_exact and _COLOR.fullmatch(argument.word.text)):
        context.unresolved(f"`{argument.word.text[:64]}` is not a color")


_DOCUMENT = re.compile(r"[^:-][^:]*")

ROLES: dict[str, Role] = {
    "picture": _plain_name(_PICTURE, _E.READ),
    "picture-target": _plain_name(_PICTURE_TARGET, _E.WRITE),
    "image-color": _image_color,
    "media-input": _stream_or(_plain_name(_MEDIA, _E.READ)),
    "media-output": _stream_or(_plain_name(_MEDIA, _E.WRITE)),
    "media-format": _media_format,
    "media-filter": _media_filter,
    "plain-file": _plain_name(_DOCUMENT, _E.READ),
}
