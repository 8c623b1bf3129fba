"""One episode with everything that happened: gears, picks, the actions of every gear, rewards, pictures.

Comes in: a policy and a stage. Goes out: an `Episode` for the timeline, the video and the page's player.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lowgear.policy.controller import Shifter, act, boltzmann, values
from lowgear.policy.file import Policy
from lowgear.report.stage import Picture, Stage

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
STEPS_AT_MOST = 2_000  # of an environment without a time limit
FRAMES_AT_MOST = 100


@dataclass(frozen=True)
class Episode:
    """T steps of one controller."""

    policy: Policy
    stage: str  # where it was played
    seed: int
    gear: IntArray  # (T,): which acted
    picked: npt.NDArray[np.bool_]  # (T,): the master was asked
    actions: FloatArray  # (gears, T, act): what each gear would have done, in [-1, 1]
    reward: FloatArray  # (T,)
    success: bool | None
    cut: bool  # it went on after the last step recorded
    pictures: tuple[Picture, ...]  # one before every `every`-th step, from the first on
    every: int

    @property
    def steps(self) -> int:
        """How long it was."""
        return len(self.gear)

    @property
    def total(self) -> float:
        """Its return."""
        return float(self.reward.sum(dtype=np.float64))

    def until(self, steps: int) -> "Episode":
        """Its first steps."""
        return replace(
            self,
            gear=self.gear[:steps],
            picked=self.picked[:steps],
            actions=self.actions[:, :steps],
            reward=self.reward[:steps],
            pictures=self.pictures[: -(-steps // self.every)],
        )

    @property
    def gear_share(self) -> list[float]:
        """Share of the steps in each gear."""
        return [float((self.gear == gear).mean()) for gear in range(len(self.actions))]

    @property
    def flops_per_step(self) -> float:
        """What the controller cost, its picks counted."""
        prices = self.policy.header.prices
        spent = np.asarray(prices.gears, np.float64)[self.gear].sum() + prices.pick * int(self.picked.sum())
        return float(spent / self.steps)


def record(policy: Policy, stage: Stage, master: str, seed: int = 0, frames: int = FRAMES_AT_MOST) -> Episode:
    """Play one episode from `seed`; the master picks its best value, or samples them where `master` is boltzmann."""
    header = policy.header
    shifter = Shifter((1, 1), len(header.gears), header.periods)
    chance = np.random.default_rng((seed, 1))
    observation = stage.env.reset([seed])
    limit = stage.env.spec.max_episode_steps or STEPS_AT_MOST
    gear: list[int] = []
    picked: list[bool] = []
    actions: list[list[FloatArray]] = []
    reward: list[float] = []
    ended, success = False, None
    while not ended and len(gear) < limit:
        seen = observation[None]
        picked.append(_pick(policy, shifter, seen, master, chance))
        gear.append(int(shifter.gear[0, 0]))
        actions.append(_every_gear(policy, seen))
        step = stage.env.step(actions[-1][gear[-1]][None])
        ended = bool(step.terminated[0] or step.truncated[0])
        shifter.release(shifter.advance(np.array([[ended]])))
        reward.append(float(step.reward[0]))
        success = None if step.success is None else bool(step.success[0])
        observation = step.observation
    every = max(1, -(-len(gear) // frames)) if frames else 1
    taken = [each[now] for each, now in zip(actions, gear, strict=True)]
    return Episode(
        policy=policy,
        stage=stage.name,
        seed=seed,
        gear=np.array(gear, np.int32),
        picked=np.array(picked, np.bool_),
        actions=np.array(actions, np.float32).transpose(1, 0, 2),
        reward=np.array(reward, np.float32),
        success=success,
        cut=not ended,
        pictures=_draw(stage, seed, taken, every) if frames else (),
        every=every,
    )


def _draw(stage: Stage, seed: int, taken: Sequence[FloatArray], every: int) -> tuple[Picture, ...]:
    """Take the same steps again and look: only now is it known how long the episode is and so what to draw."""
    if stage.draw is None:
        return ()
    pictures = []
    stage.env.reset([seed])
    for number, action in enumerate(taken):
        if number % every == 0:
            pictures.append(stage.draw())
        stage.env.step(action[None])
    return tuple(pictures)


def _every_gear(policy: Policy, seen: FloatArray) -> list[FloatArray]:
    """What each gear would do."""
    gears, activation = policy.weights.gears, policy.header.activation
    return [act(gears, seen, np.full((1, 1), g, np.int32), activation)[0, 0] for g in range(len(gears))]


def _pick(policy: Policy, shifter: Shifter, seen: FloatArray, master: str, chance: np.random.Generator) -> bool:
    """Shift where it is due; returns whether the master was asked."""
    header = policy.header
    if not bool(shifter.due[0, 0]):
        return False
    if header.forced_gear is not None:
        shifter.pick(np.full((1, 1), header.forced_gear, np.int32))
        return False
    position = None
    if header.dial is not None:
        position = np.full((1, 1), header.dial.position(header.cost_coefficient), np.float32)
    found = values(policy.weights, seen, position, header.activation)
    if master == "boltzmann":
        choice = boltzmann(found, chance.random((1, 1), np.float32))
    else:
        choice = found.argmax(axis=-1).astype(np.int32)
    shifter.pick(choice)
    return True
