"""One episode to look at: what was recorded, what every gear would have done, and frames of the simulation.

Comes in: a policy and a simulator. Goes out: a `Playback` for the timeline and for `film.py`. Needs Pillow, which
Matplotlib brings.
"""

import io
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from lowgear.evaluation.record import Episode, record
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy
from lowgear.report.simulator import Frame, Simulator

STEPS_AT_MOST = 2_000  # of an environment without a time limit
FRAMES_AT_MOST = 1_000  # every step of most episodes
SIDE = 640  # pixels: of the longer side of a frame
STEP_S = 1 / 30  # of a simulation that does not tell how long a step is


@dataclass(frozen=True)
class Playback:
    """T steps of one controller."""

    episode: Episode
    simulator: str  # where it was played
    actions: FloatArray  # (gears, T, act): what each gear would have done, in [-1, 1]
    frames: tuple[bytes, ...]  # one before every `every`-th step, from the first on, as PNG: a thousand fit in memory
    every: int
    step_s: float = STEP_S  # how long a step is in the simulation

    def until(self, steps: int) -> "Playback":
        """Its first steps."""
        return replace(
            self,
            episode=self.episode.until(steps),
            actions=self.actions[:, :steps],
            frames=self.frames[: -(-steps // self.every)],
        )

    def thinned(self, stride: int) -> "Playback":
        """With one frame of so many."""
        return replace(self, frames=self.frames[::stride], every=self.every * stride)

    def picture(self, number: int) -> Image.Image:
        """One of its frames."""
        return Image.open(io.BytesIO(self.frames[number])).convert("RGB")


def play_back(
    policy: Policy, simulator: Simulator, master: str, seed: int = 0, frames: int = FRAMES_AT_MOST
) -> Playback:
    """Play one episode from `seed`; the master picks its best value, or samples them where `master` is boltzmann."""
    limit = simulator.env.spec.max_episode_steps or STEPS_AT_MOST
    (episode,) = record(policy, simulator.env, [seed], master=master, chance_seed=(seed, 1), steps_at_most=limit)
    controller = Controller.from_policies([policy])
    seen, before = episode.observation[None], episode.last_action[None]
    actions = [controller.act_with(gear, seen, before)[0] for gear in range(controller.gear_count)]
    every = max(1, -(-episode.steps // frames)) if frames else 1
    return Playback(
        episode,
        simulator.name,
        np.array(actions),
        _render(simulator, seed, episode, every) if frames else (),
        every,
        simulator.step_s or STEP_S,
    )


def _render(simulator: Simulator, seed: int, episode: Episode, every: int) -> tuple[bytes, ...]:
    """Take the same steps again and look: only now is it known how long the episode is and so what to render."""
    if simulator.render is None:
        return ()
    frames = []
    simulator.env.reset([seed])
    for number, action in enumerate(episode.action):
        if number % every == 0:
            frames.append(_png(simulator.render()))
        simulator.env.step(action[None])
    return tuple(frames)


def _png(frame: Frame) -> bytes:
    """A frame no longer than SIDE."""
    image = Image.fromarray(frame)
    if max(image.size) > SIDE:
        share = SIDE / max(image.size)
        image = image.resize((round(image.width * share), round(image.height * share)), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
