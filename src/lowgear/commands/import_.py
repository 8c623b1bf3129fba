"""`lowgear import`: a policy of another library becomes a policy file."""

from pathlib import Path
from typing import Any

import click

from lowgear import LowgearError
from lowgear.commands.completion import task_names
from lowgear.commands.options import Function, json_option
from lowgear.commands.output import show

SAFETENSORS = ".safetensors"


def foreign_options(command: Function) -> Function:
    """How a file of another library is read: `--normalise`, `--from`, `--check`."""
    normalise = click.option(
        "--normalise",
        metavar="STATS",
        type=click.Path(path_type=Path),
        help="How its observations were normalised: VecNormalize's file, or an .npz of mean, var, clip_obs, epsilon.",
    )
    kind = click.option(
        "--from",
        "kind",
        type=click.Choice(["sb3", "sbx", "cleanrl", "onnx"]),
        help="Which library wrote the file.  [default: as the file says]",
    )
    check = click.option(
        "--check", is_flag=True, help="Load the file with its own library too, which runs what is in it, and compare."
    )
    return normalise(kind(check(command)))


@click.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--task",
    required=True,
    metavar="TASK",
    shell_complete=task_names,
    help="The environment that it was trained in: gym:Pendulum-v1, or as for `lowgear train`.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="The policy file to write: NAME.safetensors."
)
@foreign_options
@json_option
def import_(path: Path, task: str, out: Path, as_json: bool, **options: Any) -> None:
    """Make a policy file of FILE, a policy that another library trained.

    \b
      Stable-Baselines3   zips of SAC, TD3, DDPG, TQC, PPO, A2C, TRPO with MlpPolicy
      SBX                 zips of SAC, TQC, TD3, DDPG, PPO
      CleanRL             state dicts of SAC, TD3, DDPG, PPO for continuous actions
      ONNX                graphs that are MLPs, with scaling before and behind

    Weights are read without running anything that is in FILE. The policy must fit the environment of TASK: as many
    observations and actions, the same bounds. Images, memory and discrete actions can't be imported.

    --check loads FILE with its own library, on observations of 1,000 steps, and writes nothing where that acts
    otherwise. Stable-Baselines3 and SBX run pickles from the file when they load it: only for files that you trust.
    ONNX graphs are checked without being asked, where ONNX Runtime is installed.

    What is written is a policy file with one frozen gear: evaluate and export it, or train around it with
    `lowgear train TASK --gears 16,FILE`.

    \b
      lowgear import sac.zip --task gym:HalfCheetah-v5 --out cheetah.safetensors
      lowgear import ppo.zip --normalise vecnormalize.pkl --task gym:Pendulum-v1 --out pendulum.safetensors --check
    """
    from lowgear.evaluation.imported import import_policy

    if out.suffix != SAFETENSORS:
        raise LowgearError(f"--out {out} is no name of a policy file: write {out.stem or 'policy'}{SAFETENSORS}")
    if not out.parent.is_dir():
        raise LowgearError(f"--out {out}: there is no directory {out.parent}; make it first")
    if out.exists() and path.exists() and out.samefile(path):
        raise LowgearError(f"--out {out} would replace the file that is imported: choose another name")
    imported = import_policy(path, task, **options)
    imported.policy.save(out)
    show(imported.report() | {"out": str(out)}, as_json, _print)


def _print(report: dict[str, Any]) -> None:
    """What was read, how far it was checked, and what to do next."""
    sizes = " → ".join(map(str, (report["obs_dim"], *report["hidden"], report["act_dim"])))
    normalised = "normalised in the first layer" if report["normalised"] else "raw"
    squash = "tanh" if report["squash"] == "tanh" else "clipped"
    click.echo(f"{report['source']} for {report['task']}")
    click.echo(f"  layers        {sizes}, {report['activation']}")
    click.echo(f"  observations  {normalised}")
    click.echo(f"  actions       {squash}, scaled to the environment's bounds")
    click.echo(f"  an action     {report['flops_per_step']:,} FLOPs")
    checked = report["checked"]
    if checked is None:
        click.echo("  not held against the original: --check loads it with its own library, if you trust the file")
    else:
        click.echo(
            f"  checked       {checked['library']} acts alike on {checked['observations']:,} observations, within "
            f"{checked['largest_action_error']:.1e} of half the actions' range"
        )
    for note in report["notes"]:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{report['out']}  {Path(report['out']).stat().st_size:,} bytes")
    click.echo(f"next: lowgear evaluate {report['out']}")
