"""Image engine: whether a claim about an image is true of its bytes.

The claim is in `query`, the file in `parameters.content_base64`. Measurements decide: size, format, frames, colours,
transparency and metadata. A claim outside the grammar is INCONCLUSIVE; a file that cannot be read safely is BLOCKED.
"""

from collections.abc import Mapping
from typing import Any

from qwed.engines._image.image_claims import parse_claim
from qwed.engines._image.loader import DECODER_ERRORS, Picture, open_picture
from qwed.engines._image.measures import ImageFinding
from qwed.engines.protocol import EngineRequest
from qwed.engines.uploads import UploadError, read_upload
from qwed.model import Status, Verdict

HINT = "write it like `width = 640`, `the image is 640x480`, `format is PNG` or `at least 50% of pixels are red`"


def verify(request: EngineRequest) -> Verdict:
    """Return whether every part of the claim holds for the image."""
    try:
        picture = open_picture(read_upload(request.parameters))
    except UploadError as refused:
        return _verdict(Status.BLOCKED, str(refused), failed="image_readable")
    claims = parse_claim(request.query)
    if claims is None:
        message = f"the claim is not understood: {HINT}"
        return _verdict(Status.INCONCLUSIVE, message, failed="claim_understood", result=_image_properties(picture))
    try:
        findings = [claim.finding(picture) for claim in claims]
    except DECODER_ERRORS as error:
        message = f"the image could not be measured: {type(error).__name__}"
        return _verdict(Status.INCONCLUSIVE, message, failed="claim_measured", result=_image_properties(picture))
    return _combine_findings(findings, picture)


def _combine_findings(findings: list[ImageFinding], picture: Picture) -> Verdict:
    """Combine the parts: all must hold, and the first that fails gives the message."""
    false = next((finding for finding in findings if finding.holds is False), None)
    unknown = next((finding for finding in findings if finding.holds is None), None)
    decisive = false or unknown
    measured = {name: value for finding in findings for name, value in finding.measured.items()}
    result = {**_image_properties(picture), "measured": measured}
    if decisive is None:
        return _verdict(
            Status.VERIFIED, "; ".join(finding.message for finding in findings), passed="claim_holds", result=result
        )
    status = Status.INCONCLUSIVE if false is None else Status.FAILED
    return _verdict(status, decisive.message, failed="claim_holds", result=result)


def _image_properties(picture: Picture) -> dict[str, Any]:
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
