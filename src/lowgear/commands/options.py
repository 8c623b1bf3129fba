"""Options that several commands share, and options that take lists."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from lowgear import LowgearError
from lowgear.commands.completion import assignments, recipe_names

Function = TypeVar("Function", bound=Callable[..., Any])


def list_option(
    name: str,
    parse: Callable[[str, str], Sequence[Any]],
    help_text: str,
    metavar: str | None = "LIST",
    **others: Any,
) -> Callable[[Function], Function]:
    """An option whose text becomes a tuple, by a function of `lists`; a bad text is an error that names the option."""

    def convert(_: click.Context, __: click.Parameter, text: str | None) -> tuple[Any, ...] | None:
        return None if text is None else tuple(parse(name, text))

    return click.option(name, callback=convert, help=help_text, metavar=metavar, **others)


def widths_option(help_text: str) -> Callable[[Function], Function]:
    """`--gears` where only widths can be compared."""

    def parse(_: str, text: str) -> tuple[int, ...]:
        from lowgear.config.gears import parse_widths

        return parse_widths(text)

    return list_option("--gears", parse, help_text, metavar="WIDTHS")


def kinds_option(help_text: str) -> Callable[[Function], Function]:
    """`--gears` of any kind."""

    def parse(_: str, text: str) -> Sequence[Any]:
        from lowgear.config.gears import parse_gears

        return parse_gears(text)

    return list_option("--gears", parse, help_text, metavar="GEARS")


gears_option = kinds_option(
    "In any order: 8,64 (widths of two hidden layers), 8,64x64x64 (of each layer), hold,8,64 (hold repeats the last "
    "action), 16,large.safetensors (a policy file, frozen).  [default: the paper's; 16,128 on other environments]"
)
steps_option = click.option(
    "--steps",
    type=int,
    help="Environment steps of each agent.  [default: the paper's; 2,500,000 on other environments]",
)
recipe_option = click.option(
    "--recipe",
    default="modern",
    show_default=True,
    shell_complete=recipe_names,
    help="Settings of the learners: modern or paper.",
)
set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=assignments,
    help="Any setting of the recipe: --set batch=128 --set periods=2,5. `lowgear recipes show` lists them.",
)
trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Trust the files: their task (gym:MODULE:ID, MODULE:NAME) may import its Python module, which runs that "
    "module's code, and links may lead out of the run.",
)


def track_option(default: str, each_run: bool = False) -> Callable[[Function], Function]:
    """`--track`; for `each_run` of a command it also reaches the processes that train them, by LOWGEAR_TRACK."""

    def convert(context: click.Context, _: click.Parameter, text: str | None) -> tuple[str, ...] | None:
        from lowgear.training.trackers import choice

        chosen = choice.by_variable() if text is None else choice.parse(text)
        if text is not None and each_run:
            context.with_resource(_variable(choice.VARIABLE, text))
        return None if text is None else chosen

    return click.option(
        "--track",
        callback=convert,
        metavar="LIST",
        expose_value=not each_run,
        help="Where the run is shown as well: tensorboard, wandb, mlflow, several with commas, or none.  "
        f"[default: $LOWGEAR_TRACK, or {default}]",
    )


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """An environment variable, for the time of a command."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _watch(context: click.Context, _: click.Parameter, seconds: float) -> None:
    """Environments made from now on are given that time; one that can't be interrupted ends the command."""
    from lowgear.envs import watchdog

    if not 0 <= seconds < math.inf:
        raise LowgearError(f"--env-timeout {seconds:g}: write seconds, or 0 to wait for ever")

    def end(why: str) -> None:
        click.echo(f"lowgear: error: {why}", err=True)
        os._exit(2)  # no thread would wait for the one that hangs

    watchdog.limit_s = seconds
    context.with_resource(watchdog.stuck(end))


env_timeout_option = click.option(
    "--env-timeout",
    type=float,
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    expose_value=False,
    callback=_watch,
    help="An environment that takes longer to return is said to hang: its agent goes no further. 0: wait for ever.",
)


def seed_option(name: str, default: int, help_text: str) -> Callable[[Function], Function]:
    """A seed, which is 0 or more."""

    def check(_: click.Context, __: click.Parameter, seed: int) -> int:
        from lowgear.policy.fields import MAX_SEED, shown

        if not 0 <= seed <= MAX_SEED:
            raise LowgearError(f"{name} {shown(seed)}: write 0 or more, {MAX_SEED} at most")
        return seed

    return click.option(name, default=default, show_default=True, callback=check, help=help_text)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output and nothing else there."
)
