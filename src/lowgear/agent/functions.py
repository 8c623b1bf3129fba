"""`lowgear.evaluate`, `tune`, `report` and `export`: of an agent, a policy file or a run directory.

What they return is what the commands of these names print as JSON.
"""

import json
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.agent.agent import Agent
from lowgear.agent.given import GivenEnv
from lowgear.agent.wording import in_python, python_words
from lowgear.config.policy_file import open_run
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import file_name
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.fields import shown
from lowgear.policy.file import Policy
from lowgear.policy.files import write_whole

Controllers = Agent | str | Path  # an agent, a policy file or a run directory
FRONTIER = 7  # settings of the dial that a report of an agent shows
FRONTIER_EPISODES = 20


class Report(NamedTuple):
    """A report that was written."""

    page: Path
    files: list[Path]  # beside the page
    notices: list[str]  # what is missing, and why


@python_words()
def evaluate(
    controllers: Controllers,
    episodes: int = 200,
    *,
    env: Any = None,
    cost_coefficients: Sequence[float] | None = None,
    frontier: int | None = None,
    master: str | None = None,
    best: bool = False,
    seed: int = 0,
    trust: bool = False,
) -> dict[str, Any]:
    """What controllers score and cost, over many episodes at once.

    They play in new environments like the agent's own, or of the task that the file names, or in `env`: a task's name
    or a function that makes an environment. Dial agents play at each of `cost_coefficients`, or at `frontier` settings
    in even steps of the dial.
    """
    from lowgear.evaluation.asked import chosen_settings
    from lowgear.evaluation.summary import evaluation_report

    _at_least("episodes", episodes, 1)
    found = _read(controllers, env, best, trust)
    numbered = chosen_settings(found.policies, cost_coefficients, frontier)
    return evaluation_report(numbered, found.make_env, episodes, master or found.master, seed)


@python_words()
def tune(
    controllers: Controllers,
    *,
    keep_return: float | None = None,
    max_flops: float | None = None,
    max_latency_us: float | None = None,
    reference: float | None = None,
    episodes: int = 64,
    env: Any = None,
    master: str | None = None,
    best: bool = False,
    seed: int = 1,
    dry_run: bool = False,
    trust: bool = False,
) -> dict[str, Any]:
    """Set dials to the cheapest setting that keeps a share of the return, or the best one within a share of FLOPs.

    One of `keep_return`, `max_flops` (of the large gear's) and `max_latency_us` (mean of a step of the C controller
    here) says what is demanded. Returns are kept against the agent's own best, or `reference`. An agent's dial is set;
    policies in files are rewritten with it as their default. Neither is done where `meets` is False, or with `dry_run`.
    """
    from lowgear.evaluation.asked import check_demand
    from lowgear.evaluation.summary import tuning_report
    from lowgear.evaluation.tune import Demand, search

    demands = {"keep_return": keep_return, "max_flops": max_flops, "max_latency_us": max_latency_us}
    check_demand(demands, reference, episodes)
    if reference is not None and not (isinstance(reference, Real) and math.isfinite(reference)):
        raise LowgearError(f"reference={reference!r}: write a finite number")
    found = _read(controllers, env, best, trust)
    policies = {number: policy for number, policy in enumerate(found.policies) if policy.turns}
    if not policies:
        raise LowgearError("there is no dial to set: the coefficients were settled when it was trained")
    latency = None
    if max_latency_us is not None:
        from lowgear.bench.deploy import latency_of

        latency = latency_of(next(iter(policies.values())), found.make_env, "max_latency_us").us_each
    results = search(
        list(policies.values()),
        Demand(keep_return, reference, max_flops, max_latency_us),
        found.make_env,
        master or found.master,
        seed=seed,
        episodes_at_most=episodes,
        latency=latency,
    )
    for (number, policy), result in zip(policies.items(), results, strict=True):
        if result.meets and not dry_run:
            if isinstance(controllers, Agent):
                controllers.cost_coefficient = result.cost_coefficient
            elif found.run is not None:
                policy.at(result.cost_coefficient).save(found.run.policy(number, best))
    return tuning_report(policies, results, demands | {"reference": reference})


@python_words()
def report(
    *controllers: Controllers,
    out: str | Path | None = None,
    episodes: int = 64,
    video: bool = True,
    setting: float | None = None,
    evaluation: dict[str, Any] | None = None,
    trust: bool = False,
) -> Report:
    """Figures, tables and one page.

    Run directories and policy files are shown with what `lowgear evaluate` found of them. An agent is shown with
    `evaluation`, what `lowgear.evaluate` gave, and else evaluated along its dial first. `episodes` are the dots of each
    controller in return against cost; without `video` no frames are drawn. It goes to `out`, or into the run.
    """
    if not controllers:
        raise LowgearError("name an agent, a policy file or a run directory")
    _at_least("episodes", episodes, 0)
    try:
        from lowgear.report.assemble import ReportOptions, assemble
    except ModuleNotFoundError as error:
        raise LowgearError(f"a report needs {error.name}: pip install 'lowgear[report]'") from None
    agents = [one for one in controllers if isinstance(one, Agent)]
    with tempfile.TemporaryDirectory() as scratch:
        paths = [
            _as_run(one, Path(scratch, str(place)), evaluation) if isinstance(one, Agent) else Path(one)
            for place, one in enumerate(controllers)
        ]
        place = Path(out) if out is not None else Path("report") if agents else None
        options = ReportOptions(episodes, video, setting, trust)
        (page, *files), notices = assemble(paths, place, options, lambda _: None)
        return Report(page, files, [in_python(_without(scratch, notice)) for notice in notices])


@python_words()
def export(
    controllers: Controllers,
    format: str = "c",  # noqa: A002
    out: str | Path | None = None,
    *,
    agent: int | None = None,
    best: bool = False,
    cost_coefficient: float | None = None,
    name: str | None = None,
    weights: str = "float32",
    unchecked: bool = False,
    license: str | None = None,  # noqa: A002
    repo: str | None = None,
    trust: bool = False,
) -> dict[str, Any]:
    """One controller as C99, ONNX or NumPy, or as a model of the Hugging Face hub (`format`: c, onnx, numpy, hub).

    It is checked against its network on whole episodes. `agent` and `best` choose from a run directory; without
    `agent`, its best by evaluation. `name` begins every C symbol and file name; `license` and `repo`, OWNER/NAME, are
    for the hub's model card. Returns what export.json says, the `agent`, and where it was written as `out`.
    """
    from lowgear.export import FORMATS
    from lowgear.export import export as write
    from lowgear.export.plain import default_name
    from lowgear.export.source import ExportRequest, default_out, of_policy, read, writable
    from lowgear.hub.folder import hub_format

    if format not in (*FORMATS, "hub"):
        raise LowgearError(f"format={shown(format)}: write {', '.join(FORMATS)} or hub")
    if format != "hub" and (license or repo):
        raise LowgearError(f'license and repo are for format="hub", not for {format}: leave them out')
    if isinstance(controllers, Agent):
        if agent is not None or best:
            raise LowgearError("an agent is one policy: agent and best choose from a run directory")
        policy = controllers.policy if cost_coefficient is None else controllers.policy.at(cost_coefficient)
        source = of_policy(
            policy, Path(f"{name or default_name(policy.header.task)}.safetensors"), controllers.make_envs
        )
    else:
        source = read(Path(controllers), agent, best, cost_coefficient, trust)
    place = writable(Path(out) if out is not None else default_out(source, format))
    chosen = name or default_name(source.policy.header.task)
    make = hub_format(license, repo, trust) if format == "hub" else None
    found = write(ExportRequest(source, chosen, weights, unchecked=unchecked), format, place, make)
    return found | {"agent": source.agent, "out": str(place)}


@dataclass(frozen=True)
class _Found:
    """Policies to play, and where."""

    policies: list[Policy]
    make_env: Callable[[int], BatchEnv]
    master: str  # how it picks unless told otherwise
    run: RunDirectory | None  # None: of an agent


@python_words()
def import_policy(
    path: str | Path,
    task: str,
    out: str | Path,
    *,
    normalise: str | Path | None = None,
    kind: str | None = None,
    check: bool = False,
) -> dict[str, Any]:
    """Make a policy file, `out`, of a policy that another library trained in the environment of `task`.

    `kind` is sb3, sbx, cleanrl or onnx, where the file does not say so; `normalise` names the statistics of its
    observations. `check` loads the file with its own library too, which runs what is in it. Returns what was read.
    """
    from lowgear.evaluation.imported import import_policy as read_policy
    from lowgear.policy.foreign import KINDS

    if kind is not None and kind not in KINDS:
        raise LowgearError(f"kind={shown(kind)}: write {', '.join(KINDS)}")
    imported = read_policy(path, task, normalise=normalise, kind=kind, check=check)
    imported.policy.save(out)
    return imported.report() | {"out": str(out)}


def _read(controllers: Controllers, env: Any, best: bool, trust: bool) -> _Found:
    if isinstance(controllers, Agent):
        if best:
            raise LowgearError("an agent is one policy: best=True chooses from a run directory")
        policy = controllers.policy
        return _Found([policy], controllers.make_envs(env), policy.header.master, None)
    if not isinstance(controllers, str | Path):
        raise LowgearError(f"{shown(controllers)} is no Agent, policy file or run directory")
    from lowgear.envs import make_env

    run = open_run(controllers, trust)
    config = run.read_config(environment=env is None)
    policies = [run.load_policy(config, agent, best) for agent in range(len(config.agents))]
    make = partial(make_env, config) if env is None else GivenEnv(env, config.recipe.name, {}).make
    return _Found(policies, make, config.master, run)


def _as_run(agent: Agent, scratch: Path, evaluation: dict[str, Any] | None) -> Path:
    """A run directory, or a policy file, with all that a report shows of an agent."""
    from lowgear.agent.saving import save_run

    policy = agent.policy
    if evaluation is None:
        evaluation = evaluate(agent, FRONTIER_EPISODES, frontier=FRONTIER if policy.turns else None)
    scratch.mkdir()
    path = scratch / file_name(policy.header.task)
    if not agent.can_learn:
        path = path.with_name(path.name + ".safetensors")
        policy.save(path)
        write_whole(open_run(path).evaluation, json.dumps(evaluation).encode())
        return path
    return save_run(path, policy, agent.config, None, agent.history, evaluation).path


def _without(scratch: str, notice: str) -> str:
    """A notice that speaks of an agent, not of the run that stands in for it for a moment."""
    return re.sub(rf"{re.escape(scratch)}/\d+/", "", notice)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise LowgearError(f"{name}={shown(value)}: write {least} or more")
