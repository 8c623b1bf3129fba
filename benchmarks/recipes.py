"""Compares settings of the learners: each is one population of variants × learning rates × seeds, trained in turn.

    python benchmarks/recipes.py cartpole-swingup --steps 100000 --seeds 0-3 \
        --setting '{"critic_units": 128}' --setting '{"critic_units": 256}' --json out.json

Prints the mean and spread over seeds after training, for each setting, variant, coefficient and learning rate. Dial
agents play at every coefficient given; the fixed-cost variant trains one agent for each.
"""

import json
import statistics
import time
from functools import partial

import click
from rich.console import Console
from rich.table import Table

from lowgear.commands import lists
from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.envs import make_env
from lowgear.evaluation.evaluate import at_settings, play_policies, summarise
from lowgear.training.loop import Training
from lowgear.training.provenance import provenance


@click.command()
@click.argument("task")
@click.option("--steps", default=100_000)
@click.option("--seeds", default="0-3")
@click.option("--variants", default="asymmetric,small-only,large-only")
@click.option("--learning-rates", default=None)
@click.option("--discounts", default=None)
@click.option("--cost-coefficients", default=None)
@click.option("--recipe", default="modern")
@click.option("--setting", "settings", multiple=True, default=("{}",), help="JSON of recipe fields, repeatable")
@click.option("--episodes", default=10)
@click.option("--json", "json_path", default=None)
def main(
    task, steps, seeds, variants, learning_rates, discounts, cost_coefficients, recipe, settings, episodes, json_path
):
    found = []
    for setting in settings:
        named = tasks.find(task)
        config = resolve(
            named,
            recipe,
            steps=steps,
            seeds=lists.integers("--seeds", seeds),
            variants=lists.words(variants),
            learning_rates=lists.numbers("--learning-rates", learning_rates) if learning_rates else None,
            discounts=lists.numbers("--discounts", discounts) if discounts else None,
            cost_coefficients=lists.numbers("--cost-coefficients", cost_coefficients) if cost_coefficients else None,
            overrides=json.loads(setting),
            evaluate_episodes=episodes,
        )
        began = time.perf_counter()
        training = Training(config, make_env(config, config.environments), None)
        training.run()
        seconds = time.perf_counter() - began
        policies = [training.policy(agent) for agent in range(len(config.agents))]
        training.close()
        rate = len(config.agents) * config.steps / seconds
        print(f"{task} {setting}: {len(config.agents)} agents, {seconds:.0f} s, {rate:.0f} agent-steps/s", flush=True)
        numbered = list(enumerate(policies))
        if cost_coefficients:
            numbered = at_settings(policies, lists.numbers("--cost-coefficients", cost_coefficients))
        played = play_policies([p for _, p in numbered], partial(make_env, config), episodes, config.master, 0)
        for place, (number, policy) in enumerate(numbered):
            agent, header = config.agents[number], policy.header
            found.append(
                {
                    "task": task,
                    "recipe": recipe,
                    "setting": setting,
                    "steps": config.steps,
                    "episodes": episodes,
                    "learning_rate": agent.learning_rate,
                    "discount": agent.discount,
                    "agent": number,
                    "variant": header.variant,
                    "seed": header.seed,
                    "cost_coefficient": header.cost_coefficient,
                }
                | summarise(played, place, header.cost)
            )
        if json_path:
            with open(json_path, "w") as file:
                json.dump({"provenance": provenance(), "found": found}, file, indent=1)
    show(found)


def show(found):
    groups = {}
    for line in found:
        key = tuple(
            line[name] for name in ("task", "setting", "learning_rate", "discount", "variant", "cost_coefficient")
        )
        groups.setdefault(key, []).append(line)
    table = Table(
        "task",
        "setting",
        "rate",
        "discount",
        "variant",
        "λ",
        "return",
        "spread",
        "each",
        "large",
        "reduction",
    )
    for (task, setting, rate, discount, variant, coefficient), lines in groups.items():
        returns = [line["return_mean"] for line in lines]
        table.add_row(
            task,
            setting,
            f"{rate:g}",
            f"{discount:g}",
            variant,
            f"{coefficient:g}",
            f"{statistics.mean(returns):.1f}",
            f"{statistics.pstdev(returns):.1f}",
            " ".join(f"{r:.0f}" for r in sorted(returns)),
            f"{statistics.mean(line['large_share'] for line in lines):.2f}",
            f"{statistics.mean(line['flops_reduction'] for line in lines):.3f}",
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
