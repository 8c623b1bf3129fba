import json

import pytest

from lowgear.config import RunConfig, resolve
from lowgear.errors import LowgearError
from lowgear.tasks import find

WALKER = find("walker-stand")


def test_a_population_is_every_combination_once():
    config = resolve(
        WALKER,
        seeds=(0, 1),
        variants=("asymmetric", "small-only", "no-cost"),
        cost_coefficients=(0.01, 0.1),
        discounts=(0.9, 0.99),
    )
    asymmetric = [a for a in config.agents if a.variant == "asymmetric"]
    assert len(asymmetric) == 2 * 2 * 2
    # A coefficient means nothing to agents that do not pay: they are there once for each seed and discount.
    assert len([a for a in config.agents if a.variant == "small-only"]) == 2 * 2
    assert {a.cost_coefficient for a in config.agents if a.variant == "no-cost"} == {0.0}
    assert len(set(config.agents)) == len(config.agents) == 8 + 4 + 4


def test_the_paper_recipe_is_the_papers():
    config = resolve(WALKER, "paper")
    recipe = config.recipe
    assert (config.steps - 2_500_000) in range(recipe.chunk)
    assert config.critic_units == config.gears == (8, 64)
    assert config.agents[0].cost_coefficient == 0.01
    assert (recipe.master_learning_rate, recipe.learning_rate) == (1e-3, 3e-4)
    assert (recipe.discount, recipe.master_discount, recipe.target_rate) == (0.99, 0.99, 0.005)
    assert (recipe.master_replay, recipe.replay, recipe.master_batch, recipe.batch) == (50_000, 1_000_000, 32, 256)
    assert (recipe.master_units, recipe.master_copy_every, recipe.explore_share, recipe.period) == (32, 500, 0.1, 5)
    assert recipe.actor_activation == recipe.critic_activation == "tanh"


def test_steps_and_capacity_are_whole_chunks():
    config = resolve(WALKER, steps=1001)
    assert config.steps == 1024
    assert config.capacity == 1024
    assert resolve(WALKER, steps=10_000, overrides={"replay": 100}).capacity == 128


def test_config_survives_json():
    config = resolve(WALKER, seeds=(3,), variants=("large-only",), overrides={"critic_units": 17})
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"steps": 0}, "--steps 0"),
        ({"cost_coefficients": (-0.5,)}, "-0.5"),
        ({"cost_coefficients": (float("nan"),)}, "nan"),
        ({"variants": ("medium",)}, "medium"),
        ({"variants": ("two-large",)}, "--gears 64,64"),
        ({"seeds": (-1,)}, "-1"),
        ({"seeds": ()}, "--seeds"),
        ({"discounts": (1.5,)}, "1.5"),
        ({"learning_rates": (0.0,)}, "0.0"),
        ({"gears": (64, 8)}, "8,64"),
        ({"recipe": "classic"}, "classic"),
        ({"overrides": {"period": 0}}, "period 0"),
        ({"evaluate_episodes": 0}, "--evaluate-episodes 0"),
    ],
)
def test_bad_values_are_named(options, named):
    with pytest.raises(LowgearError, match=named):
        resolve(WALKER, **options)


def test_an_unpublished_task_needs_widths_and_a_price():
    pendulum = find("gym:Pendulum-v1")
    with pytest.raises(LowgearError, match="--gears"):
        resolve(pendulum)
    with pytest.raises(LowgearError, match="--cost-coefficients"):
        resolve(pendulum, gears=(8, 64))
