"""Returns, gear shares and FLOPs of controllers over many episodes at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.envs.protocol import BatchEnv
from lowgear.policy import cost
from lowgear.policy.controller import Shifter, Weights, act, boltzmann, stack, values
from lowgear.policy.cost import Prices
from lowgear.policy.file import Policy

FloatArray = npt.NDArray[np.float64]
ENVIRONMENTS_AT_MOST = 64  # making one costs EnvPool up to 50 ms
NORMAL_95 = 1.96
MASTERS = ("greedy", "boltzmann")


@dataclass(frozen=True)
class Players:
    """Controllers of equal shapes that play side by side, and how they choose."""

    weights: Weights
    forced_gear: npt.NDArray[np.int32]  # (P,): -1 where the master picks
    periods: tuple[int, ...]
    activation: str
    master: str  # one of MASTERS
    position: npt.NDArray[np.float32] | None = None  # (P,): of each dial; None where the masters have none


@dataclass(frozen=True)
class Played:
    """What happened, (P, episodes) each but the shares, (P, episodes, gears)."""

    returns: FloatArray
    lengths: FloatArray
    picks: FloatArray
    gear_steps: FloatArray
    success: FloatArray | None  # at each episode's last step


def play(
    players: Players, env: BatchEnv, episodes: int, seed: int, progress: Callable[[int], None] | None = None
) -> Played:
    """`episodes` episodes of every controller, the same starts for each of them.

    Each environment plays a number of episodes fixed beforehand, so short episodes count no more than long ones.
    """
    population = len(players.forced_gear)
    slots = env.num_envs // population
    quota = np.array([len(range(slot, episodes, slots)) for slot in range(slots)])
    seeds = [int(np.random.SeedSequence((seed, slot)).generate_state(1)[0] >> 1) for slot in range(slots)]
    generator = np.random.default_rng((seed, 1))
    gears = len(players.weights.gears)
    tally = _Tally(population, slots, gears)
    record: list[list[list[tuple[Any, ...]]]] = [[[] for _ in range(slots)] for _ in range(population)]
    shifter = Shifter((population, slots), gears, players.periods)
    observation = env.reset(seeds * population).reshape(population, slots, -1)
    left = np.tile(quota, (population, 1))
    while (left > 0).any():
        tally.picks += _pick(players, shifter, observation, generator)
        gear = shifter.gear
        action = act(players.weights.gears, observation, gear, players.activation)
        step = env.step(action.reshape(population * slots, -1))
        ended = (step.terminated | step.truncated).reshape(population, slots)
        shifter.release(shifter.advance(ended))
        tally.add(step.reward.reshape(population, slots), gear)
        success = None if step.success is None else step.success.reshape(population, slots)
        observation = step.observation.reshape(population, slots, -1)
        for p, s in zip(*np.nonzero(ended & (left > 0)), strict=True):
            record[p][s].append((*tally.row(p, s), success is not None and success[p, s]))
            left[p, s] -= 1
            if progress:
                progress(1)
        tally.clear(ended)
    ordered = [[record[p][i % slots][i // slots] for i in range(episodes)] for p in range(population)]
    returns, lengths, picks, gear_steps, succeeded = (
        np.array([[row[c] for row in agent] for agent in ordered], np.float64) for c in range(5)
    )
    return Played(returns, lengths, picks, gear_steps, succeeded if env.spec.has_success else None)


def play_policies(
    policies: Sequence[Policy],
    make_env: Callable[[int], BatchEnv],
    episodes: int,
    master: str,
    seed: int,
    progress: Callable[[int], None] | None = None,
    slots: int | None = None,
) -> Played:
    """`episodes` episodes of every policy at its own coefficient, the same starts for each of them.

    Not more than ENVIRONMENTS_AT_MOST play at once, whatever the number of policies. Each policy plays in `slots` of
    them: starts are the same from call to call only for the same number.
    """
    slots = slots or slots_for(len(policies), episodes)
    size = max(1, ENVIRONMENTS_AT_MOST // slots)
    groups = [policies[i : i + size] for i in range(0, len(policies), size)]
    found = []
    for group in groups:
        env = make_env(len(group) * slots)
        try:
            found.append(play(of_policies(group, master), env, episodes, seed, progress))
        finally:
            env.close()
    returns, lengths, picks, gear_steps = (
        np.concatenate([getattr(part, name) for part in found])
        for name in ("returns", "lengths", "picks", "gear_steps")
    )
    success = [part.success for part in found if part.success is not None]
    return Played(returns, lengths, picks, gear_steps, np.concatenate(success) if success else None)


def at_settings(policies: Sequence[Policy], settings: Sequence[float] | int) -> list[tuple[int, Policy]]:
    """Every policy that has a dial at each setting, or at so many along it; the others as they are. Numbered."""
    found = []
    for number, policy in enumerate(policies):
        dial = policy.header.dial
        if dial is None or not policy.turns:
            found.append((number, policy))
        else:
            values = dial.settings(settings) if isinstance(settings, int) else settings
            found += [(number, policy.at(value)) for value in values]
    return found


def slots_for(population: int, episodes: int) -> int:
    """How many environments each controller plays in at once."""
    return max(1, min(episodes, ENVIRONMENTS_AT_MOST // population))


def summarise(played: Played, agent: int, prices: Prices) -> dict[str, Any]:
    """One controller's figures as `lowgear evaluate --json` gives them."""
    steps, picks = played.lengths[agent].sum(), played.picks[agent].sum()
    share = played.gear_steps[agent].sum(axis=0) / steps
    flops = cost.episode_flops(prices.gears, share.tolist(), prices.pick, picks / steps, 1)
    returns = played.returns[agent]
    return {
        "return_mean": float(returns.mean()),
        "return_std": _spread(returns),
        "return_ci95": half_width(returns),
        "success_rate": None if played.success is None else float(played.success[agent].mean()),
        "gear_share": share.tolist(),
        "large_share": float(share[-1]),
        "period_mean": float(steps / picks) if picks else None,
        "flops_per_step": float(flops),
        "flops_reduction": cost.flops_reduction(float(flops), prices.gears[-1]),
        "flops_reduction_ci95": half_width(flops_each(played, agent, prices)) / prices.gears[-1],
        "episode_length_mean": float(played.lengths[agent].mean()),
    }


def flops_each(played: Played, agent: int, prices: Prices) -> FloatArray:
    """FLOPs per step of each of one controller's episodes."""
    flops = played.gear_steps[agent] @ np.asarray(prices.gears) + played.picks[agent] * prices.pick
    each: FloatArray = flops / played.lengths[agent]
    return each


def half_width(sample: FloatArray) -> float:
    """Of the 95% interval of a mean."""
    return NORMAL_95 * _spread(sample) / math.sqrt(len(sample))


def _spread(sample: FloatArray) -> float:
    return float(sample.std(ddof=1)) if len(sample) > 1 else 0.0


def of_policies(policies: Sequence[Policy], master: str) -> Players:
    """Saved policies of one run, each at the coefficient its header names, ready to play."""
    first = policies[0].header
    for policy in policies[1:]:
        header = policy.header
        if (header.task, header.gears, header.obs_dim, header.periods) != (
            first.task,
            first.gears,
            first.obs_dim,
            first.periods,
        ):
            raise LowgearError(f"policies of {first.task} {first.gears} and {header.task} {header.gears} do not mix")
    forced = np.array([-1 if p.header.forced_gear is None else p.header.forced_gear for p in policies], np.int32)
    weights = stack([policy.weights for policy in policies])
    dials = [(p.header.dial, p.header.cost_coefficient) for p in policies]
    position = [dial.position(coefficient) for dial, coefficient in dials if dial is not None]
    return Players(
        weights, forced, first.periods, first.activation, master, np.array(position, np.float32) if position else None
    )


def _pick(
    players: Players, shifter: Shifter, observation: npt.NDArray[np.float32], generator: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Shift where it is due; returns where the master was asked."""
    due = shifter.due
    asked: npt.NDArray[np.bool_] = due & (players.forced_gear < 0)[:, None]
    choice = np.broadcast_to(players.forced_gear[:, None], due.shape)
    if asked.any():
        position = None if players.position is None else np.broadcast_to(players.position[:, None], due.shape)
        found = values(players.weights, observation, position, players.activation)
        if players.master == "boltzmann":
            picked = boltzmann(found, generator.random(due.shape, np.float32))
        else:
            picked = found.argmax(axis=-1).astype(np.int32)
        choice = np.where(asked, picked, choice)
    shifter.pick(choice)
    return asked


class _Tally:
    """Running sums of the episodes under way, (P, slots)."""

    def __init__(self, population: int, slots: int, gears: int) -> None:
        shape = (population, slots)
        self.returns, self.lengths, self.picks = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.gear_steps = np.zeros((*shape, gears))
        self._number = np.arange(gears)

    def add(self, reward: npt.NDArray[np.float32], gear: npt.NDArray[np.int32]) -> None:
        self.returns += reward
        self.lengths += 1
        self.gear_steps += gear[..., None] == self._number

    def row(self, p: int, s: int) -> tuple[Any, ...]:
        at = (p, s)
        return (
            self.returns[at],
            self.lengths[at],
            self.picks[at],
            self.gear_steps[at].copy(),
        )

    def clear(self, where: npt.NDArray[np.bool_]) -> None:
        for sums in (self.returns, self.lengths, self.picks, self.gear_steps):
            sums[where] = 0
