"""Pictures of an episode: the gear drawn on each, all of them as an animated WebP, or side by side for the page.

Comes in: an `Episode` whose stage could be seen. Needs Pillow, which Matplotlib brings.
"""

import io
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from lowgear.report.episode import Episode
from lowgear.report.looks import gear_colour, gear_name

QUALITY = 62  # of lossy WebP: a walker's frame of 256 pixels takes 6 kB
PLAYED_AT = 12.5  # frames a second
SIDE = 256  # pixels: of the longer side of a frame
COLUMNS = 10  # of the sheet


@dataclass(frozen=True)
class Sheet:
    """All frames in one picture, row by row."""

    data: bytes  # WebP
    columns: int
    width: int  # of one frame
    height: int
    count: int


def sheet(episode: Episode) -> Sheet | None:
    """The frames without anything drawn on them, for a player that draws for itself; None where there are none."""
    frames = _frames(episode)
    if not frames:
        return None
    width, height = frames[0].size
    rows = -(-len(frames) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * width, rows * height))
    for number, frame in enumerate(frames):
        whole.paste(frame, (number % COLUMNS * width, number // COLUMNS * height))
    buffer = io.BytesIO()
    whole.save(buffer, "WEBP", quality=QUALITY)
    return Sheet(buffer.getvalue(), COLUMNS, width, height, len(frames))


def stills(episode: Episode, count: int) -> list[tuple[int, Image.Image]]:
    """`count` frames spread over the episode, with the steps they show."""
    frames = _frames(episode)
    count = min(count, len(frames))
    chosen = [round(i * (len(frames) - 1) / max(count - 1, 1)) for i in range(count)]
    return [(number * episode.every, frames[number]) for number in chosen]


def video(episode: Episode) -> bytes | None:
    """An animated WebP with the gear and the return so far on every frame; None where there are no frames."""
    frames = _frames(episode)
    if not frames:
        return None
    shown = [_mark(frame, episode, number * episode.every) for number, frame in enumerate(frames)]
    buffer = io.BytesIO()
    shown[0].save(
        buffer,
        "WEBP",
        save_all=True,
        append_images=shown[1:],
        duration=round(1000 / PLAYED_AT),
        loop=0,
        quality=QUALITY,
        method=3,
    )
    return buffer.getvalue()


def _frames(episode: Episode) -> list[Image.Image]:
    """Every picture, no longer than SIDE."""
    found = []
    for picture in episode.pictures:
        frame = Image.fromarray(picture)
        if max(frame.size) > SIDE:
            share = SIDE / max(frame.size)
            frame = frame.resize((round(frame.width * share), round(frame.height * share)), Image.Resampling.LANCZOS)
        found.append(frame)
    return found


def _mark(frame: Image.Image, episode: Episode, step: int) -> Image.Image:
    """The frame with its gear and the return so far below it, and the gears of the whole episode as a strip."""
    gear, gears, width = int(episode.gear[step]), len(episode.actions), frame.width
    marked = Image.new("RGB", (width, frame.height + 34), "#16181d")
    marked.paste(frame, (0, 0))
    pen = ImageDraw.Draw(marked)
    top = frame.height
    for x in range(width):
        at = min(int(x / width * episode.steps), episode.steps - 1)
        colour = gear_colour(int(episode.gear[at]), gears)
        pen.line([(x, top), (x, top + 7)], fill=colour)
    cursor = step / episode.steps * width
    pen.rectangle([cursor - 1, top - 2, cursor + 1, top + 9], fill="white")
    pen.ellipse([8, top + 15, 20, top + 27], fill=gear_colour(gear, gears), outline="white")
    font = ImageFont.load_default(13)
    pen.text((27, top + 21), gear_name(gear, gears), fill="white", font=font, anchor="lm")
    so_far = float(episode.reward[: step + 1].sum())
    pen.text((width - 8, top + 21), f"return {so_far:,.0f}", fill="#c9ced6", font=font, anchor="rm")
    return marked
