"""TensorBoard's files, read by hand; `make test-trackers` reads them as TensorBoard does."""

import struct

import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.training.trackers.described import run_name
from lowgear.training.trackers.protocol import TrackedRun
from lowgear.training.trackers.tensorboard import SCORES, TensorBoard


def read_events(directory):
    """TensorBoard's records: length, its checksum, the event, its checksum."""
    (file,) = directory.iterdir()
    data, found = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return found


def test_its_runs_say_what_the_agents_are_and_have_hparams(tmp_path):
    config = resolve(
        find("reacher-easy"), steps=64, seeds=(0, 7), variants=("asymmetric", "large-only"), overrides={"batch": 64}
    )
    names = [run_name(config, agent) for agent in range(4)]
    assert names == [
        "agent0-asymmetric-seed0-relative2",
        "agent1-asymmetric-seed7-relative2",
        "agent2-large-only-seed0",
        "agent3-large-only-seed7",
    ]
    fixed = resolve(find("reacher-easy"), variants=("fixed-cost",), cost_coefficients=(0.01,))
    assert run_name(fixed, 0) == "agent0-fixed-cost-seed0-cost0.01"
    board = TensorBoard()
    board.begin(TrackedRun(tmp_path, config, {}), {})
    board.log("evaluation", [{"agent": 1, "steps": 64, "return_mean": 5.0, "variant": "asymmetric"}])
    board.end("finished")
    assert sorted(path.name for path in (tmp_path / "tensorboard").iterdir()) == names
    values = [value for event in read_events(tmp_path / "tensorboard" / names[1]) for value in event.summary.value]
    plugins = {
        v.tag: HParamsPluginData.FromString(v.metadata.plugin_data.content) for v in values if "hparams" in v.tag
    }
    assert {info.name.tag for info in plugins["_hparams_/experiment"].experiment.metric_infos} == set(SCORES)
    found = plugins["_hparams_/session_start_info"].session_start_info.hparams
    assert (found["variant"].string_value, found["seed"].number_value) == ("asymmetric", 7)
    assert (found["cost_coefficient"].number_value, found["relative"].bool_value) == (2.0, True)
    assert (found["gears"].string_value, found["recipe/batch"].number_value) == ("8,64", 64)
    assert {v.tag: v.simple_value for v in values}["evaluation/return_mean"] == 5.0


def test_a_file_that_the_disk_refused_is_followed_by_another(tmp_path):
    config = resolve(find("reacher-easy"), steps=64)
    board, folder = TensorBoard(), tmp_path / "tensorboard" / run_name(config, 0)
    board.begin(TrackedRun(tmp_path, config, {}, trains=False), {})
    folder.parent.write_text("in the way")
    line = {"agent": 0, "steps": 64, "return": 1.0}
    with pytest.raises(OSError, match="tensorboard"):
        board.log("train", [line])
    folder.parent.unlink()
    board.log("train", [line])
    board.end("stopped")
    assert [value.tag for event in read_events(folder) for value in event.summary.value] == ["train/return"]
