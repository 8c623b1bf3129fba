"""The paper's figures for the lines of each study; empty where it prints none."""

from typing import Any

from lowgear.config.tasks import Task, paper
from lowgear.studies.setup import NOTHING, Paper

ABLATED = tuple(paper()["ablation_table"]["rows"])  # the six tasks of the main paper


def performance(task: Task) -> dict[str, Paper]:
    """Main table and supplement table: scores are means of five seeds, `best` is the main table's."""
    published = task.published
    if published is None:
        return {}
    tables = paper()
    best: dict[str, float | None] = {"small-only": None, "large-only": None}
    if task.name in tables["main_table"]["rows"]:
        small, large, ours, *_ = tables["main_table"]["rows"][task.name]
        best = {"small-only": small[0], "large-only": large[0], "asymmetric": ours[0]}
    else:
        best["asymmetric"] = tables["supplement_table"]["rows"][task.name][5]
    return {
        "small-only": Paper(published.small_only, best["small-only"]),
        "large-only": Paper(published.large_only, best["large-only"]),
        "asymmetric": Paper(published.asymmetric, best["asymmetric"], published.large_share, published.flops_reduction),
    }


def ablation(task: Task, label: str) -> Paper:
    """A line of the ablations: `ours`, `no_cost` or `separate_buffers`."""
    row = paper()["ablation_table"]["rows"].get(task.name)
    if row is None:
        return NOTHING
    score, share = row[label]
    return Paper(_pair(score), large_share=(share[0] / 100, share[1] / 100))


def two_large(task: Task) -> Paper:
    """Two large gears."""
    row = paper()["two_large_table"]["rows"].get(task.name)
    return NOTHING if row is None else Paper(_pair(row[2]))


def sizes(task: Task) -> dict[int, Paper]:
    """Scores by width: the small gear's, the large one's and the criterion's."""
    row = paper()["size_study"]["rows"].get(task.name)
    if row is None or task.gears is None:
        return {}
    return {units: Paper(_pair(score)) for units, score in zip((*task.gears, 512), row, strict=True)}


def distillation(task: Task, label: str) -> Paper:
    """A line of the distillation table, best of five seeds: `fit`, `gail` or `bc`."""
    row = paper()["distillation_table"]["rows"].get(task.name)
    return NOTHING if row is None else Paper(best=row[label][0])


def expert_data(task: Task, label: str, episodes: int) -> Paper:
    """GAIL or BC taught with so many whole episodes."""
    table = paper()["expert_data_table"]
    column = f"{label}_{episodes}"
    if task.name not in table["rows"] or column not in table["columns"]:
        return NOTHING
    return Paper(_pair(table["rows"][task.name][table["columns"].index(column)]))


def _pair(raw: Any) -> tuple[float, float]:
    mean, std = raw
    return float(mean), float(std)
