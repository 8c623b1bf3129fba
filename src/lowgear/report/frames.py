"""Frames of an episode: the gear drawn on each, all of them as an animated WebP, or side by side for the page.

Comes in: a `Playback` whose simulator could render. Needs Pillow, which Matplotlib brings.
"""

import io
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from lowgear.report.playback import Playback
from lowgear.report.style import gear_name, gear_style

QUALITY = 62  # of lossy WebP: a walker's frame of 256 pixels takes 6 kB
PLAYED_AT = 12.5  # frames a second
SIDE = 256  # pixels: of the longer side of a frame
COLUMNS = 10  # of the sheet


@dataclass(frozen=True)
class FrameSheet:
    """All frames in one picture, row by row."""

    data: bytes  # WebP
    columns: int
    width: int  # of one frame
    height: int
    count: int


def frame_sheet(playback: Playback) -> FrameSheet | None:
    """The frames without anything drawn on them, for a player that draws for itself; None where there are none."""
    frames = _images(playback)
    if not frames:
        return None
    width, height = frames[0].size
    rows = -(-len(frames) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * width, rows * height))
    for number, frame in enumerate(frames):
        whole.paste(frame, (number % COLUMNS * width, number // COLUMNS * height))
    buffer = io.BytesIO()
    whole.save(buffer, "WEBP", quality=QUALITY)
    return FrameSheet(buffer.getvalue(), COLUMNS, width, height, len(frames))


def stills(playback: Playback, count: int) -> list[tuple[int, Image.Image]]:
    """`count` frames spread over the episode, with the steps they show."""
    frames = _images(playback)
    count = min(count, len(frames))
    chosen = [round(i * (len(frames) - 1) / max(count - 1, 1)) for i in range(count)]
    return [(number * playback.every, frames[number]) for number in chosen]


def video(playback: Playback) -> bytes | None:
    """An animated WebP with the gear and the return so far on every frame; None where there are no frames."""
    frames = _images(playback)
    if not frames:
        return None
    first, *others = [_annotated(frame, playback, number * playback.every) for number, frame in enumerate(frames)]
    buffer = io.BytesIO()
    timing = {"duration": round(1000 / PLAYED_AT), "loop": 0}
    first.save(buffer, "WEBP", save_all=True, append_images=others, quality=QUALITY, method=3, **timing)
    return buffer.getvalue()


def _images(playback: Playback) -> list[Image.Image]:
    """Every frame, no longer than SIDE."""
    found = []
    for frame in playback.frames:
        image = Image.fromarray(frame)
        if max(image.size) > SIDE:
            share = SIDE / max(image.size)
            image = image.resize((round(image.width * share), round(image.height * share)), Image.Resampling.LANCZOS)
        found.append(image)
    return found


def _annotated(frame: Image.Image, playback: Playback, step: int) -> Image.Image:
    """The frame with its gear and the return so far below it, and the gears of the whole episode as a strip."""
    episode, gears, width, top = playback.episode, len(playback.actions), frame.width, frame.height
    whole = Image.new("RGB", (width, top + 34), "#16181d")
    whole.paste(frame, (0, 0))
    pen = ImageDraw.Draw(whole)
    for x in range(width):
        at = min(int(x / width * episode.steps), episode.steps - 1)
        pen.line([(x, top), (x, top + 7)], fill=gear_style(int(episode.gear[at]), gears).colour)
    cursor, gear = step / episode.steps * width, int(episode.gear[step])
    pen.rectangle([cursor - 1, top - 2, cursor + 1, top + 9], fill="white")
    pen.ellipse([8, top + 15, 20, top + 27], fill=gear_style(gear, gears).colour, outline="white")
    font = ImageFont.load_default(13)
    pen.text((27, top + 21), gear_name(gear, gears), fill="white", font=font, anchor="lm")
    so_far = float(episode.reward[: step + 1].sum())
    pen.text((width - 8, top + 21), f"return {so_far:,.0f}", fill="#c9ced6", font=font, anchor="rm")
    return whole
