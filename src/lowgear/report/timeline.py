"""An episode along its steps: frames above, the gears as blocks of time, below them actions, rewards, master's values.

The chosen gear's actions are solid, those of the others faint, as in the paper's figures. A gear's value is what the
master expects of its best pick, prices taken off; its lead is what it is worth beyond the small gear. The same rows are
the tracks of the page's player.
"""

from collections.abc import Sequence

import numpy as np

from lowgear.policy.arrays import DoubleArray, IntArray
from lowgear.policy.gears import small_of
from lowgear.report.figure import MARGIN, Axis, Bar, Chart, Figure, Series, Still, axis
from lowgear.report.film import stills
from lowgear.report.playback import Playback
from lowgear.report.style import GREY, Style, gear_name, gear_style
from lowgear.report.text import percent, short

WIDTH = 7.2  # inches
STILLS = 9
LEAST, MOST = 100, 300  # steps
ACTIONS_AT_MOST = 8  # rows
NAME_AT_MOST = 7  # letters of an action's name
GEARS_HIGH, ACTION_HIGH, LINES_HIGH = 0.34, 0.62, 0.5  # inches
VALUES_NOTE = "\nValue: what the master expects of each gear, its price taken off; lead: beyond the small gear."


def describe(whole: Playback) -> Figure:
    """The beginning of an episode, as much of it as can be told apart."""
    steps = window(whole)
    playback = whole.until(steps)
    header = whole.episode.policy.header
    shown = tuple(
        Still(step, picture, gear_style(int(playback.episode.gear[step]), header.gears).colour)
        for step, picture in stills(playback, STILLS)
    )
    charts = tracks(playback, legend(whole))
    film = WIDTH / len(shown) * shown[0].picture.height / shown[0].picture.width if shown else 0.0
    who = header.variant if header.forced_gear is not None else f"{header.variant}, λ {short(header.cost_coefficient)}"
    return Figure(
        name="timeline",
        heading=header.task,
        facts=f"{who}, seed {header.seed}: return {whole.episode.total:,.1f}",
        note=_note(whole, steps),
        charts=charts,
        size=(WIDTH, film + sum(chart.inches for chart in charts) + MARGIN),
        stacked=True,
        stills=shown,
    )


def window(playback: Playback) -> int:
    """How many steps to draw: not more than can be told apart, fewer where the gear settles early."""
    shifts = np.flatnonzero(np.diff(playback.episode.gear))
    settled = round(1.3 * int(shifts[-1])) if len(shifts) else playback.episode.steps
    return min(playback.episode.steps, MOST, max(LEAST, settled))


def tracks(playback: Playback, entries: tuple[Series, ...]) -> tuple[Chart, ...]:
    """Rows over the steps: gears, with the legend's entries, then actions, rewards and what the master expects."""
    steps = Axis("step", 0, playback.episode.steps)
    actions = min(playback.actions.shape[-1], ACTIONS_AT_MOST)
    return (
        _gears(playback, steps, entries),
        *(_action(playback, number, steps) for number in range(actions)),
        _row("reward", steps, [(playback.episode.reward.astype(np.float64), Style(GREY))], zero=True),
        *_expected(playback, steps),
    )


def gear_values(playback: Playback) -> DoubleArray | None:
    """What the master expects of each gear's best pick, (T, gears), held until it is asked again; None: it never is.

    While there is nothing to hold yet, the gear that would is worth as little as the worst of the others.
    """
    episode, gears = playback.episode, len(playback.actions)
    if not episode.asked[:1].all():
        return None
    asked = np.maximum.accumulate(np.where(episode.asked, np.arange(episode.steps), 0))
    held = episode.values[asked].astype(np.float64)
    values = np.stack([held[:, gear::gears].max(axis=1) for gear in range(gears)], axis=1)
    barred = values == -np.inf
    return np.where(barred, np.min(values, axis=1, keepdims=True, initial=np.inf, where=~barred), values)


def legend(playback: Playback) -> tuple[Series, ...]:
    """The gears with their shares of all steps, and the picks."""
    header, asked = playback.episode.policy.header, int(playback.episode.asked.sum())
    gears = header.gears
    entries = []
    for gear, steps in enumerate(playback.episode.gear_steps):
        share = percent(steps / playback.episode.steps)
        label = f"{gear_name(gear, gears)}, {gears[gear].description}: {share} of steps"
        entries.append(Series((), (), gear_style(gear, gears), label=label))
    if asked:
        entries.append(Series((), (), Style(GREY, "|"), label=f"picks ({asked})"))
    return tuple(entries)


def actions_left_out(playback: Playback) -> str:
    """What is said of more actions than are drawn."""
    left = playback.actions.shape[-1] - ACTIONS_AT_MOST
    return f"{left} more actions are not drawn." if left > 0 else ""


def _gears(playback: Playback, steps: Axis, entries: tuple[Series, ...]) -> Chart:
    """Which gear acted: colour, and height for those who can't tell colours; marks where the master picked."""
    gear, gears = playback.episode.gear, playback.episode.policy.header.gears
    step = 0.55 / max(len(gears) - 1, 1)
    bars = tuple(
        Bar(start, end, 0.45 + step * int(gear[start]), gear_style(int(gear[start]), gears).colour)
        for start, end in _spans(gear)
    )
    picks = tuple(np.flatnonzero(playback.episode.asked).tolist())
    return Chart(steps, Axis("gear", 0, 1), entries, bars=bars, marks=picks, inches=GEARS_HIGH)


def _action(playback: Playback, number: int, steps: Axis) -> Chart:
    gear, gears = playback.episode.gear, playback.episode.policy.header.gears
    series = tuple(
        Series(
            (),
            tuple(np.round(playback.actions[one, :, number].astype(np.float64), 2).tolist()),
            gear_style(one, gears),
            spans=tuple((start, end) for start, end in _spans(gear) if gear[start] == one),
        )
        for one in range(len(gears))
    )
    return Chart(steps, Axis(_action_name(playback, number), -1.12, 1.12, ticks=(-1, 0, 1)), series, inches=ACTION_HIGH)


def _action_name(playback: Playback, number: int) -> str:
    """What the environment calls it, where that is short enough to stand beside its row."""
    names = playback.episode.policy.header.action_names
    return names[number] if names and len(names[number]) <= NAME_AT_MOST else f"a{number + 1}"


def _expected(playback: Playback, steps: Axis) -> list[Chart]:
    """The values of every gear, and by how much each leads the small one."""
    values, gears = gear_values(playback), playback.episode.policy.header.gears
    if values is None or not np.isfinite(values).all():
        return []
    small, numbers = small_of(gears), range(len(gears))
    rows = [_row("value", steps, [(values[:, gear], gear_style(gear, gears)) for gear in numbers])]
    if len(gears) > 1:
        leads = [(values[:, gear] - values[:, small], gear_style(gear, gears)) for gear in numbers if gear != small]
        rows.append(_row("lead", steps, leads, zero=True))
    return rows


def _row(label: str, steps: Axis, lines: Sequence[tuple[DoubleArray, Style]], zero: bool = False) -> Chart:
    """Lines of their own over the steps."""
    series = tuple(
        Series(
            (),
            tuple(float(f"{value:.4g}") for value in values.tolist()),
            style._replace(marker=""),
            line="solid",
            width=1.1,
        )
        for values, style in lines
    )
    heights = [value for one in series for value in one.y] + [0.0] * zero
    return Chart(steps, axis(label, heights), series, inches=LINES_HIGH)


def _spans(gear: IntArray) -> list[tuple[int, int]]:
    """Where one gear acts without a shift, [from, to)."""
    starts = np.flatnonzero(np.diff(gear, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], len(gear)], strict=True))


def _note(whole: Playback, steps: int) -> str:
    notes = ["Actions: solid those taken, faint what the other gears would have done.", actions_left_out(whole)]
    if gear_values(whole) is not None:
        notes.append(VALUES_NOTE)
    if steps < whole.episode.steps:
        rest = whole.episode.gear[steps:]
        alone = (rest == rest[0]).all()
        then = f", the rest all in the {gear_name(int(rest[0]), whole.episode.policy.header.gears)}" if alone else ""
        notes.append(f"\nThe first {steps:,} of {whole.episode.steps:,} steps{then}; shares are of all steps.")
    return " ".join(filter(None, notes))
