"""The frames of an episode as the page and videos have them.

The page wants any frame at any time and little data, so it gets the median of some frames once, and of every frame the
rectangle that differs from it: a camera that stands still leaves a tenth of the picture.
"""

import base64
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from lowgear.report.playback import Playback
from lowgear.report.simulator import Frame
from lowgear.report.style import FILM, gear_name, gear_on_dark

QUALITY = 62  # of lossy WebP: a walker's frame of 640 pixels takes 12 kB
BACKGROUND_FROM = 25  # frames whose median is the background
DIFFERS = 10  # of 255: less is the background's
STRIP, MARGIN = 8, 38  # pixels below a video's frame: its gears, and all


def page_frames(playback: Playback, bytes_at_most: int) -> dict[str, Any] | None:
    """A background and a rectangle for each frame, as many frames as fit; None where there are none."""
    if not playback.frames:
        return None
    background = _background(playback)
    tiles: dict[int, list[Any]] = {}
    stride, spent = 1, 0
    for number in range(len(playback.frames)):
        if number % stride:
            continue
        tiles[number] = _tile(playback, number, background)
        spent += len(tiles[number][-1])
        while spent > bytes_at_most and len(tiles) > 2:  # half of the frames must do
            stride *= 2
            tiles = {place: tile for place, tile in tiles.items() if place % stride == 0}
            spent = sum(len(tile[-1]) for tile in tiles.values())
    height, width, _ = background.shape
    return {
        "width": width,
        "height": height,
        "every": playback.every * stride,
        "background": _encode(Image.fromarray(background)),
        "tiles": list(tiles.values()),
    }


def stills(playback: Playback, count: int) -> list[tuple[int, Image.Image]]:
    """`count` frames spread over the episode, with the steps they show."""
    frames = len(playback.frames)
    count = min(count, frames)
    chosen = [round(i * (frames - 1) / max(count - 1, 1)) for i in range(count)]
    return [(number * playback.every, playback.picture(number)) for number in chosen]


def annotated(playback: Playback) -> Iterator[Image.Image]:
    """Every frame with its gear and the return so far below it, and the gears of the whole episode as a strip."""
    strip = None
    for number in range(len(playback.frames)):
        frame = playback.picture(number)
        strip = strip or gear_strip(playback, frame.width)
        yield annotate(frame, strip, playback, number * playback.every)


def _background(playback: Playback) -> Frame:
    count = len(playback.frames)
    chosen = sorted({round(i * (count - 1) / (BACKGROUND_FROM - 1)) for i in range(BACKGROUND_FROM)})
    median: Frame = np.median([np.asarray(playback.picture(number)) for number in chosen], axis=0).astype(np.uint8)
    return median


def _tile(playback: Playback, number: int, background: Frame) -> list[Any]:
    """Left, top and picture of what differs; an empty picture where nothing does."""
    picture = playback.picture(number)
    away = np.abs(np.asarray(picture).astype(np.int16) - background).max(axis=-1) > DIFFERS
    rows, columns = np.flatnonzero(away.any(axis=1)), np.flatnonzero(away.any(axis=0))
    if not len(rows):
        return [0, 0, ""]
    left, top = int(columns[0]), int(rows[0])
    return [left, top, _encode(picture.crop((left, top, int(columns[-1]) + 1, int(rows[-1]) + 1)))]


def _encode(picture: Image.Image) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=QUALITY, method=2)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def gear_strip(playback: Playback, width: int) -> Image.Image:
    """The gears of all steps: in each column the share of each of them, the dearest at the bottom."""
    gear, gears = playback.episode.gear, playback.episode.policy.header.gears
    strip = Image.new("RGB", (width, STRIP))
    pen = ImageDraw.Draw(strip)
    edges = np.linspace(0, len(gear), width + 1)
    for x in range(width):
        first = int(edges[x])
        within = gear[first : max(first + 1, int(np.ceil(edges[x + 1])))]
        bottom = STRIP
        for number in reversed(range(len(gears))):
            top = bottom - round(STRIP * float((within == number).mean()))
            if top < bottom:
                pen.line([(x, top), (x, bottom - 1)], fill=gear_on_dark(number, gears))
            bottom = top
    return strip


def annotate(frame: Image.Image, strip: Image.Image, playback: Playback, step: int) -> Image.Image:
    """The frame of a step with the strip of gears, the gear that acts and the return so far below it."""
    episode, (width, top) = playback.episode, frame.size
    gears = episode.policy.header.gears
    whole = Image.new("RGB", (width + width % 2, (top + MARGIN) // 2 * 2), FILM["ground"])  # video wants even sides
    whole.paste(frame, (0, 0))
    whole.paste(strip, (0, top))
    pen = ImageDraw.Draw(whole)
    cursor, gear = step / episode.steps * width, int(episode.gear[step])
    pen.rectangle([cursor - 1, top - 2, cursor + 1, top + STRIP + 1], fill=FILM["ink"])
    middle, font = top + STRIP + 15, ImageFont.load_default(14)
    pen.ellipse([8, middle - 6, 20, middle + 6], fill=gear_on_dark(gear, gears), outline=FILM["ink"])
    pen.text((27, middle), gear_name(gear, gears), fill=FILM["ink"], font=font, anchor="lm")
    so_far = float(episode.reward[: step + 1].sum())
    said = f"step {step:,}   return {so_far:,.1f}"
    pen.text((width - 8, middle), said, fill=FILM["soft"], font=font, anchor="rm")
    return whole
