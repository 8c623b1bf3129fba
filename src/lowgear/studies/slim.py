"""Carries out `lowgear slim`: around a policy that is there already, the cheapest controller that keeps its return.

DIR/large.safetensors        the policy, as one frozen gear
DIR/students/                small policies that it was distilled into
DIR/runs/                    the run whose masters pick between the widest of them and the policy
DIR/controller.safetensors   what is deployed
DIR/slim.json                every number; slim.svg and slim.png draw them

The same command again repeats nothing that is done.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError, envs
from lowgear.baselines.distil import DistilSettings, distil, flops_of
from lowgear.config.gears import GivenGear, frozen_of
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import Task, file_name
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.evaluate import at_settings, flops_each, play_policies
from lowgear.evaluation.statistics import half_width
from lowgear.evaluation.summary import evaluation_report
from lowgear.evaluation.tune import Demand, scores, search, share_of
from lowgear.policy.file import Policy, load
from lowgear.policy.files import write_whole
from lowgear.studies import slimmed
from lowgear.studies.imitation import make_directory
from lowgear.studies.run_store import RunStore, StoredRun
from lowgear.studies.setup import CHECKPOINTS, Group
from lowgear.studies.slimmed import Episodes
from lowgear.training.frozen import check_fits as check_frozen
from lowgear.training.provenance import provenance

STEPS_PLAYED = 40_000  # about, of each controller that is judged
FEWEST, MOST = 40, 400  # episodes that make those steps
SETTINGS = 7  # of the dial, on the run's page
ALONE = ("small-only", "large-only")
CHOOSING = 1  # seed of the starts that controllers are chosen by, that of `lowgear tune`
BEST_STUDENT = 3  # of those that the best of a width's students is found by
CONFIRMING = (10, 11, 12, 13, 14)  # of those that controllers are reported on
LARGE, CONTROLLER, FIGURES = "large.safetensors", "controller.safetensors", "slim.json"


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    task: Task
    large: Policy  # of one frozen gear
    keep: float  # share of its return
    widths: tuple[int, ...]  # of students, narrowest first
    seeds: tuple[int, ...]  # a student of each width and a master for each
    steps: int  # of each master
    episodes: int  # of each controller, to choose by; 0: as many as their length asks for
    settings: DistilSettings = field(default_factory=DistilSettings)
    overrides: dict[str, Any] = field(default_factory=dict)  # of the recipe

    def groups(self, gears: Sequence[GivenGear]) -> list[Group]:
        """One master for each seed; and beside them the gears alone, so that the run can be compared to both."""
        masters, alone = self._config(gears, self.seeds), self._config(gears, self.seeds[:1], ALONE)
        return [Group("masters", masters), Group("gears alone", alone)]

    def _config(
        self, gears: Sequence[GivenGear], seeds: Sequence[int], variants: Sequence[str] = ("asymmetric",)
    ) -> RunConfig:
        return resolve(
            self.task,
            steps=self.steps,
            seeds=seeds,
            variants=variants,
            gears=gears,
            overrides=self.overrides,
            evaluate_every=0,
            checkpoint_every=max(1, self.steps // CHECKPOINTS),
        )

    def make_env(self, count: int) -> BatchEnv:
        """Environments of the task."""
        return envs.make(self.task, count, max_episode_steps=self.overrides.get("max_episode_steps"))


class Candidate(NamedTuple):
    """A controller that could take the policy's place, by the starts that it was chosen on."""

    name: str
    policy: Policy
    meets: bool  # what is demanded, surely
    margin: float  # of its score over that
    flops: float  # a step
    agent: int | None = None  # its number in the run, of one that switches


def carry_out(request: Request, store: RunStore) -> dict[str, Any]:
    """All stages; the report, which is also kept."""
    began = time.perf_counter()
    make_directory(store.path)
    large_path = store.path / LARGE
    request.large.save(large_path)
    steps = episode_steps(request)
    if not request.episodes:
        request = replace(request, episodes=min(MOST, max(FEWEST, math.ceil(STEPS_PLAYED / steps))))
    large = _play(request, request.large, CHOOSING)
    students = {units: student(request, store, units, steps) for units in request.widths}
    alone = [_judge(request, units, load(path), large) for units, path in students.items()]
    run, switching = _switching(request, store, (students[request.widths[-1]], large_path))
    chosen, switched = choose([*alone, *switching]), choose(switching)
    chosen.policy.save(store.path / CONTROLLER)
    _evaluate(request, run, switched)
    policies = {slimmed.ITSELF: request.large} | {one.name: one.policy for one in (*alone, switched)}
    rows = slimmed.rows(policies, confirm(request, policies, _counter(store, "confirming: controllers")))
    report = {
        "task": request.task.name,
        "source": request.large.header.gears[0].source,
        "keep": request.keep,
        "chosen": chosen.name,
        "meets": chosen.meets,
        "controllers": rows,
        "words": slimmed.words(rows, chosen.name, chosen.meets, request.keep),
        "steps": request.steps,
        "seeds": list(request.seeds),
        "episodes": request.episodes,
        "confirmed_with_seeds": list(CONFIRMING),
        "distilled_with": asdict(request.settings),
        "controller": str(store.path / CONTROLLER),
        "run": str(run.directory.path),
        "seconds": time.perf_counter() - began,
        "provenance": provenance(),
    }
    write_whole(store.path / FIGURES, json.dumps(report, indent=1).encode())
    return report


def check_fits(request: Request) -> None:
    """Refuse a policy of another environment, and widths that save nothing, before anything is made."""
    large, most = request.large, request.large.header.cost.gear_flops[0]
    for units in request.widths:
        if flops_of(large, units) >= most:
            raise LowgearError(
                f"--widths {units}: {flops_of(large, units):,} FLOPs are no less than the policy's own {most:,}; "
                "write narrower ones"
            )
    with closing(request.make_env(1)) as env:
        check_frozen(large.header, request.task.name, env.spec)


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """The cheapest that keeps what is demanded, or the nearest where none does."""
    meeting = [one for one in candidates if one.meets]
    return min(meeting, key=lambda one: one.flops) if meeting else max(candidates, key=lambda one: one.margin)


def episode_steps(request: Request) -> float:
    """How long an episode of the policy is, about."""
    return float(_play(request, request.large, CHOOSING, FEWEST // 4).lengths.mean())


def student(request: Request, store: RunStore, units: int, episode_steps: float) -> Path:
    """The best of a width's students, in a file; it is taught only once."""
    what = [asdict(request.settings), units, request.seeds, frozen_of(request.large).digest]
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]
    path = store.path / "students" / f"{file_name(request.task.name)}-{units}-{digest}.safetensors"
    if not path.exists():
        make_directory(path.parent)
        show = partial(store.progress, f"distilling into {units} units: rounds")
        students = distil(request.large, units, request.seeds, request.make_env, episode_steps, request.settings, show)
        best = max(students, key=lambda one: float(_play(request, one, BEST_STUDENT, FEWEST // 2).scores.mean()))
        best.save(path)
    return path


def _judge(request: Request, units: int, student: Policy, large: Episodes) -> Candidate:
    """A student that acts alone, beside the policy that taught it."""
    own = _play(request, student, CHOOSING)
    margin = own.scores - large.scores * share_of(request.keep, float(large.scores.mean()))
    mean, flops = float(margin.mean()), float(own.flops.mean())
    return Candidate(f"{units} units, distilled", student, mean >= half_width(margin), mean, flops)


def _switching(request: Request, store: RunStore, gears: Sequence[Path]) -> tuple[StoredRun, list[Candidate]]:
    """The run whose masters pick between a student and the policy, and these, one for each seed, tuned."""
    groups = request.groups(gears)
    store.train(groups)
    if store.failures:
        raise LowgearError(store.failures[0])
    (run,) = store.plan(groups)
    stopped = run.directory.read_stopped()
    numbers = [run.config.agents.index(agent) for agent in groups[0].config.agents]
    numbers = [number for number in numbers if number not in stopped]
    if not numbers:
        raise LowgearError(f"{run.directory.path}: every master stopped before the end; `stopped.json` says why")
    policies = [run.directory.load_policy(run.config, number) for number in numbers]
    found = tuned(request, policies, _counter(store, "tuning: episodes"))
    return run, [one._replace(agent=number) for one, number in zip(found, numbers, strict=True)]


def tuned(request: Request, policies: Sequence[Policy], progress: Callable[[int], None]) -> list[Candidate]:
    """Controllers that switch, each at the cheapest setting of its dial that surely keeps what is demanded."""
    found = search(
        policies,
        Demand(request.keep, surely=True),
        request.make_env,
        "greedy",
        seed=CHOOSING,
        episodes_at_most=request.episodes,
        beside=request.large,
        progress=progress,
    )
    small = policies[0].header.gears[0]
    return [
        Candidate(
            f"switching, {small.hidden[0]} units or the policy",
            policy.at(result.cost_coefficient),
            result.meets,
            result.score_mean - result.demanded,
            result.flops_per_step,
        )
        for policy, result in zip(policies, found, strict=True)
    ]


def confirm(
    request: Request, policies: dict[str, Policy], progress: Callable[[int], None]
) -> dict[str, list[Episodes]]:
    """Each controller on fresh starts, the same for all, seed by seed; half as many with each as chose it."""
    half = -(-request.episodes // 2)
    found: dict[str, list[Episodes]] = {}
    for name, policy in policies.items():
        found[name] = [_play(request, policy, seed, half) for seed in CONFIRMING]
        progress(1)
    return found


def _evaluate(request: Request, run: StoredRun, switched: Candidate) -> None:
    """Keep the tuned setting in the run, and an evaluation of that agent along its dial and of the gears alone."""
    assert switched.agent is not None
    switched.policy.save(run.directory.policy(switched.agent))
    alone = [number for number, agent in enumerate(run.config.agents) if agent.variant in ALONE]
    numbered = [(switched.agent, policy) for _, policy in at_settings([switched.policy], SETTINGS)]
    numbered += [(number, run.directory.load_policy(run.config, number)) for number in alone]
    found = evaluation_report(numbered, request.make_env, FEWEST // 2, "greedy", 0)
    write_whole(run.directory.evaluation, json.dumps(found, indent=2).encode())


def _play(request: Request, policy: Policy, seed: int, episodes: int | None = None) -> Episodes:
    played = play_policies([policy], request.make_env, episodes or request.episodes, "greedy", seed)
    shares = played.gear_steps[0] / played.lengths[0][:, None]
    return Episodes(scores(played)[0], flops_each(played, 0, policy.header.cost), shares[:, -1], played.lengths[0])


def _counter(store: RunStore, what: str) -> Callable[[int], None]:
    """Shows a number that grows; nobody knows how far."""
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        store.progress(what, done, done + 1)

    return count
