"""What a run's configuration means to each part of the program: the learners, the collector, the policy files."""

from collections.abc import Callable

import numpy as np

from lowgear import LowgearError
from lowgear.config.agents import AgentConfig
from lowgear.config.cores import cores
from lowgear.config.run import RunConfig
from lowgear.envs.goals import GoalRule
from lowgear.envs.protocol import EnvSpec
from lowgear.learning.dqn import Dqn, DqnSettings
from lowgear.learning.hindsight import Goals
from lowgear.learning.learners import AgentParameters, GearLearner
from lowgear.learning.method import Method
from lowgear.learning.networks import CriticStyle
from lowgear.learning.normalisation import LARGEST_RETURN
from lowgear.learning.replay import Columns, ReplaySettings
from lowgear.learning.sac import Sac, SacSettings
from lowgear.policy.arrays import FloatArray
from lowgear.policy.cost import CostModel, cost_model
from lowgear.policy.file import PolicyHeader
from lowgear.policy.networks import Tariff, Weights
from lowgear.training.collect import Behaviour
from lowgear.training.frozen import FrozenWeights
from lowgear.training.shard import Published

LARGEST_VALUE = 2 * LARGEST_RETURN  # of a target, on the scale of rewards: twice the largest return that was met
MakeLearners = Callable[[RunConfig, EnvSpec, Goals | None], tuple[GearLearner, ...]]


def sac_learners(config: RunConfig, spec: EnvSpec, goals: Goals | None) -> tuple[GearLearner, ...]:
    """One SAC for each gear that is trained."""
    recipe = config.recipe
    settings = SacSettings(
        recipe.actor_activation,
        CriticStyle(recipe.critic_activation, recipe.critic_normalise),
        recipe.actor_every,
        recipe.first_alpha,
        _value_bounds(config, goals),
        LARGEST_VALUE if recipe.scale_rewards else None,
    )
    return tuple(
        Sac(
            number,
            spec.obs_dim,
            spec.act_dim,
            gear.hidden[0] if gear.is_plain else gear.hidden,
            critic_units,
            recipe.batch,
            settings,
        )
        for number, (gear, critic_units) in enumerate(zip(config.gears, config.critic_units, strict=True))
        if gear.learns
    )


def method_of(
    config: RunConfig, spec: EnvSpec, goal_rule: GoalRule | None = None, make_learners: MakeLearners = sac_learners
) -> Method:
    """The static side of the program that trains a run."""
    recipe, goals = config.recipe, goals_of(config, spec, goal_rule)
    return Method(
        gear_learners=make_learners(config, spec, goals),
        master=Dqn(
            inputs=spec.obs_dim + spec.act_dim * holds(config) + recipe.dial,
            choices=len(config.gears) * len(recipe.periods),
            units=recipe.master_units,
            batch=recipe.master_batch,
            known_costs=recipe.known_prices,
            settings=DqnSettings(recipe.actor_activation, recipe.master_copy_every),
        ),
        cost=cost_of(config, spec),
        replay=ReplaySettings(
            Columns(spec.obs_dim, spec.act_dim, holds(config)),
            len(config.gears),
            max(recipe.periods),
            recipe.master_replay // recipe.environments,
            goals is not None,
            recipe.environments,
        ),
        dial=recipe.dial,
        discount_by_step=recipe.discount_by_step,
        goals=goals,
        normalise_observations=recipe.normalise_observations,
        scale_rewards=recipe.scale_rewards,
        relative_costs=any(agent.relative for agent in config.agents),
        lenient_twins=recipe.lenient_twins,
    )


def learners_needed(config: RunConfig, method: Method) -> tuple[int, ...]:
    """Learners of the gears that some agent acts with, and the master's if one asks it: the others need not learn."""
    forced = {agent.forced_gear(config.gears) for agent in config.agents}
    if None in forced:
        return tuple(range(method.learner_count))
    found = tuple(number for number, learner in enumerate(method.gear_learners) if forced & set(learner.gear_numbers))
    return found or (method.learner_count - 1,)  # where all act with frozen gears there is nothing to learn


def holds(config: RunConfig) -> bool:
    """Whether a gear repeats the last action, which the master then sees."""
    return any(not gear.computes for gear in config.gears)


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


def cost_of(config: RunConfig, spec: EnvSpec) -> CostModel:
    """What each part of a run's controllers costs, and what its masters pay."""
    recipe = config.recipe
    return cost_model(
        spec.obs_dim,
        spec.act_dim,
        config.gears,
        recipe.master_units,
        periods=len(recipe.periods),
        sees_position=recipe.sees_position,
        charges_picks=recipe.price_picks,
    )


def tariff_of(config: RunConfig, cost: CostModel, cost_units: FloatArray | None = None) -> Tariff | None:
    """What the agents' masters charge their choices; None where they learn it."""
    recipe = config.recipe
    if not recipe.known_prices:
        return None
    each = cost.tariff(recipe.periods, recipe.master_discount)
    dials = [agent.dial for agent in in_rewards(config, cost_units)]
    return Tariff(
        np.array([dial.low for dial in dials], np.float32),
        np.array([dial.high for dial in dials], np.float32),
        np.tile(np.array(each, np.float32), (len(dials), 1)),
    )


def in_rewards(config: RunConfig, cost_units: FloatArray | None) -> list[AgentConfig]:
    """The agents with their cost coefficients in the task's rewards."""
    units = [1.0] * len(config.agents) if cost_units is None else map(float, cost_units)
    return [agent.in_rewards(unit) for agent, unit in zip(config.agents, units, strict=True)]


def parameters_of(config: RunConfig, spec: EnvSpec, tariff: Tariff | None = None) -> AgentParameters:
    """What differs between the agents, as arrays."""
    agents, recipe = config.agents, config.recipe

    def all_alike(value: float) -> FloatArray:
        return np.full(len(agents), value, np.float32)

    return AgentParameters(
        seed=np.array([a.seed for a in agents], np.uint32),
        cost_low=np.array([a.dial.low for a in agents], np.float32),
        cost_high=np.array([a.dial.high for a in agents], np.float32),
        relative=np.array([a.relative for a in agents]),
        discount=np.array([a.discount for a in agents], np.float32),
        master_discount=all_alike(recipe.master_discount),
        learning_rate=np.array([a.learning_rate for a in agents], np.float32),
        actor_learning_rate=np.array([recipe.actor_learning_rate or a.learning_rate for a in agents], np.float32),
        actor_boost=all_alike(recipe.actor_boost),
        target_rate=all_alike(recipe.target_rate),
        target_entropy=all_alike(-recipe.target_entropy * spec.act_dim),
        master_learning_rate=all_alike(recipe.master_learning_rate),
        shared=np.array([a.variant != "separate-buffers" for a in agents]),
        pessimism=all_alike(1),
        reward_scale=all_alike(1),
        master_scale=all_alike(1),
        choice_cost=None if tariff is None else tariff.each,
    )


def behaviour_of(config: RunConfig, has_goals: bool = False) -> Behaviour:
    """How the agents act while they train."""
    recipe = config.recipe
    forced = [agent.forced_gear(config.gears) for agent in config.agents]
    return Behaviour(
        periods=recipe.periods,
        activation=recipe.actor_activation,
        forced_gear=np.array([-1 if gear is None else gear for gear in forced], np.int32),
        seeds=tuple(agent.seed for agent in config.agents),
        environments=recipe.environments,
        dial=np.array([agent.dial.turns for agent in config.agents]) if recipe.dial else None,
        random_steps=recipe.random_steps,
        random_share=recipe.goal_random_share if has_goals else 0.0,
        noise_hold=recipe.noise_hold,
        explore_steps=recipe.explore_share * config.steps,
        explore_last=recipe.explore_last,
        kinds=None if all(gear.learns for gear in config.gears) else config.gears,
    )


def groups_of(config: RunConfig, beside_device: bool) -> int:
    """Groups that collect at once: where learners have a device of their own, enough to keep the cores busy."""
    return max(1, min(cores() // 2, len(config.agents))) if beside_device else 1


def header_of(
    config: RunConfig, spec: EnvSpec, agent: int, steps: int, cost_units: FloatArray | None = None
) -> PolicyHeader:
    """What an agent's policy file says about itself."""
    unit = None if cost_units is None else float(cost_units[agent])
    settings = config.agents[agent].in_rewards(unit or 1.0)
    return PolicyHeader(
        task=config.task,
        recipe=config.recipe.name,
        variant=settings.variant,
        seed=settings.seed,
        cost_coefficient=settings.cost_coefficient,
        dial=settings.dial if config.recipe.dial else None,
        known_prices=config.recipe.known_prices,
        cost_unit=unit if config.agents[agent].relative else None,
        steps=steps,
        obs_dim=spec.obs_dim,
        act_dim=spec.act_dim,
        layout=spec.layout,
        observation_names=spec.observation_names,
        action_names=spec.action_names,
        action_low=spec.action_low,
        action_high=spec.action_high,
        gears=config.gears,
        master_units=config.recipe.master_units,
        periods=config.recipe.periods,
        activation=config.recipe.actor_activation,
        forced_gear=settings.forced_gear(config.gears),
        boltzmann=config.boltzmann,
        hindsight=spec.desired_goal is not None and config.recipe.hindsight_share > 0,
    )


def weights_of(published: Published, config: RunConfig, cost: CostModel, frozen: FrozenWeights) -> Weights:
    """What acts, out of what was learned and what is frozen."""
    *learned, master = published.networks
    networks = iter(learned)
    gears = (next(networks) if gear.learns else frozen.layers[number] for number, gear in enumerate(config.gears))
    return Weights(tuple(gears), master, tariff_of(config, cost, published.cost_units), frozen.clips)
