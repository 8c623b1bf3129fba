"""`lowgear bench`: what things take on this machine."""

from pathlib import Path
from typing import Any

import click

from lowgear.errors import LowgearError


@click.group()
def bench() -> None:
    """Measure what things take on this machine."""


@bench.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--agent", type=int, metavar="K", help="Which agent of the run.  [default: 0]")
@click.option("--best", is_flag=True, help="The policy that scored best while training, not the last one.")
@click.option("--cost-coefficient", type=float, metavar="X", help="Setting of the dial.  [default: the policy's own]")
@click.option("--episodes", default=2, show_default=True, help="Stored episodes to replay.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output and nothing else there.")
def deploy(
    directory: Path, agent: int | None, best: bool, cost_coefficient: float | None, episodes: int, as_json: bool
) -> None:
    """Time the controller in DIR, a run directory or a policy file, as it would be deployed.

    Compiles its C, and that of each gear alone, and replays whole episodes through them, through ONNX Runtime and, if
    installed, PyTorch, all in turn. Counts instructions where Valgrind is installed, reads energy where the processor
    shows it, estimates microcontrollers, and says how much of the FLOPs saved is time saved.

    \b
      lowgear bench deploy runs/NAME --agent 2
      lowgear bench deploy runs/NAME --cost-coefficient 0.03 --json
    """
    import json

    from rich.console import Console

    from lowgear.bench.deploy import measure
    from lowgear.bench.table import print_deploy
    from lowgear.export import compiler
    from lowgear.export.source import read

    if episodes < 1:
        raise LowgearError(f"--episodes {episodes}: write 1 or more")
    compiler.need("lowgear bench deploy")
    with Console(stderr=True).status("recording episodes") as status:
        source = read(directory, agent, best, cost_coefficient)
        header = source.policy.header
        if header.forced_gear is not None:
            raise LowgearError(
                f"{source.path} is {header.variant}: it never shifts, so there is nothing to compare; "
                "name an asymmetric agent with --agent K, whose gears are timed alone as well"
            )
        stored = source.episodes(episodes)
        report: dict[str, Any] = {
            "policy": source.path.name,
            "from_environment": source.make_env is not None,
        } | measure(source.policy, stored, lambda what: status.update(what))
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        print_deploy(report)
