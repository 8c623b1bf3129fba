"""One episode to look at: what was recorded, what every gear would have done, and frames of the simulation.

Comes in: a policy and a simulator. Goes out: a `Playback` for the timeline, its frames as an animated WebP, or side by
side for the page's player. Needs Pillow, which Matplotlib brings.
"""

import base64
import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from lowgear.evaluation.record import Episode, record
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.report.simulator import Frame, Simulator
from lowgear.report.style import gear_name, gear_style

STEPS_AT_MOST = 2_000  # of an environment without a time limit
FRAMES_AT_MOST = 100
QUALITY = 62  # of lossy WebP: a walker's frame of 256 pixels takes 6 kB
PLAYED_AT = 12.5  # frames a second
SIDE = 256  # pixels: of the longer side of a frame
COLUMNS = 10  # of the sheet


@dataclass(frozen=True)
class Playback:
    """T steps of one controller."""

    episode: Episode
    simulator: str  # where it was played
    actions: FloatArray  # (gears, T, act): what each gear would have done, in [-1, 1]
    frames: tuple[Frame, ...]  # one before every `every`-th step, from the first on
    every: int

    def until(self, steps: int) -> "Playback":
        """Its first steps."""
        return replace(
            self,
            episode=self.episode.until(steps),
            actions=self.actions[:, :steps],
            frames=self.frames[: -(-steps // self.every)],
        )


def play_back(
    policy: Policy, simulator: Simulator, master: str, seed: int = 0, frames: int = FRAMES_AT_MOST
) -> Playback:
    """Play one episode from `seed`; the master picks its best value, or samples them where `master` is boltzmann."""
    limit = simulator.env.spec.max_episode_steps or STEPS_AT_MOST
    (episode,) = record(policy, simulator.env, [seed], master=master, chance_seed=(seed, 1), steps_at_most=limit)
    controller = Controller.from_policies([policy])
    actions = [controller.act_with(gear, episode.observation[None])[0] for gear in range(controller.gears)]
    every = max(1, -(-episode.steps // frames)) if frames else 1
    return Playback(
        episode, simulator.name, np.array(actions), _render(simulator, seed, episode, every) if frames else (), every
    )


def frame_sheet(playback: Playback) -> dict[str, Any] | None:
    """All frames in one picture, row by row, for a player that draws on them itself; None where there are none."""
    frames = _images(playback)
    if not frames:
        return None
    width, height = frames[0].size
    whole = Image.new("RGB", (COLUMNS * width, -(-len(frames) // COLUMNS) * height))
    for number, frame in enumerate(frames):
        whole.paste(frame, (number % COLUMNS * width, number // COLUMNS * height))
    buffer = io.BytesIO()
    whole.save(buffer, "WEBP", quality=QUALITY)
    source = "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"data": source, "columns": COLUMNS, "width": width, "height": height, "count": len(frames)}


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


def _render(simulator: Simulator, seed: int, episode: Episode, every: int) -> tuple[Frame, ...]:
    """Take the same steps again and look: only now is it known how long the episode is and so what to render."""
    if simulator.render is None:
        return ()
    frames = []
    simulator.env.reset([seed])
    for number, action in enumerate(episode.action):
        if number % every == 0:
            frames.append(simulator.render())
        simulator.env.step(action[None])
    return tuple(frames)


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
