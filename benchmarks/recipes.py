"""Compares settings of the learners: each is one population of variants × learning rates × seeds, trained in turn.

    python benchmarks/recipes.py cartpole-swingup --steps 100000 --seeds 0-3 \
        --setting '{"critic_units": 128}' --setting '{"critic_units": 256}' --json out.json

Prints the mean and spread over seeds of the final evaluation, for each setting, variant and learning rate.
"""

import json
import statistics
import time

import click
from rich.console import Console
from rich.table import Table

from lowgear import envs, tasks
from lowgear.commands import lists
from lowgear.config import resolve
from lowgear.train import Training


@click.command()
@click.argument("task")
@click.option("--steps", default=100_000)
@click.option("--seeds", default="0-3")
@click.option("--variants", default="asymmetric,small-only,large-only")
@click.option("--learning-rates", default="3e-4")
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
            learning_rates=lists.numbers("--learning-rates", learning_rates),
            discounts=lists.numbers("--discounts", discounts) if discounts else None,
            cost_coefficients=lists.numbers("--cost-coefficients", cost_coefficients) if cost_coefficients else None,
            overrides=json.loads(setting),
            evaluate_episodes=episodes,
        )
        began = time.perf_counter()
        training = Training(config, envs.make(named, len(config.agents)), lambda n, named=named: envs.make(named, n))
        curve = Curve()
        training.run([curve])
        seconds = time.perf_counter() - began
        training.close()
        rate = len(config.agents) * config.steps / seconds
        print(
            f"{task} {setting}: {len(config.agents)} agents, {seconds:.0f} s, {rate:.0f} agent-steps/s",
            flush=True,
        )
        for i, agent in enumerate(config.agents):
            found.append(
                {
                    "task": task,
                    "setting": setting,
                    "learning_rate": agent.learning_rate,
                    "discount": agent.discount,
                    "agent_steps_per_s": rate,
                }
                | {"curve": [(steps, lines[i]["return_mean"]) for steps, lines in curve.points]}
                | training.last_evaluation[i]
            )
        if json_path:
            with open(json_path, "w") as file:
                json.dump(found, file, indent=1)
    show(found)


class Curve:
    def __init__(self):
        self.points = []

    def on_log(self, lines):
        pass

    def on_evaluation(self, lines):
        self.points.append((lines[0]["steps"], lines))

    def on_steps(self, steps):
        pass


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
        "half-way",
        "return",
        "spread",
        "each",
        "large",
        "reduction",
    )
    for (task, setting, rate, discount, variant, coefficient), lines in groups.items():
        returns = [line["return_mean"] for line in lines]
        half = [line["curve"][len(line["curve"]) // 2][1] for line in lines]
        table.add_row(
            task,
            setting,
            f"{rate:g}",
            f"{discount:g}",
            variant,
            f"{coefficient:g}",
            f"{statistics.mean(half):.0f}",
            f"{statistics.mean(returns):.1f}",
            f"{statistics.pstdev(returns):.1f}",
            " ".join(f"{r:.0f}" for r in sorted(returns)),
            f"{statistics.mean(line['large_share'] for line in lines):.2f}",
            f"{statistics.mean(line['flops_reduction'] for line in lines):.3f}",
        )
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
