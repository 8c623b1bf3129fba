"""Settings of a recipe as people write them: every field can be set, and what is wrong is named."""

from dataclasses import asdict, fields

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.config.recipes import MODERN, PAPER, Recipe
from lowgear.config.run import resolve
from lowgear.config.settings import checked, from_assignments, from_file
from lowgear.config.tasks import find


def written(value) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


@pytest.mark.parametrize("recipe", [PAPER, MODERN], ids=lambda recipe: recipe.name)
def test_every_field_can_be_set_to_what_a_recipe_has(recipe: Recipe) -> None:
    known = {name: value for name, value in asdict(recipe).items() if name != "name"}
    assert from_assignments([f"{name}={written(value)}" for name, value in known.items()]) == known


def test_a_number_is_whole_where_the_field_is_and_one_of_a_list_is_a_list() -> None:
    found = from_assignments(["learning-rate=1", "periods=5", "critic_units=none", "dial=no"])
    assert found == {"learning_rate": 1.0, "periods": (5,), "critic_units": None, "dial": False}
    assert type(found["learning_rate"]) is float


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("batch", "write NAME=VALUE"),
        ("bach=3", "did you mean batch"),
        ("zzz=3", "lowgear recipes show"),
        ("name=x", "no such setting"),
        ("batch=1.5", "batch = 1.5: write a whole number"),
        ("batch=many", "write a whole number"),
        ("dial=3", "write true or false"),
        ("periods=2,x", "numbers with commas"),
        ("learning_rate=true", "write a number"),
    ],
)
def test_a_bad_assignment_is_named_with_the_remedy(assignment: str, message: str) -> None:
    with pytest.raises(LowgearError, match=message):
        from_assignments([assignment])


def test_a_setting_twice_is_an_error() -> None:
    with pytest.raises(LowgearError, match="batch is there twice"):
        from_assignments(["batch=1", "batch=2"])


def test_a_toml_file_of_settings(tmp_path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('batch = 128\nperiods = [2, 5]\nactor_activation = "relu"\n')
    assert from_file(path) == {"batch": 128, "periods": (2, 5), "actor_activation": "relu"}
    path.write_text("bach = 1\n")
    with pytest.raises(LowgearError, match=r"my.toml: bach.*did you mean batch"):
        from_file(path)
    path.write_text("batch = \n")
    with pytest.raises(LowgearError, match="not a TOML file"):
        from_file(path)
    with pytest.raises(LowgearError, match="no such file"):
        from_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("batch = " + "[" * 5000, "is not a TOML file"),
        ("batch = " + "9" * 5000, "is not a TOML file"),
        ("batch = 1" + "0" * 400, "batch 1|batch a number of more than 60 digits: write 1 or more"),
        ("discount = 1" + "0" * 400, "discount = a number of more than 60 digits: write a number"),
        ('batch = "a\\nb"', r"batch = 'a\\nb': write a whole number"),
        ('"a\\nb" = 1', r"'a\\nb': the recipe has no such setting"),
        ("batch = 1979-05-27", "batch = .*: write a whole number"),
        ("[batch]\nx = 1", "batch = an object: write a whole number"),
        ("\udc80", "is damaged"),
        ("#" * (1 << 21), "has more than the 1,048,576 bytes"),
    ],
)
def test_a_hostile_toml_file_is_refused_in_one_line(tmp_path, text: str, says: str) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(LowgearError, match=says) as caught:
        resolve(find("cartpole-swingup"), overrides=from_file(path))
    assert str(caught.value).isprintable()


def test_settings_reach_the_run_and_values_that_make_no_sense_do_not() -> None:
    config = resolve(find("cartpole-swingup"), overrides=from_assignments(["actor_every=4", "batch=64"]))
    assert (config.recipe.actor_every, config.recipe.batch) == (4, 64)
    for assignment, message in (
        ("actor_every=3", "chunks have 64"),
        ("updates_per_step=0", "updates per step 0: write 1 or more, 64 at most"),
        ("updates_per_step=65", "updates per step 65: write 1 or more, 64 at most"),
        ("learning_rate=0", "above 0"),
        ("critic_activation=gelu", "write tanh or relu"),
        ("batch=0", "write 1 or more"),
        ("discount=1", "discount 1.0: write a number from 0 to less than 1"),
        ("master_discount=nan", "write a number from 0 to 1"),
        ("target_rate=-1", "target rate -1.0: write a number from 0 to 1"),
        ("explore_share=-1", "write a number from 0 to 1"),
        ("explore_last=7", "write a number from 0 to 1"),
        ("random_steps=-5", "random steps -5: write 0 or more"),
        ("target_entropy=nan", "target entropy nan: write a finite number"),
        ("goal_reward_shift=inf", "write a finite number"),
        ("first_alpha=0", "first alpha 0.0: write a number above 0"),
        ("actor_learning_rate=-1", "above 0"),
    ):
        with pytest.raises(LowgearError, match=message):
            resolve(find("cartpole-swingup"), overrides=from_assignments([assignment]))


def test_numbers_of_numpy_are_numbers() -> None:
    found = checked({"batch": np.int64(64), "learning_rate": np.float64(0.5), "periods": np.array([2, 5])})
    assert found == {"batch": 64, "learning_rate": 0.5, "periods": (2, 5)}
    assert [type(value) for value in found.values()] == [int, float, tuple]
    with pytest.raises(LowgearError, match="write a whole number"):
        checked({"batch": np.float64(64)})


def test_every_setting_says_what_it_is() -> None:
    assert all(field.metadata["doc"] for field in fields(Recipe) if field.name != "name")
    assert checked({}) == {}
