"""What `evidence.py show` writes: the page of results/evidence, the README's tables, the picture of all frontiers."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lowgear.config.tasks import find
from lowgear.evaluation.evaluate import score_of
from lowgear.report.style import variant_style

BEGIN, END = "<!-- evidence -->", "<!-- end of evidence -->"
COLUMNS = 4
NEAR = 0.9  # of the best known score counts as near it
KEPT = 0.95  # of the large-only agents' score
TICKS, LIMITS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.0015, 1.35)  # shares of FLOPs in the picture
SAVED = 0.8  # of FLOPs: what the claim demands
# What the recipe was to reach: steps, and the score of large-only agents there.
GOALS = {
    "MountainCarContinuous-v0": (100_000, 94),
    "BipedalWalker-v3": (300_000, 290),
    "HalfCheetah-v3": (300_000, 8500),
    "Swimmer-v3": (300_000, 300),
    "Ant-v3": (300_000, 4500),
    "Walker2d-v3": (300_000, 4000),
    "FetchPush-v1": (300_000, 0.98),
    "FetchSlide-v1": (1_000_000, 0.60),
    "FetchPickAndPlace-v1": (1_000_000, 0.95),
    "walker-stand": (300_000, 970),
    "finger-spin": (300_000, 930),
    "cartpole-swingup": (300_000, 860),
    "ball_in_cup-catch": (300_000, 970),
    "hopper-stand": (300_000, 800),
    "fish-swim": (300_000, 500),
    "reacher-easy": (300_000, 950),
}


def write_page(kept, page, readme, table_rows, tuned_row, best_known):
    """results/evidence/README.md, and the README's tables where it has a place for them."""
    facts = [summary(row, table_rows(row), tuned_row(row), best_known) for row in kept]
    text = "\n".join([readme_table(facts), *tuned_table(facts)])
    page.write_text("\n".join([*head(facts), text, *goals_table(kept), "", *how(kept)]))
    whole = readme.read_text()
    if BEGIN in whole:
        before, rest = whole.split(BEGIN)
        readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def summary(row, rows, tuned, best_known):
    """What the tables say of a task."""
    by_label = {line.label: line for line in rows}
    published = find(row["task"]).published
    ours, large = by_label["asymmetric"], by_label["large-only"]
    best = best_known(row["task"], row["steps"])
    return {
        "task": row["task"],
        "steps": row["steps"],
        "ours": ours,
        "large": large,
        "small": by_label["small-only"],
        "tuned": tuned,
        "paper": published,
        "beats_large": reaches(ours, published.large_only[0], SAVED),
        "tuned_beats_large": any(reaches(line, published.large_only[0], SAVED) for line in (ours, tuned) if line),
        "beats_asymmetric": reaches(ours, published.asymmetric[0], published.flops_reduction),
        "near_best": large.score.mean >= NEAR * best,
        "best_known": best,
    }


def reaches(line, score, saved):
    """Whether agents score so much and save so much, on average over seeds."""
    return line.score.mean >= score and line.mean("flops_reduction") >= saved


def head(facts):
    """The claims, counted."""

    def named(what):
        missed = ", ".join(fact["task"] for fact in facts if not fact[what])
        return f" (not: {missed})" if missed else ""

    def counted(what):
        return sum(fact[what] for fact in facts)

    return [
        "# Evidence",
        "",
        f"Made by `python benchmarks/evidence.py show` from the {len(facts)} tasks beside this page, of 16.",
        "",
        f"- At or above the paper's large-only at {SAVED:.0%} of FLOPs saved or more: {counted('beats_large')} of "
        f"{len(facts)} with the dial at its default{named('beats_large')}, {counted('tuned_beats_large')} with those "
        f"tuned{named('tuned_beats_large')}.",
        f"- At or above the paper's asymmetric score and saving: {counted('beats_asymmetric')} of {len(facts)}"
        f"{named('beats_asymmetric')}.",
        f"- Large-only within 10% of the best known score at as many steps, read between the steps where it is known: "
        f"{counted('near_best')} of {len(facts)}{named('near_best')}.",
        "",
    ]


def readme_table(facts):
    """The paper's figures and ours, a line for each task."""
    lines = [
        "| task | paper: large-only | paper: asymmetric | paper: saved "
        "| ours: steps | small-only | large-only | asymmetric | saved |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for fact in facts:
        paper, small, large, ours = fact["paper"], fact["small"].score, fact["large"].score, fact["ours"].score
        cells = [
            fact["task"],
            pair(*paper.large_only),
            pair(*paper.asymmetric),
            f"{paper.flops_reduction:.1%}",
            thousands(fact["steps"]),
            pair(small.mean, small.std),
            pair(large.mean, large.std),
            bold(pair(ours.mean, ours.std), fact["beats_large"]),
            f"{fact['ours'].mean('flops_reduction'):.1%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def tuned_table(facts):
    """The tasks whose agents were tuned, if any."""
    known = [fact for fact in facts if fact["tuned"]]
    if not known:
        return []
    lines = [
        "",
        "Where the default falls short: tuned by "
        f"`lowgear tune --max-flops {1 - SAVED:.1g}`, scored on 200 other episodes.",
        "",
        "| task | paper: large-only | ours: large-only | at the default | saved | tuned | saved | of large-only |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for fact in known:
        ours, tuned, large = fact["ours"], fact["tuned"], fact["large"].score
        cells = [
            fact["task"],
            pair(*fact["paper"].large_only),
            pair(large.mean, large.std),
            pair(ours.score.mean, ours.score.std),
            f"{ours.mean('flops_reduction'):.1%}",
            bold(pair(tuned.score.mean, tuned.score.std), reaches(tuned, fact["paper"].large_only[0], SAVED)),
            f"{tuned.mean('flops_reduction'):.1%}",
            f"{tuned.score.mean / large.mean:.0%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def goals_table(kept):
    """What the recipe was to reach, and where it stands after so many steps."""
    lines = [
        "",
        "After the steps that the recipe's goals are set for, or the last evaluation before: 200 episodes of each",
        "agent where the row ends there, else the five of the evaluation while training. Bold where large-only agents",
        f"miss the goal, or asymmetric ones {SAVED:.0%} saved, {KEPT:.0%} of our large-only agents, or {KEPT:.0%} of",
        "the goal.",
        "",
        "| task | steps | large-only: goal | ours | asymmetric | saved | of large-only | of the goal |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in kept:
        steps, goal = GOALS[row["task"]]
        at, large, _ = reached(row, "large-only", steps)
        _, ours, saved = reached(row, "asymmetric", steps)
        cells = [
            row["task"],
            thousands(at),
            number(goal),
            bold(number(large), large < goal),
            number(ours),
            bold(f"{saved:.1%}", saved < SAVED),
            bold(f"{ours / large:.0%}", ours < KEPT * large),
            bold(f"{ours / goal:.0%}", ours < KEPT * goal),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def reached(row, variant, steps):
    """Steps, score and share of FLOPs saved of a row's agents after `steps`, means over seeds."""
    agents = row["scores"][variant]
    if row["steps"] <= 1.01 * steps:
        points = [(row["steps"], score_of(agent), agent["flops_reduction"]) for agent in agents]
    else:
        curves = [row["curves"][str(agent["agent"])] for agent in agents]
        points = [max(point for point in curve if point[0] <= 1.01 * steps) for curve in curves]
    return tuple(sum(values) / len(values) for values in zip(*points, strict=True))


def number(value):
    return f"{value:,.{digits_of(value)}f}"


def bold(text, really):
    return f"**{text}**" if really else text


def pair(mean, std):
    digits = digits_of(mean)
    return f"{mean:,.{digits}f} ± {std:,.{digits}f}"


def digits_of(value):
    return 2 if abs(value) < 2 else 1 if abs(value) < 100 else 0


def thousands(steps):
    return f"{steps / 1e6:g}M" if steps >= 1_000_000 else f"{round(steps / 1000)}k"


def how(kept):
    """What made each row."""
    lines = ["", "How each was made:", ""]
    for row in kept:
        commands = "; ".join(f"`{command}`" for command in row["commands"])
        note = f" {row['note']}" if row["note"] else ""
        if "tuned" in row:
            tuning = "; ".join(f"`{command}`" for command in row["tuned"]["commands"])
            note += f" Tuned on two cores ({row['tuned']['commit']}), in its folder of policies: {tuning}."
        lines.append(f"- {row['task']} ({row['device']}, {row['commit']}): {commands}.{note}")
    return [*lines, ""]


def write_picture(evaluations, folder):
    """Small frontiers of all tasks: score against the share of the large gear's FLOPs."""
    rows = -(-len(evaluations) // COLUMNS)
    canvas = Figure(figsize=(2.6 * COLUMNS, 2.0 * rows + 0.3), layout="constrained")
    FigureCanvasAgg(canvas)
    places = list(canvas.subplots(rows, COLUMNS, squeeze=False).flat)
    for axes, (row, evaluation) in zip(places, evaluations, strict=False):
        draw_frontier(axes, row, evaluation)
    for axes in places[len(evaluations) :]:
        axes.set_axis_off()
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    canvas.supxlabel("share of the large gear's FLOPs", fontsize=9)
    canvas.savefig(folder / "frontiers.png", dpi=150)


def draw_frontier(axes, row, evaluation):
    """One task: the dial as a line, the others as marks, the paper's agents as hollow ones."""
    whole, paper = evaluation.large_flops, find(row["task"]).published
    for line in evaluation.lines():
        style = variant_style(line[0].variant)
        x, y = [setting.flops / whole for setting in line], [setting.score.mean for setting in line]
        axes.plot(x, y, marker=style.marker, color=style.colour, markersize=4, linewidth=1.4, label=line[0].label)
        axes.fill_between(
            x, *zip(*((s.mean_low, s.mean_high) for s in line), strict=True), color=style.colour, alpha=0.15
        )
    published = [("asymmetric", 1 - paper.flops_reduction, paper.asymmetric), ("large-only", 1.0, paper.large_only)]
    for name, x, (score, _) in published:
        style = variant_style(name)
        axes.plot(
            [x],
            [score],
            style.marker,
            color=style.colour,
            markerfacecolor="none",
            markersize=6,
            label=f"paper's {name}",
        )
    axes.set_title(row["task"], fontsize=8, loc="left")
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [f"{100 * share:g}%" for share in TICKS])
    axes.minorticks_off()
    axes.set_xlim(*LIMITS)
    axes.tick_params(labelsize=6.5)
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.spines[["right", "top"]].set_visible(False)
