"""Image engine: verdicts by measurement only."""

import base64
import io
from functools import cache

import pytest
from PIL import Image

from qwed.engines import image
from qwed.engines._image import ocr as _image_text
from qwed.engines._image.loader import MAX_FRAMES, open_picture
from qwed.engines.protocol import EngineRequest
from qwed.model import Status
from tests.support.case_tables import each, rows
from tests.unit.engines.sample_images import HOSTILE, PICTURES, animated_image, encode


@cache
def encoded(name):
    return base64.b64encode(PICTURES[name]()).decode()


def ask(claim, name="flag.png"):
    return image.verify(EngineRequest(query=claim, parameters={"content_base64": encoded(name)}))


def ask_bytes(claim, content):
    parameters = {"content_base64": base64.b64encode(content).decode()}
    return image.verify(EngineRequest(query=claim, parameters=parameters))


def label(row):
    return f"{row['image']}: {row['claim'][:60]}"


@each("row", rows("image_true.jsonl"), ids=label)
def test_a_true_claim_is_verified_with_what_was_measured(row):
    verdict = ask(row["claim"], row["image"])
    assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ()), verdict.message
    assert verdict.result["measured"]


@each("row", rows("image_false.jsonl"), ids=label)
def test_a_false_claim_fails_with_what_was_measured(row):
    verdict = ask(row["claim"], row["image"])
    assert (verdict.status, verdict.checks_failed) == (Status.FAILED, ("claim_holds",)), verdict.message
    assert "measured" in verdict.result


@each("row", rows("image_undecided.jsonl"), ids=label)
def test_a_claim_nobody_can_measure_is_inconclusive(row):
    verdict = ask(row["claim"], row["image"])
    assert verdict.status is Status.INCONCLUSIVE, verdict.message
    assert verdict.message


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_or_damaged_file_is_blocked_whatever_is_claimed(name):
    for claim in ("width = 640", "format is PNG", "width = 60000", "has 1 frame"):
        verdict = ask_bytes(claim, HOSTILE[name]())
        assert (verdict.status, verdict.checks_failed) == (Status.BLOCKED, ("image_readable",)), verdict.message


@pytest.mark.parametrize("parameters", [{}, {"content_base64": 3}, {"content_base64": "%%%"}, {"content_base64": ""}])
def test_without_a_file_nothing_is_decided(parameters):
    assert image.verify(EngineRequest(query="width = 640", parameters=parameters)).status is Status.BLOCKED


def test_the_name_of_a_file_says_nothing():
    parameters = {"content_base64": encoded("flag.jpg"), "filename": "flag.png", "format": "png"}
    assert image.verify(EngineRequest(query="format is PNG", parameters=parameters)).status is Status.FAILED


def test_bytes_after_the_end_are_noted():
    assert "104 bytes follow" in ask("width = 64", "polyglot.png").result["notes"][0]
    for name in ("flag.png", "flag.jpg", "flag.webp", "flag.bmp", "flag.tiff", "film.gif"):
        assert ask("width = 64", name).result["notes"] == [], name


def test_frames_are_counted_and_not_believed():
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    animated = encode(first, "PNG", save_all=True, append_images=[second, first])
    assert ask_bytes("has 3 frames", animated).status is Status.VERIFIED
    assert ask_bytes("has 2 frames", animated).status is Status.FAILED


def test_more_frames_than_are_walked_are_not_counted(monkeypatch):
    monkeypatch.setattr("qwed.engines._image.loader.MAX_FRAMES", 5)
    assert ask_bytes("has 20 frames", animated_image(20)).status is Status.INCONCLUSIVE
    assert ask_bytes("the image is animated", animated_image(20)).status is Status.VERIFIED
    assert ask_bytes("the image is 20x20", animated_image(20)).status is Status.VERIFIED
    assert MAX_FRAMES == 10_000


def test_a_size_that_depends_on_the_kilobyte_is_not_decided():
    content = PICTURES["white.png"]()
    padded = content + b"\0" * (1_010 - len(content))
    assert ask_bytes("file size is less than 1 KB", padded).status is Status.INCONCLUSIVE
    assert ask_bytes("file size is less than 1 KiB", padded).status is Status.VERIFIED
    assert ask_bytes("file size is 1,010 bytes", padded).status is Status.VERIFIED


def test_text_is_looked_for_only_where_it_can_be_read(monkeypatch):
    monkeypatch.setattr("qwed.engines._image.claim_checks.recognise_text", lambda _image: "INVOICE  No. 7\n")
    assert ask("contains the text 'invoice no. 7'").status is Status.VERIFIED
    assert ask("contains the text 'RECEIPT'").status is Status.INCONCLUSIVE


def test_without_a_reader_the_answer_says_so(monkeypatch):
    monkeypatch.setattr(_image_text, "tesseract_path", lambda: None)
    verdict = ask("contains the text 'INVOICE'")
    assert (verdict.status, verdict.message) == (Status.INCONCLUSIVE, "no text recognition is installed")


def test_a_reader_that_fails_reads_nothing(monkeypatch):
    monkeypatch.setattr(_image_text, "tesseract_path", lambda: "/bin/false")
    assert _image_text.recognise_text(Image.new("RGB", (5, 5))) is None


def test_a_reader_gets_the_image_and_its_answer_is_read(monkeypatch, tmp_path):
    script = tmp_path / "reader"
    script.write_text("#!/bin/sh\nhead -c 4 | tail -c 3\n")
    script.chmod(0o700)
    monkeypatch.setattr(_image_text, "tesseract_path", lambda: str(script))
    assert _image_text.recognise_text(Image.new("RGB", (5, 5))) == "PNG"


def test_damaged_exif_does_not_hide_the_rest():
    out = io.BytesIO()
    Image.new("RGB", (7, 5)).save(out, "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    assert ask_bytes("the image is 7x5", out.getvalue()).status is Status.VERIFIED
    assert ask_bytes("has GPS data", out.getvalue()).status is Status.FAILED


@pytest.mark.parametrize("size", [499, 500, 501, 100_000])
@pytest.mark.parametrize("unit", ["width = 1 and ", "(", "'", "at least ", "1,", "pixel (", "is not "])
def test_a_long_claim_is_answered(unit, size):
    assert ask((unit * size)[:size]).status in (Status.INCONCLUSIVE, Status.FAILED)


def test_every_bit_of_a_file_may_be_wrong():
    content = PICTURES["flag.webp"]()
    for at in range(0, len(content), 3):
        damaged = content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
        assert ask_bytes("the image is 63x48", damaged).status in (Status.BLOCKED, Status.FAILED)


def test_a_picture_keeps_its_first_frame():
    picture = open_picture(animated_image())
    assert (picture.frames, picture.width, picture.image.mode) == (3, 20, picture.image.mode)
