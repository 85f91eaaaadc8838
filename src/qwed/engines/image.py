"""DESIGN 8, the image engine: whether a claim about an image is true of its bytes.

The claim is in `query`, the file in `parameters.content_base64`. What is measured decides: size, format, frames,
colours, transparency, and what the file says of itself. A claim outside the grammar is INCONCLUSIVE, never guessed;
a file that cannot be read safely is BLOCKED.
"""

from collections.abc import Mapping
from typing import Any

from qwed.engines._image.claims import read
from qwed.engines._image.file import BROKEN, Picture, open_picture
from qwed.engines._image.measures import Finding
from qwed.engines.protocol import EngineRequest
from qwed.engines.uploads import Refused, read_upload
from qwed.words import Status, Verdict

HINT = "write it like `width = 640`, `the image is 640x480`, `format is PNG` or `at least 50% of pixels are red`"


def verify(request: EngineRequest) -> Verdict:
    """Whether every part of the claim holds of the image."""
    try:
        picture = open_picture(read_upload(request.parameters))
    except Refused as refused:
        return _verdict(Status.BLOCKED, str(refused), failed="image_readable")
    readings = read(request.query)
    if readings is None:
        message = f"the claim is not understood: {HINT}"
        return _verdict(Status.INCONCLUSIVE, message, failed="claim_understood", result=_about(picture))
    try:
        found = [reading.finding(picture) for reading in readings]
    except BROKEN as broken:
        message = f"the image could not be measured: {type(broken).__name__}"
        return _verdict(Status.INCONCLUSIVE, message, failed="claim_measured", result=_about(picture))
    return _settled(found, picture)


def _settled(found: list[Finding], picture: Picture) -> Verdict:
    """All parts have to hold; the first that does not is what is told."""
    false = next((each for each in found if each.holds is False), None)
    unknown = next((each for each in found if each.holds is None), None)
    told = false or unknown
    measured = {name: value for each in found for name, value in each.measured.items()}
    result = {**_about(picture), "measured": measured}
    if told is None:
        return _verdict(Status.VERIFIED, "; ".join(each.message for each in found), passed="claim_holds", result=result)
    status = Status.INCONCLUSIVE if false is None else Status.FAILED
    return _verdict(status, told.message, failed="claim_holds", result=result)


def _about(picture: Picture) -> dict[str, Any]:
    return {
        "format": picture.format,
        "width": picture.width,
        "height": picture.height,
        "mode": picture.image.mode,
        "frames": picture.frames,
        "notes": list(picture.notes),
    }


def _verdict(
    status: Status, message: str, *, passed: str = "", failed: str = "", result: Mapping[str, Any] | None = None
) -> Verdict:
    before = () if failed == "image_readable" else ("image_readable",)
    return Verdict(
        status=status,
        engine="image",
        message=message,
        checks_passed=(*before, passed) if passed else before,
        checks_failed=(failed,) if failed else (),
        result=dict(result or {}),
    )
