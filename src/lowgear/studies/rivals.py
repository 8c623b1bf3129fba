"""Other ways to a cheap controller beside the asymmetric agent: trained, pruned, quantised, scored and priced alike.

All agents train for the same steps with the same seeds. `fit` is the paper's: SAC from scratch, as wide as what the
asymmetric agents cost at their own setting. DAgger students learn from the large-only agent of their seed; so does
what is pruned or quantised come from it. The students' labels come on top of their teacher's steps, and are at most as
many again.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.baselines import clone, dagger, pruning
from lowgear.baselines.dagger import DaggerSettings
from lowgear.config import paper
from lowgear.config.agents import AgentConfig
from lowgear.config.run import RunConfig
from lowgear.config.tasks import Task, file_name
from lowgear.envs import make_env
from lowgear.export.c_format import weight_bytes
from lowgear.export.layers import quantise
from lowgear.policy import cost
from lowgear.policy.file import Policy, load
from lowgear.policy.gears import HOLD, names
from lowgear.policy.networks import leaves_of
from lowgear.studies import distillation, rivals_time
from lowgear.studies.evaluations import evaluate_once
from lowgear.studies.imitation import make_directory
from lowgear.studies.rows import SeedResult, TableRow
from lowgear.studies.run_store import RunStore
from lowgear.studies.setup import Group, Setup

RELATIVE = (0.03, 0.1, 0.5, 10.0)  # settings of a dial that is measured against the task's rewards, beside its own
SETTINGS = 4  # along another dial, beside its own
SPARSITIES = (0.5, 0.75, 0.9)
STUDENTS = replace(clone.DISTIL, updates=20_000)  # of students in every round
ROUNDS, EPISODES = 5, 10  # of DAgger: whole episodes that each student plays in a round
LATER = (
    "`fit`, as wide as the asymmetric agents' FLOPs allow; DAgger students, pruned and int8 policies; times of their C"
)


class Contender(NamedTuple):
    """A row of the table, and the controllers that it is made of, one for each seed, as they were played."""

    row: TableRow
    policies: Sequence[Policy]
    weights: str = "float32"  # or int8, of the C that is timed
    sparse: bool = False  # FLOPs and bytes are those of non-zero weights


def groups(setup: Setup, task: Task) -> list[Group]:
    """Small-only, large-only and asymmetric agents along their dials, without and with a gear that holds."""
    widths = _widths(setup, task)
    alone = [
        Group(name, setup.config(task, name, gears=widths), paper.variant(task.name, name))
        for name in ("small-only", "large-only")
    ]
    return [
        *alone,
        *_along("asymmetric", setup.config(task, "asymmetric", gears=widths)),
        *_along("with hold", setup.config(task, "asymmetric", gears=(HOLD, *widths))),
    ]


def frontier(setup: Setup, store: RunStore, task: Task, rows: Sequence[TableRow]) -> list[TableRow]:
    """The groups' rows and those of all rivals, with what each costs where it is deployed."""
    own = groups(setup, task)
    trained = [Contender(row, store.policies(group)) for row, group in zip(rows, own, strict=True)]
    small, large, *switching = trained
    middle = switching[_own_place(own[2:])]
    maker = _Maker(setup, store, own[1].config, task, large)
    fit, units = maker.fit(middle.row.mean("flops_per_step"))
    widths = sorted({_units(small), units, _units(large)})
    contenders = [
        *trained,
        fit,
        *map(maker.students, widths),
        *(maker.pruned(sparsity) for sparsity in SPARSITIES),
        *(maker.int8(contender) for contender in (small, large, middle)),
    ]
    times = rivals_time.step_times(
        [(one.policies, one.weights) for one in contenders], maker.make_env, partial(store.progress, f"{task.name}: C")
    )
    return [_priced(one, ns) for one, ns in zip(contenders, times, strict=True)]


def _widths(setup: Setup, task: Task) -> tuple[int, ...]:
    """Of the gears that were asked for, or the task's; hold, which the study adds itself, may be among them."""
    gears = setup.config(task, "asymmetric").gears
    computing = [gear for gear in gears if gear.computes]
    if len(computing) < 2 or not all(gear.is_plain for gear in computing):
        raise LowgearError(
            f"gears {names(gears)}: rivals are compared to two or more widths of two equal layers; write for example "
            "--gears 8,64"
        )
    return tuple(gear.hidden[0] for gear in computing)


def _along(name: str, config: RunConfig) -> list[Group]:
    """The same agents at several settings of their dials, or at their only one."""
    agent = config.agents[0]
    if not agent.dial.turns:
        return [Group(name, config, paper.variant(config.task, name))]
    unit = "rel. λ" if agent.relative else "λ"
    return [Group(f"{name}, {unit} {x:.3g}", config, setting=x, x=x) for x in _settings(agent)]


def _settings(agent: AgentConfig) -> list[float]:
    others = RELATIVE if agent.relative else agent.dial.settings(SETTINGS)
    return sorted({agent.cost_coefficient, *filter(agent.dial.holds, others)})


def _own_place(switching: Sequence[Group]) -> int:
    """Which group of asymmetric agents stands at the setting that they are deployed with."""
    own = switching[0].config.agents[0].cost_coefficient
    return next(place for place, group in enumerate(switching) if group.setting in (None, own))


@dataclass(frozen=True)
class _Maker:
    """What all rivals of one task have in common."""

    setup: Setup
    store: RunStore
    config: RunConfig  # of the run that trained the large-only agents
    task: Task
    large: Contender  # the large-only agents

    @property
    def make_env(self) -> Callable[[int], Any]:
        return partial(make_env, self.config)

    def fit(self, flops: float) -> tuple[Contender, int]:
        """Agents from scratch that cost at least so much, and their width."""
        header = self.large.policies[0].header
        units = cost.units_for(header.obs_dim, header.act_dim, flops)
        config = self.setup.config(self.task, "large-only", gears=(units, units))
        group = Group(f"fit, {units} units", config, paper.distillation(self.task.name, "fit"))
        found = self.store.rows([group], self.setup.episodes)
        if not found or len(found[0].seeds) < len(self.setup.seeds):
            raise LowgearError(f"{group.label}: not every seed was trained and evaluated")
        return Contender(distillation.against(found[0], self.large_flops), self.store.policies(group)), units

    def students(self, units: int) -> Contender:
        """DAgger students of a width, one for each large-only agent; taught once and kept."""
        settings = DaggerSettings(
            labels=max(self.config.steps, ROUNDS * EPISODES),
            rounds=ROUNDS,
            episodes=EPISODES,
            length=None,
            clone=clone.PAPER if self.setup.recipe == "paper" else STUDENTS,
        )
        directory = self._directory("students", "dagger", [asdict(settings), units])
        paths = [directory / f"agent{number}.safetensors" for number in range(len(self.setup.seeds))]
        if not all(path.exists() for path in paths):
            make_directory(directory)
            progress = partial(self.store.progress, f"{self.task.name}, {units} units, dagger: rounds")
            found, _ = dagger.fit(self.large.policies, self.make_env, units, self.setup.seeds, settings, progress)
            for policy, path in zip(found.policies, paths, strict=True):
                policy.save(path)
        policies = [load(path) for path in paths]
        return Contender(self._score(f"dagger, {units} units", policies, directory), policies)

    def pruned(self, sparsity: float) -> Contender:
        """Large-only policies without their smallest weights."""
        policies = [pruning.prune(policy, sparsity) for policy in self.large.policies]
        row = self._score(f"pruned {sparsity:.0%}", policies, self._directory("derived", "pruned", [sparsity]))
        seeds = [
            replace(seed, flops_per_step=pruning.sparse_flops(policy))
            for seed, policy in zip(row.seeds, policies, strict=True)
        ]
        row = distillation.against(replace(row, seeds=tuple(seeds)), self.large_flops)
        return Contender(row, policies, sparse=True)

    def int8(self, contender: Contender) -> Contender:
        """A contender with the weights that its int8 export has."""
        policies = [quantise(policy, "int8") for policy in contender.policies]
        label = contender.row.label
        directory = self._directory("derived", "int8", [_digest(policy) for policy in policies])
        return Contender(self._score(f"int8 {label}", policies, directory), policies, "int8")

    @property
    def large_flops(self) -> float:
        return self.large.row.mean("flops_per_step")

    def _score(self, label: str, policies: Sequence[Policy], directory: Path) -> TableRow:
        """Policies that were made of others, evaluated once."""
        make_directory(directory)
        named = {f"seed {seed}": policy for seed, policy in zip(self.setup.seeds, policies, strict=True)}
        found = evaluate_once(
            directory,
            {name: partial(_itself, policy) for name, policy in named.items()},
            self.make_env,
            self.config.master,
            self.setup.episodes,
            self.store.progress,
        )
        seeds = [SeedResult.of(seed, found[f"seed {seed}"]) for seed in self.setup.seeds]
        return TableRow(self.task, label, tuple(seeds), steps=policies[0].header.steps)

    def _directory(self, room: str, method: str, what: Sequence[Any]) -> Path:
        """Of what is made of the large-only agents in one way."""
        whole = [method, what, self.setup.seeds, [_digest(policy) for policy in self.large.policies]]
        digest = hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:10]
        return self.store.path / room / f"{file_name(self.task.name)}-{method}-{digest}"


def _priced(one: Contender, times: Sequence[float | None]) -> TableRow:
    size = pruning.sparse_bytes if one.sparse else partial(weight_bytes, weights=one.weights)
    seeds = [
        replace(seed, weight_bytes=float(size(policy)), step_ns=ns)
        for seed, policy, ns in zip(one.row.seeds, one.policies, times, strict=True)
    ]
    return replace(one.row, seeds=tuple(seeds))


def _units(contender: Contender) -> int:
    """Of the only gear that acts."""
    header = contender.policies[0].header
    assert header.forced_gear is not None
    return header.gears[header.forced_gear].hidden[0]


def _digest(policy: Policy) -> str:
    whole = hashlib.sha256(json.dumps(policy.header.to_json()).encode())
    for array in leaves_of(policy.weights):
        whole.update(array.tobytes())
    return whole.hexdigest()


def _itself(policy: Policy) -> Policy:
    return policy
