"""`--format hub`: the policy file, its model card with the frontier, and its configuration."""

import json
import re
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lowgear import LowgearError, __version__
from lowgear.export.check import ExportedStep, StateBefore, put
from lowgear.export.plain import check_name
from lowgear.export.source import ExportFiles, ExportRequest
from lowgear.hub.card import PICTURE, card
from lowgear.hub.scores import Scores, read_scores
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.fields import shown
from lowgear.policy.file import Policy, load

UNKNOWN = "unknown"  # the hub's own word
LICENCE = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def push_command(out: Path, repo: str) -> str:
    """What a person types to put the folder on the hub."""
    return shlex.join(["hf", "upload", repo, str(out)])


def hub_format(licence: str | None, repo: str | None, trust: bool) -> Callable[[ExportRequest], ExportFiles]:
    """Makes an export for a repository of the hub; a name that the hub would refuse is an error."""
    if licence is not None and not LICENCE.fullmatch(licence):
        raise LowgearError(f"--license {shown(licence)}: write one of the hub's names, such as mit or apache-2.0")
    if repo is not None and not REPOSITORY.fullmatch(repo):
        raise LowgearError(f"--repo {shown(repo)}: write OWNER/NAME, as the hub has it")
    return partial(export_hub, licence=licence, repo=repo, trust=trust)


def export_hub(request: ExportRequest, licence: str | None, repo: str | None, trust: bool) -> ExportFiles:
    """NAME.safetensors, README.md, config.json and frontier.png, checked."""
    source, name = request.source, check_name(request.name)
    header, file, repo = source.policy.header, f"{name}.safetensors", repo or f"YOUR-NAME/{name}"
    scores = read_scores(source, trust)
    picture, notes = _picture(scores)
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        source.policy.save(Path(folder, file))
        files = {file: Path(folder, file).read_bytes()}
        checked = source.check(Reloaded(load(Path(folder, file))), source.episodes(request.episodes), file)
    text = card(header, scores, name, file, licence or UNKNOWN, repo, bool(picture))
    files |= {"README.md": text.encode(), "config.json": _config(request, scores, file)} | picture
    if licence is None:
        notes = (*notes, "The card names no licence: choose one with --license, for example mit.")
    master = header.master if header.forced_gear is None else None
    found = {"checked": checked, "repository": repo, "master": master}
    return ExportFiles(files, found, (*scores.notes, *notes))


def _picture(scores: Scores) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The frontier, where there is one to draw."""
    if scores.run is None or len(scores.rows) + len(scores.others) < 2:
        return {}, ()
    try:
        from lowgear.report.frontier import describe
        from lowgear.report.matplotlib_figure import save
    except ImportError:
        return {}, ("The card has no picture of the frontier: pip install 'lowgear[report]'.",)
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        save(replace(describe(scores.run.evaluation), name=Path(PICTURE).stem), Path(folder))
        return {PICTURE: Path(folder, PICTURE).read_bytes()}, ()


def _config(request: ExportRequest, scores: Scores, file: str) -> bytes:
    """What the policy is, and the settings of the run that it comes from."""
    source = request.source
    training: dict[str, Any] | None = None
    if scores.run is not None and source.agent is not None:
        training = scores.run.raw | {"agents": [scores.run.raw["agents"][source.agent]]}
    whole = {
        "library_name": "lowgear",
        "lowgear": __version__,
        "policy": file,
        "header": source.policy.header.to_json(),
    }
    return json.dumps(whole | {"training": training}, indent=2, default=str).encode()


class Reloaded:
    """The policy as whoever downloads it loads it."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._network = policy, Controller.from_policies([policy])

    def step_from(self, state: StateBefore, observation: FloatArray) -> ExportedStep:
        """One step from a state."""
        network, x = self._network, np.asarray(observation, np.float32).reshape(1, 1, -1)
        put(network, state)
        network.pick(x)
        gear, action = int(network.gear[0, 0]), self._policy.bounds.scale(network.act(x))[0, 0]
        return ExportedStep(int(network.choice[0, 0]), gear, action)
