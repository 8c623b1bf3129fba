"""A population spread over several programs, and put together again as one run.

Agents never read each other, so a shard's learn as in the whole population, bit for bit on a CPU. Only a gear that no
agent of a shard ever acts with stays as it began, as in any run.
What was put together is a run as any other: it can be evaluated, exported, and gone on with.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from safetensors.numpy import save as pack_tensors

from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.files import write_whole
from lowgear.studies.program import Program, cut_here
from lowgear.training.checkpoint import Checkpoint, read_latest
from lowgear.training.stopped import Stopped, stopped_file

FOLDER = "shards"


def split(config: RunConfig, shards: int) -> list[Program]:
    """So many programs, or fewer where there are not as many agents, as even as may be."""
    parts, threads = cut_here(len(config.agents))
    count = min(shards, len(config.agents))
    bounds = [len(config.agents) * number // count for number in range(count + 1)]
    return [
        Program(
            f"shard{number}", replace(config, agents=config.agents[bounds[number] : bounds[number + 1]]), parts, threads
        )
        for number in range(count)
    ]


def is_spread(directory: RunDirectory) -> bool:
    """Whether its agents are still in shards."""
    return (directory.path / FOLDER).is_dir()


def has_begun(directory: RunDirectory) -> bool:
    """Whether there is anything in them."""
    return any((directory.path / FOLDER).glob("*/config.json"))


def existing(directory: RunDirectory, config: RunConfig) -> list[Program]:
    """The programs that a run was spread over, as far as its directory tells; none where they are yet to be."""
    count = len(list((directory.path / FOLDER).glob("shard*")))
    return split(config, count) if count else []


def merge(directory: RunDirectory, shards: Sequence[RunDirectory]) -> None:
    """Put finished shards together, policies last; then those in the run's own folder are deleted."""
    sizes = [len(shard.read_config().agents) for shard in shards]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    latest = [read_latest(shard) for shard in shards]
    lines = [
        (json.loads(line), start, end)
        for shard, start in zip(shards, starts, strict=True)
        for line, end in _with_ends(shard.metrics)
    ]
    _merge_metrics(directory, lines)
    _merge_stopped(directory, shards, starts)
    whole = [one for one in latest if one is not None]
    if len(whole) == len(shards) and len({(one.number, one.steps, one.updates) for one in whole}) == 1:
        _merge_checkpoint(directory, shards, whole, sizes)
        noted = replace(
            whole[0],
            best=[score for one in whole for score in one.best],
            end_best=[score for one in whole for score in one.end_best],
            metrics_bytes=_bytes_before(lines, dict(zip(starts, (one.metrics_bytes for one in whole), strict=True))),
            end_metrics_bytes=_bytes_before(
                lines, dict(zip(starts, (one.end_metrics_bytes for one in whole), strict=True))
            ),
        )
        write_whole(directory.latest, json.dumps(asdict(noted)).encode())
    for shard, start, size in zip(shards, starts, sizes, strict=True):
        for best in (True, False):
            for agent in range(size):
                if shard.policy(agent, best).exists():
                    write_whole(directory.policy(start + agent, best), shard.policy(agent, best).read_bytes())
    if is_spread(directory):
        merged = directory.path / f".{FOLDER}-merged"  # half of them left, after a kill, would be taken for all
        (directory.path / FOLDER).rename(merged)
        shutil.rmtree(merged, ignore_errors=True)


def _with_ends(path: Path) -> list[tuple[bytes, int]]:
    """A file's lines, and where in it each one ends."""
    found, end = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        end += len(line)
        found.append((line, end))
    return found


def _merge_metrics(directory: RunDirectory, lines: list[tuple[dict[str, Any], int, int]]) -> None:
    """In the order that one program would have written them in: `lines` is left in it, with the agents' own numbers."""
    for line, start, _ in lines:
        line["agent"] += start
    lines.sort(key=lambda each: (each[0]["steps"], each[0]["kind"] == "evaluation", each[0]["agent"]))
    write_whole(directory.metrics, b"".join(map(_encoded, (line for line, _, _ in lines))))


def _encoded(line: dict[str, Any]) -> bytes:
    return (json.dumps(line) + "\n").encode()


def _bytes_before(lines: list[tuple[dict[str, Any], int, int]], ends: dict[int, int]) -> int:
    """Of the lines that lie before where each shard's checkpoint ends."""
    return sum(len(_encoded(line)) for line, start, end in lines if end <= ends[start])


def _merge_stopped(directory: RunDirectory, shards: Sequence[RunDirectory], starts: Sequence[int]) -> None:
    stopped = {
        start + agent: Stopped(*found)
        for shard, start in zip(shards, starts, strict=True)
        for agent, found in shard.read_stopped().items()
    }
    if stopped:
        write_whole(directory.stopped, stopped_file(stopped))


def _merge_checkpoint(
    directory: RunDirectory, shards: Sequence[RunDirectory], latest: Sequence[Checkpoint], sizes: Sequence[int]
) -> None:
    """Rows chunk by chunk, the learners' arrays along their first axis."""
    one, chunk = latest[0], directory.read_config(environment=False).recipe.chunk
    for number, steps in one.segments:
        parts = [np.fromfile(shard.rows(number), np.float32) for shard in shards]
        shaped = [part.reshape(steps // chunk, size, chunk, -1) for part, size in zip(parts, sizes, strict=True)]
        write_whole(directory.rows(number), np.concatenate(shaped, axis=1).tobytes())
    states = [load_file(shard.state(one.number, one.open_steps)) for shard in shards]
    joined = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
    write_whole(directory.state(one.number, one.open_steps), pack_tensors(joined))
