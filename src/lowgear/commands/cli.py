"""The command line: arguments in, one call, something printed; what a command needs is imported inside it.

That keeps `lowgear --help` fast. A LowgearError becomes one line on standard error and exit code 2.
"""

import contextlib
import io
import sys
from typing import NoReturn

import click

from lowgear import LowgearError, __version__
from lowgear.commands import ctrl_c
from lowgear.commands.advise import advise
from lowgear.commands.bench import bench
from lowgear.commands.completion import completion
from lowgear.commands.evaluate import evaluate
from lowgear.commands.export import export
from lowgear.commands.import_ import import_
from lowgear.commands.quiet import keep_out_warnings
from lowgear.commands.recipes import recipes
from lowgear.commands.report import report
from lowgear.commands.slim import slim
from lowgear.commands.studies import studies
from lowgear.commands.study import study
from lowgear.commands.sweep import sweep
from lowgear.commands.tasks import tasks
from lowgear.commands.train import train
from lowgear.commands.tune import tune
from lowgear.commands.watch import watch


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lowgear")
def cli() -> None:
    """Train controllers that drop into a low gear when the road is easy.

    A tiny master network picks a gear every few steps: a small policy that costs almost nothing to run,
    or a large one that can do anything. The master pays for what it picks, so the controller keeps the
    large policy's return at a fraction of its compute.

    \b
    Start here:
      lowgear tasks                             the 16 published tasks with their presets
      lowgear tasks gym:Pendulum-v1 --gears 8,64
                                                any other environment, and what its gears cost
      lowgear advise cartpole-swingup           which gears and periods are worth training
      lowgear train cartpole-swingup --steps 100000 --seeds 0-2
                                                three agents at once, into runs/
      lowgear import sac.zip --task gym:Hopper-v5 --out hopper.safetensors
                                                a policy that another library trained
      lowgear slim sac.zip gym:Hopper-v5        the cheapest controller that keeps its return
      lowgear recipes show                      every setting of the learners; train --set NAME=VALUE
      lowgear evaluate runs/NAME                return, share of the large gear, FLOPs saved
      lowgear tune runs/NAME --keep-return 0.95 the cheapest setting of the dial that keeps 95%
      lowgear report runs/NAME                  figures, tables, a page with an episode to watch
      lowgear watch runs/NAME                   an episode in a window, or as a video
      lowgear export runs/NAME --format c       the controller as C that a robot can run
      lowgear bench deploy runs/NAME            its time per step, against ONNX Runtime
      lowgear bench train walker-stand          how fast it trains here, and where the time goes
      lowgear study performance cartpole-swingup
                                                a table of the paper, from training to table
      lowgear sweep walker-stand --set learning_rate=1e-4:1e-2:log
                                                searches settings of the recipe
      lowgear completion bash                   lets your shell complete all this
    """


for command in (
    tasks,
    recipes,
    advise,
    train,
    import_,
    slim,
    evaluate,
    tune,
    export,
    bench,
    report,
    watch,
    study,
    studies,
    sweep,
    completion,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    ctrl_c.begin()
    keep_out_warnings()
    for stream in (sys.stdout, sys.stderr):  # where λ can't be written, "?" is
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli.main(prog_name="lowgear", standalone_mode=False))
    except LowgearError as error:
        click.echo(f"lowgear: error: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:  # a name that is too long, a place that may not be looked into
        if error.filename is None:
            raise
        click.echo(f"lowgear: error: {_shortened(str(error.filename))}: {error.strerror}; name another", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _end()
    except SystemExit as ended:
        if isinstance(ended.code, int) and ended.code > 128:  # a signal stopped it
            _end(ended.code)
        raise


def _end(code: int = ctrl_c.EXIT_CODE) -> NoReturn:
    with contextlib.suppress(OSError):  # nobody reads it any more
        sys.stdout.flush()
    ctrl_c.end(code)


def _shortened(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:60]}... ({len(name)} letters)"
