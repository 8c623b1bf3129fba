"""What advice says, and which commands it ends with, for findings that are certain and for those that are not."""

import shlex

import click
import pytest

from lowgear.commands.cli import cli
from lowgear.studies.advice_text import commands, words

PERIODS = (2, 5)
COST = {8: 0.01, 32: 0.1, 128: 1.0}


def option(gears, verdict, flops=None, kept=(0.99, 0.97, 1.01)):
    flops = flops or (COST[gears[0]] if len(gears) == 1 else 0.2)
    return {
        "gears": list(gears),
        "periods": list(PERIODS) if len(gears) > 1 else [],
        "relative_coefficient": 1.0,
        "score": [99.0, 98.0, 100.0],
        "kept": list(kept),
        "flops": [flops, flops / 2, flops * 2],
        "verdict": verdict,
    }


def report(chosen, *others, best=128, candidate=None, **changed):
    """Of three widths that are played alone, and others; what is not named certainly loses."""
    named = {tuple(one["gears"]): one for one in (chosen, *others, *([candidate] if candidate else []))}
    alone = [named.pop((width,), option((width,), "keeps" if width == best else "loses")) for width in COST]
    found = {"task": "gym:Pendulum-v1", "steps": 2048, "seeds": [0, 1, 2], "keep": 0.95, "best_width": best}
    found |= {"learned": True, "still_rising": False, "options": [*alone, *named.values()], "periods": []}
    return found | {"chosen": chosen, "candidate": candidate} | changed


def typed(found, options=(), assignments=("batch=64",)):
    """The commands, which the command line understands."""
    lines = [one["command"] for one in commands(found, options, assignments, PERIODS)]
    for line in lines:
        program, name, *arguments = shlex.split(line)
        assert program == "lowgear"
        command = cli.get_command(click.Context(cli), name)
        command.parse_args(click.Context(command), arguments)
    return lines


def test_a_certain_pair_is_worth_training():
    found = report(option((8, 128), "keeps"), option((8,), "unclear"))
    first, second = words(found)
    assert first.startswith(
        "Worth training: gears 8,128. Kept 99% [97%, 101%] of what 128 units alone gain over random"
    )
    assert second.startswith("Cheaper, and undecided: 8.")
    assert typed(found) == [
        "lowgear train gym:Pendulum-v1 --gears 8,128 --period 2,5 --steps 20480 --seeds 0-2 "
        "--variants asymmetric,small-only,large-only --set batch=64"
    ]


def test_a_pair_is_trained_as_it_was_judged_and_the_best_width_beside_it():
    first, second = typed(report(option((8, 32), "keeps", flops=0.05)), assignments=())
    assert "--gears 8,32 --period 2,5" in first
    assert second.endswith("--gears 8,128 --steps 20480 --seeds 0-2 --variants large-only")
    first, second = typed(report(option((8, 128), "keeps", flops=0.05), best=32), assignments=())
    assert "--gears 8,128 --period 2,5" in first
    assert second.endswith("--gears 8,32 --steps 20480 --seeds 0-2 --variants large-only")


def test_a_width_that_does_it_alone_is_trained_alone():
    found = report(option((8,), "keeps"))
    assert words(found)[0].startswith("Worth training: 8 units alone.")
    assert "No master is needed" in words(found)[-1]
    (line,) = typed(found)
    assert "--gears 8,128" in line
    assert "--variants small-only,large-only" in line
    assert "asymmetric" not in line


def test_what_is_unclear_is_not_advised():
    """The best width alone is certain; pairs that may keep enough are told as such, and more seeds come first."""
    pair = option((8, 128), "unclear", kept=(0.97, 0.85, 1.1))
    found = report(option((128,), "keeps"), option((8, 32), "unclear", flops=0.05), candidate=pair)
    told = words(found)
    assert told[0].startswith("Undecided: nothing cheaper than 128 units alone, the best width, certainly keeps 95%")
    assert told[1].startswith("Most promising: gears 8,128. Kept 97% [85%, 110%]")
    assert told[2] == "Unclear as well: 8,32."
    assert "Worth training" not in " ".join(told)
    first, second = typed(found, options=(("--gears", "8,32,128"), ("--seeds", "0-2"), ("--set", "batch=64")))
    assert first == "lowgear advise gym:Pendulum-v1 --gears 8,32,128 --set batch=64 --seeds 0-5"
    assert "lowgear train" in second
    assert "--gears 8,128" in second
    why, otherwise = (one["why"] for one in commands(found, (), (), PERIODS))
    assert why == "More seeds may decide it; only those are trained:"
    assert otherwise == "Or put gears 8,128 to the test at length:"
    rising = found | {"still_rising": True}
    assert typed(rising, (("--seeds", "0-2"),))[0] == "lowgear advise gym:Pendulum-v1 --seeds 0-2 --steps 6144"
    assert "longer sweep" in commands(rising, (), (), PERIODS)[0]["why"]


def test_an_undecided_width_is_put_to_the_test_alone():
    found = report(option((128,), "keeps"), candidate=option((8,), "unclear"))
    assert words(found)[1].startswith("Most promising: 8 units alone.")
    assert "--gears 8,128 --steps 20480 --seeds 0-2 --variants small-only,large-only" in typed(found)[1]


@pytest.mark.parametrize(
    ("best", "said", "asked"),
    [
        (
            128,
            "All that is cheaper certainly loses too much.",
            "--gears 8,128 --steps 20480 --seeds 0-2 --variants large-",
        ),
        (8, "No master is needed", "--gears 8,128 --steps 20480 --seeds 0-2 --variants small-only,large-only"),
        (32, "All that is cheaper", "--gears 32,128 --steps 20480 --seeds 0-2 --variants small-only,large-only"),
    ],
)
def test_where_all_that_is_cheaper_loses_the_best_width_is_trained_alone(best, said, asked):
    found = report(option((best,), "keeps"), option((8, 128), "loses"), best=best)
    (told,) = words(found)
    assert told.startswith(f"Worth training: {best} units alone")
    assert said in told
    (line,) = typed(found)
    assert asked in line
    assert "asymmetric" not in line


def test_where_nothing_was_learned_more_steps_are_asked_for():
    found = report(option((128,), "keeps"), learned=False)
    (told,) = words(found)
    assert told.startswith("Cannot tell: after 2,048 steps")
    assert typed(found, (("--steps", "2000"), ("--seeds", "0-2"))) == [
        "lowgear advise gym:Pendulum-v1 --seeds 0-2 --steps 6144"
    ]


def test_seeds_that_are_no_row_are_written_one_by_one():
    found = report(option((128,), "keeps"), candidate=option((8, 128), "unclear"), seeds=[0, 2, 7])
    assert typed(found)[0].endswith("--seeds 0,2,7,8,9,10")


def test_rising_returns_are_told():
    assert "still rising" in words(report(option((8, 128), "keeps"), still_rising=True))[-1]
