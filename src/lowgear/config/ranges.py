"""What values a run's settings may have."""

import math

from lowgear import LowgearError
from lowgear.config.recipes import Recipe
from lowgear.config.tasks import MOST_WIDTH
from lowgear.policy import fields
from lowgear.policy.dial import Dial
from lowgear.policy.header import LARGEST_COEFFICIENT, LONGEST_PERIOD, MOST_PERIODS

MAX_SEED = fields.MAX_SEED
MOST_STEPS = 10**12  # of a run
MOST_AGENTS = 4096
LARGEST_RATE = 1e30  # of learning, and of a first temperature
SHARES = (
    "master_discount",
    "target_rate",
    "explore_share",
    "explore_last",
    "hindsight_share",
    "goal_random_share",
)
MOST = {  # of settings that decide how much memory a run takes
    "batch": 2**20,
    "replay": 10**9,
    "master_units": MOST_WIDTH,
    "master_batch": 2**20,
    "master_replay": 10**9,
    "master_copy_every": 10**9,
    "noise_hold": 10**6,
    "environments": 2**14,
    "chunk": 2**16,
    "updates_per_step": 64,
    "actor_every": 2**16,
}


def check_recipe(recipe: Recipe) -> None:
    """Refuse a setting that is out of its range, or does not fit the others."""
    for name, most in MOST.items():
        if not 1 <= getattr(recipe, name) <= most:
            shown = fields.shown(getattr(recipe, name))
            raise LowgearError(f"{name.replace('_', ' ')} {shown}: write 1 or more, {most:,} at most")
    periods = list(recipe.periods)
    whole = all(type(period) is int and 1 <= period <= LONGEST_PERIOD for period in periods)
    if not 1 <= len(periods) <= MOST_PERIODS or not whole or periods != sorted(set(periods)):
        raise LowgearError(
            f"period {','.join(map(fields.shown, periods[:MOST_PERIODS]))}: write different whole numbers of 1 or "
            f"more, {LONGEST_PERIOD:,} at most, shortest first"
        )
    if recipe.chunk % recipe.environments:
        raise LowgearError(
            f"{recipe.environments} environments cannot share chunks of {recipe.chunk} steps evenly: choose a divisor"
        )
    if recipe.noise_hold > recipe.chunk:
        raise LowgearError(
            f"noise hold {recipe.noise_hold}: noise is drawn for a chunk of {recipe.chunk} steps at a time; write that "
            "many at most"
        )
    if recipe.master_replay < recipe.environments:
        raise LowgearError(
            f"master replay {recipe.master_replay}: {recipe.environments} environments share it; write as many or more"
        )
    if recipe.updates_per_chunk % recipe.actor_every:
        raise LowgearError(
            f"actor every {recipe.actor_every} updates: chunks have {recipe.updates_per_chunk}, no multiple of it; "
            "choose a divisor"
        )
    for name in ("learning_rate", "actor_learning_rate", "actor_boost", "master_learning_rate", "first_alpha"):
        value = getattr(recipe, name)
        if value is not None and not 0 < value <= LARGEST_RATE:
            raise LowgearError(f"{name.replace('_', ' ')} {value}: write a number above 0, {LARGEST_RATE:g} at most")
    for name in ("actor_activation", "critic_activation"):
        if getattr(recipe, name) not in ("tanh", "relu"):
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)!r}: write tanh or relu")
    if not 0 <= recipe.random_steps <= MOST_STEPS:
        raise LowgearError(f"random steps {fields.shown(recipe.random_steps)}: write 0 or more, {MOST_STEPS:,} at most")
    for name in ("target_entropy", "goal_reward_shift"):
        if not math.isfinite(getattr(recipe, name)):
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)}: write a finite number")
    for name in SHARES:
        if not 0 <= getattr(recipe, name) <= 1:
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(recipe, name)}: write a number from 0 to 1")
    within = all(abs(end) <= LARGEST_COEFFICIENT for end in recipe.dial_ends)
    if len(recipe.dial_ends) != 2 or not within or not Dial(*recipe.dial_ends).holds(recipe.dial_setting):
        raise LowgearError(
            f"dial ends {recipe.dial_ends}, setting {recipe.dial_setting}: write two numbers, the lower first and the "
            "higher above 0, and a setting between them"
        )
    if recipe.known_prices and not recipe.can_know_prices:
        raise LowgearError(
            f"known prices need a dial, discounting by the step and a master's discount below 1, which the recipe "
            f"{recipe.name} has not: leave them out, or train with --recipe modern"
        )
    for name, most in (("critic_units", MOST_WIDTH), ("max_episode_steps", MOST_STEPS)):
        value = getattr(recipe, name)
        if value is not None and not 1 <= value <= most:
            raise LowgearError(f"{name.replace('_', ' ')} {fields.shown(value)}: write 1 or more, {most:,} at most")
