"""The 16 published tasks, and how a task is named."""

import pytest

from lowgear import LowgearError
from lowgear.config import paper, tasks
from lowgear.config.gears import arrange
from lowgear.policy.gears import gears_of


def test_sixteen_tasks_in_the_papers_order() -> None:
    names = list(tasks.published_tasks())
    assert len(names) == 16
    assert names[0] == "MountainCarContinuous-v0"
    assert names[-1] == "reacher-easy"
    assert names == list(paper.tables()["tasks"])


def test_presets_are_the_papers() -> None:
    swimmer = tasks.find("Swimmer-v3")
    assert (swimmer.env_id, swimmer.obs_dim, swimmer.act_dim) == ("Swimmer-v3", 8, 2)
    assert (swimmer.gears, swimmer.cost_coefficient, swimmer.steps) == ((8, 256), 0.0001, 2_500_000)
    assert tasks.find("MountainCarContinuous-v0").steps == 100_000
    assert [name for name, task in tasks.published_tasks().items() if task.hindsight] == [
        "FetchPush-v1",
        "FetchSlide-v1",
        "FetchPickAndPlace-v1",
    ]
    assert sum(task.boltzmann for task in tasks.published_tasks().values()) == 7


def test_published_figures_are_means_of_seeds() -> None:
    walker = tasks.find("walker-stand").published
    assert walker is not None
    assert walker.asymmetric == (943.8, 23.3)  # ablation table: the mean of five seeds, not the best one
    assert walker.large_share == pytest.approx((0.197, 0.098))
    assert walker.flops_reduction == pytest.approx(0.823)
    bipedal = tasks.find("BipedalWalker-v3").published
    assert bipedal is not None
    assert bipedal.asymmetric == (281.7, 24.6)
    assert bipedal.random == -101.4


def test_every_gear_preset_is_valid() -> None:
    for task in tasks.published_tasks().values():
        assert task.gears is not None
        assert arrange(task.gears, task) == (gears_of(task.gears), ())


@pytest.mark.parametrize("name", ["walker-stand", "Walker-Stand", "WALKER-STAND"])
def test_names_ignore_case(name: str) -> None:
    assert tasks.find(name).name == "walker-stand"


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("walkr-stand", "walker-stand"), ("Swimmer", "Swimmer-v3"), ("fetchpush", "FetchPush-v1")],
)
def test_unknown_name_suggests_the_nearest(name: str, suggestion: str) -> None:
    with pytest.raises(LowgearError, match=f"unknown task '{name}'.*did you mean.*{suggestion}"):
        tasks.find(name)


def test_name_like_nothing_points_to_the_list() -> None:
    with pytest.raises(LowgearError, match="`lowgear tasks` lists them"):
        tasks.find("qqqqqqqq")


@pytest.mark.parametrize(
    ("name", "source", "env_id"),
    [
        ("gym:Pendulum-v1", "gym", "Pendulum-v1"),
        ("GYM:Pendulum-v1", "gym", "Pendulum-v1"),
        ("dmc:walker-walk", "dmc", "walker-walk"),
        ("envpool:Ant-v4", "envpool", "Ant-v4"),
        ("gym:my_package:MyEnv-v0", "gym", "my_package:MyEnv-v0"),
    ],
)
def test_other_environments_are_named_by_source(name: str, source: str, env_id: str) -> None:
    task = tasks.find(name)
    assert (task.source, task.env_id) == (source, env_id)
    assert task.gears is None
    assert task.published is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gymm:Pendulum-v1", "unknown source 'gymm'.*gym:"),
        ("gym:", "names no environment"),
        ("dmc:walker", "is not dmc:domain-task"),
    ],
)
def test_malformed_names(name: str, message: str) -> None:
    with pytest.raises(LowgearError, match=message):
        tasks.find(name)
