"""What a run's configuration means to each part of the program: the learners, the collector, the policy files."""

import numpy as np
import numpy.typing as npt

from lowgear import cost, envs
from lowgear.asymmetric import Knobs, Method
from lowgear.collect import Behaviour
from lowgear.config import RunConfig
from lowgear.dqn import DqnSettings
from lowgear.envs.goals import GoalRule
from lowgear.envs.protocol import BatchEnv, EnvSpec
from lowgear.errors import LowgearError
from lowgear.hindsight import Goals
from lowgear.learner import Learner
from lowgear.networks import CriticStyle
from lowgear.replay import Columns, ReplaySettings
from lowgear.runtime import PolicyHeader, Tariff, Weights
from lowgear.sac import SacKnobs
from lowgear.tasks import find


def make_env(config: RunConfig, num_envs: int) -> BatchEnv:
    """The run's environments, as its recipe wants their episodes to end."""
    return envs.make(find(config.task), num_envs, end_on_success=config.recipe.end_on_success)


def method_of(config: RunConfig, spec: EnvSpec, goal_rule: GoalRule | None = None) -> Method:
    """The static side of the program that trains a run."""
    recipe, prices, goals = config.recipe, prices_of(config, spec), goals_of(config, spec, goal_rule)
    return Method(
        obs_dim=spec.obs_dim,
        act_dim=spec.act_dim,
        gears=config.gears,
        critic_units=config.critic_units,
        gear_costs=prices.gear_costs,
        pick_cost=prices.pick_cost if recipe.price_picks else 0.0,
        durations=len(recipe.periods),
        dial=recipe.dial,
        priced=recipe.known_prices,
        master_units=recipe.master_units,
        batch=recipe.batch,
        master_batch=recipe.master_batch,
        discount_by_step=recipe.discount_by_step,
        actor_activation=recipe.actor_activation,
        dqn=DqnSettings(recipe.actor_activation, recipe.master_copy_every),
        replay=ReplaySettings(
            Columns(spec.obs_dim, spec.act_dim),
            len(config.gears),
            max(recipe.periods),
            recipe.master_replay // recipe.environments,
            goals is not None,
            recipe.environments,
        ),
        goals=goals,
        value_bounds=_value_bounds(config, goals),
    )


def goals_of(config: RunConfig, spec: EnvSpec, rule: GoalRule | None) -> Goals | None:
    """How hindsight relabels, on a task that has goals."""
    recipe = config.recipe
    if spec.achieved_goal is None or spec.desired_goal is None or not recipe.hindsight_share:
        return None
    if rule is None:
        raise LowgearError(
            f"{spec.name} has goals, but nothing tells what other goals would pay: hindsight needs compute_reward, "
            "which Gymnasium's environments have (gym:ID); set hindsight_share to 0 to train without it"
        )
    return Goals(
        spec.achieved_goal,
        spec.desired_goal,
        rule,
        recipe.hindsight_share,
        recipe.goal_reward_shift,
        recipe.end_on_success,
    )


def _value_bounds(config: RunConfig, goals: Goals | None) -> tuple[float, float] | None:
    """What an episode of endless steps could pay, at the longest horizon of the population."""
    if not config.recipe.bound_targets or goals is None or goals.rule.bounds is None:
        return None
    horizon = 1 / (1 - max(agent.discount for agent in config.agents))
    low, high = (horizon * (bound + goals.shift) for bound in goals.rule.bounds)
    return min(low, 0.0), max(high, 0.0)


def prices_of(config: RunConfig, spec: EnvSpec) -> cost.Prices:
    """What each part of a run's controllers costs when it runs."""
    recipe = config.recipe
    return cost.prices(
        spec.obs_dim, spec.act_dim, config.gears, recipe.master_units, len(recipe.periods), recipe.sees_position
    )


def tariff_of(config: RunConfig, spec: EnvSpec) -> Tariff | None:
    """What the agents' masters charge their choices; None where they learn it."""
    recipe, prices = config.recipe, prices_of(config, spec)
    if not recipe.known_prices:
        return None
    pick_cost = prices.pick_cost if recipe.price_picks else 0.0
    each = cost.tariff(prices.gear_costs, pick_cost, recipe.periods, recipe.master_discount)
    dials = [agent.dial for agent in config.agents]
    return Tariff(
        np.array([dial.low for dial in dials], np.float32),
        np.array([dial.ratio for dial in dials], np.float32),
        np.tile(np.array(each, np.float32), (len(dials), 1)),
    )


def knobs_of(config: RunConfig, spec: EnvSpec, tariff: Tariff | None = None) -> Knobs:
    """What differs between the agents, as arrays."""
    agents, recipe = config.agents, config.recipe
    return Knobs(
        seed=np.array([a.seed for a in agents], np.uint32),
        cost_low=np.array([a.dial.low for a in agents], np.float32),
        cost_ratio=np.array([a.dial.ratio for a in agents], np.float32),
        discount=np.array([a.discount for a in agents], np.float32),
        master_discount=np.full(len(agents), recipe.master_discount, np.float32),
        gears=_gear_knobs(config, spec),
        master_learning_rate=np.full(len(agents), recipe.master_learning_rate, np.float32),
        shared=np.array([a.variant != "separate-buffers" for a in agents]),
        normalise_observations=np.full(len(agents), recipe.normalise_observations),
        scale_rewards=np.full(len(agents), recipe.scale_rewards),
        reward_gain=np.full(len(agents), recipe.reward_gain, np.float32),
        keep_values=np.full(len(agents), recipe.keep_values),
        tariff=None if tariff is None else tariff.each,
    )


def _gear_knobs(config: RunConfig, spec: EnvSpec) -> SacKnobs:
    recipe, gears = config.recipe, len(config.gears)
    rate = np.array([[agent.learning_rate] * gears for agent in config.agents], np.float32)

    def every(value: float) -> npt.NDArray[np.float32]:
        return np.full_like(rate, value)

    actor_rate = rate if recipe.actor_learning_rate is None else every(recipe.actor_learning_rate)
    factors = np.array([recipe.small_actor_factor] * (gears - 1) + [1.0], np.float32)
    return SacKnobs(
        critic_rate=rate,
        actor_rate=actor_rate * factors,
        alpha_rate=rate if recipe.alpha_learning_rate is None else every(recipe.alpha_learning_rate),
        target_rate=every(recipe.target_rate),
        target_entropy=every(-recipe.target_entropy * spec.act_dim),
        first_alpha=every(recipe.first_alpha),
        first_values=every(recipe.first_values),
        pessimism=every(recipe.pessimism),
        actor_every=every(recipe.actor_every).astype(np.int32),
        critic_style=CriticStyle(every(recipe.critic_activation == "tanh") > 0, every(recipe.critic_normalise) > 0),
    )


def behaviour_of(config: RunConfig, has_goals: bool = False) -> Behaviour:
    """How the agents act while they train."""
    recipe = config.recipe
    forced = [agent.forced_gear(len(config.gears)) for agent in config.agents]
    return Behaviour(
        gears=len(config.gears),
        periods=recipe.periods,
        activation=recipe.actor_activation,
        forced_gear=np.array([-1 if gear is None else gear for gear in forced], np.int32),
        seeds=tuple(agent.seed for agent in config.agents),
        environments=recipe.environments,
        dial=np.array([agent.dial.turns for agent in config.agents]) if recipe.dial else None,
        random_steps=recipe.random_steps,
        random_share=recipe.goal_random_share if has_goals else 0.0,
        noise_hold=recipe.noise_hold,
        held_noise=np.full(len(config.agents), recipe.held_noise),
        explore_steps=recipe.explore_share * config.steps,
        explore_last=recipe.explore_last,
    )


def header_of(config: RunConfig, spec: EnvSpec, agent: int, steps: int) -> PolicyHeader:
    """What an agent's policy file says about itself."""
    settings = config.agents[agent]
    return PolicyHeader(
        task=config.task,
        recipe=config.recipe.name,
        variant=settings.variant,
        seed=settings.seed,
        cost_coefficient=settings.cost_coefficient,
        dial=settings.dial if config.recipe.dial else None,
        known_prices=config.recipe.known_prices,
        steps=steps,
        obs_dim=spec.obs_dim,
        act_dim=spec.act_dim,
        layout=spec.layout,
        action_low=spec.action_low,
        action_high=spec.action_high,
        gears=config.gears,
        master_units=config.recipe.master_units,
        periods=config.recipe.periods,
        activation=config.recipe.actor_activation,
        forced_gear=settings.forced_gear(len(config.gears)),
        boltzmann=config.boltzmann,
        hindsight=spec.desired_goal is not None and config.recipe.hindsight_share > 0,
    )


def weights_of(learner: Learner, tariff: Tariff | None = None) -> Weights:
    """What acts, out of what learns."""
    *gears, master = learner.acting()
    return Weights(tuple(gears), master, tariff)
