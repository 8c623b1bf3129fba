import json
from dataclasses import fields, replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from lowgear import LowgearError
from lowgear.baselines.demonstrations import Demonstrations, load, of_trajectories
from tests.fixtures.teachers import origin, trajectory, valley_demonstrations


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "demonstrations.safetensors"
    valley_demonstrations(3, 4).save(path)
    return path


def damage(path, header=None, **tensors):
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    origin = json.loads(metadata["lowgear-demonstrations"]) | (header or {})
    save_file(load_file(path) | tensors, path, {"lowgear-demonstrations": json.dumps(origin)})


def test_trajectories_of_different_lengths_lie_end_to_end():
    found = of_trajectories(origin(), [trajectory([[1.0]] * 2, [[0.5]] * 2), trajectory([[2.0]] * 3, [[-0.5]] * 3)])
    assert found.bounds.tolist() == [0, 2, 5]
    assert found.observations[:, 0].tolist() == [1, 1, 2, 2, 2]
    assert found.actions[:, 0].tolist() == [0.5, 0.5, -0.5, -0.5, -0.5]
    assert (len(found), found.trajectories) == (5, 2)


def test_what_was_saved_comes_back_exactly(saved):
    before, after = valley_demonstrations(3, 4), load(saved)
    assert after.origin == before.origin
    for field in fields(Demonstrations)[1:]:
        mine, theirs = getattr(before, field.name), getattr(after, field.name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def test_the_file_reads_without_lowgear(saved):
    tensors = load_file(saved)
    assert tensors["observations"].shape == tensors["actions"].shape == (12, 1)
    assert tensors["bounds"].tolist() == [0, 4, 8, 12]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": np.zeros(11, np.float32)}, "rewards should be float32 \\(12,\\) but is float32 \\(11,\\)"),
        ({"actions": np.full((12, 1), 1.5, np.float32)}, "actions leave \\[-1, 1\\]"),
        ({"actions": np.full((12, 1), np.nan, np.float32)}, "not finite"),
        ({"bounds": np.array([0, 4, 4, 12])}, "bounds do not cut 12 rows"),
        ({"bounds": np.array([0, 4, 8, 13])}, "bounds do not cut 12 rows"),
        ({"header": {"layout": [["", 2]]}}, "observations should be"),
        ({"header": {"format": 9}}, "format 9"),
        ({"header": {"action_low": None}}, "damaged header"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(saved, change, message):
    damage(saved, **change)
    with pytest.raises(LowgearError, match=message) as error:
        load(saved)
    assert str(saved) in str(error.value)


def test_half_a_file_another_file_and_no_file_are_errors(saved, tmp_path):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LowgearError, match="not a whole safetensors file"):
        load(saved)
    save_file({"x": np.zeros(1)}, saved)
    with pytest.raises(LowgearError, match="holds no demonstrations"):
        load(saved)
    with pytest.raises(LowgearError, match="no such file"):
        load(tmp_path / "none")


def test_nothing_is_left_behind_where_the_file_cannot_be_written(tmp_path):
    with pytest.raises(LowgearError, match="could not write"):
        valley_demonstrations(1, 2).save(tmp_path / "missing" / "file")
    assert list(tmp_path.iterdir()) == []


def test_no_trajectory_is_an_error():
    with pytest.raises(LowgearError, match="at least one"):
        of_trajectories(replace(origin()), [])


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({"task": "a\nb"}, r"task is 'a\\nb'"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"steps": "1"}, "steps is '1'"),
        ({"units": 2**30}, "units is 1073741824"),
        ({"recorded_with_seed": -1}, "recorded_with_seed is -1"),
        ({"layout": [["", "1"]]}, "a size in layout is '1'"),
        ({"layout": [["", 0]]}, "the size of an observation is 0"),
        ({"action_low": [True]}, "a bound of action_low is True"),
        ({"action_low": [9.0]}, "action_low has 9, which is not below"),
    ],
)
def test_every_entry_of_the_header_has_a_type_and_a_range(saved, header, says):
    damage(saved, header)
    with pytest.raises(LowgearError, match=f"has a damaged header .*{says}.*; record it again"):
        load(saved)


def test_a_tensor_too_many_a_bool_that_is_none_and_a_file_beyond_all_measure(saved):
    whole = saved.read_bytes()
    damage(saved, extra=np.zeros(1))
    with pytest.raises(LowgearError, match="holds a tensor of another kind of file: 'extra'"):
        load(saved)
    place = whole.rindex(valley_demonstrations(3, 4).terminated.tobytes())
    saved.write_bytes(whole[:place] + b"\2" + whole[place + 1 :])
    with pytest.raises(LowgearError, match="neither true nor false"):
        load(saved)
    with saved.open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(LowgearError, match="1,099,511,627,776 bytes, more than"):
        load(saved)
