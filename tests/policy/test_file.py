"""Policy files come back whole or are refused in one line."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as pack

from lowgear import LowgearError
from lowgear.policy.dial import Dial
from lowgear.policy.file import Policy, PolicyHeader
from lowgear.policy.file import load as load_policy
from lowgear.policy.networks import take
from tests.fixtures.weights import ENVS, HEADER, KNOWN, PLAIN, assert_same, batch, controller_of, random_weights

PAYS_NOTHING = replace(HEADER, dial=Dial(0.0, 0.0), cost_coefficient=0.0)


@pytest.fixture
def policy_path(tmp_path: Path) -> Path:
    path = tmp_path / "agent0.safetensors"
    Policy(HEADER, take(random_weights(), 1)).save(path)
    return path


@pytest.mark.parametrize(
    "header",
    [
        HEADER,
        PLAIN,
        replace(HEADER, dial=Dial(0.01, 0.01)),
        replace(PAYS_NOTHING, variant="large-only", forced_gear=1, boltzmann=True, hindsight=True),
        replace(HEADER, cost_coefficient=0.1),
        replace(KNOWN, dial=Dial(-1.0, 10.0), cost_coefficient=-0.5, cost_unit=0.25),
        replace(KNOWN, observation_names=tuple("abcdefgh"[: KNOWN.obs_dim]), action_names=("x",) * KNOWN.act_dim),
        KNOWN,
        replace(PAYS_NOTHING, known_prices=True, variant="small-only", forced_gear=0),
    ],
    ids=[
        "dial",
        "no dial",
        "equal ends",
        "never pays",
        "at an end",
        "relative, below 0",
        "names",
        "known prices",
        "known prices, never pays",
    ],
)
def test_save_and_load_round_trip(tmp_path: Path, header: PolicyHeader) -> None:
    weights = take(random_weights(header=header), 1)
    path = tmp_path / "policy.safetensors"
    Policy(header, weights).save(path)
    loaded = load_policy(str(path))
    assert loaded.header == header
    assert isinstance(loaded.header.dial, Dial | None)
    assert_same(loaded.weights, weights)
    assert [p.name for p in tmp_path.iterdir()] == ["policy.safetensors"]
    observation = batch()[0][:1]
    actions = [controller_of(each, ENVS).act_with(1, observation) for each in (loaded.weights, weights)]
    np.testing.assert_array_equal(*actions)


def test_saving_replaces_a_file_and_says_when_it_cannot(policy_path: Path) -> None:
    Policy(replace(HEADER, seed=9), take(random_weights(), 2)).save(policy_path)
    assert load_policy(policy_path).header.seed == 9
    for place in (policy_path.parent / "missing" / "x.safetensors", policy_path.parent):
        with pytest.raises(LowgearError, match="could not write") as caught:
            Policy(HEADER, take(random_weights(), 1)).save(place)
        assert str(place) in str(caught.value)
    assert load_policy(policy_path).header.seed == 9


def refused(path: Path) -> str:
    """What `load` says to the person at the keyboard: one line that names the file."""
    with pytest.raises(LowgearError) as caught:
        load_policy(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


def rewrite(path: Path, tensors: dict[str, np.ndarray] | None = None, header: dict | str | None = None) -> None:
    """The file again with other tensors or another header."""
    data = path.read_bytes()
    tensors = parse(data) if tensors is None else tensors
    text = header if isinstance(header, str) else json.dumps(HEADER.to_json() if header is None else header)
    path.write_bytes(pack(tensors, {"lowgear": text}))


def test_missing_file_and_directory(tmp_path: Path) -> None:
    assert "no such policy file" in refused(tmp_path / "nothing.safetensors")
    refused(tmp_path)


def test_truncated_at_every_length(policy_path: Path) -> None:
    data = policy_path.read_bytes()
    for length in [*range(0, len(data), 97), 7, 8, 9, len(data) - 1]:
        policy_path.write_bytes(data[:length])
        refused(policy_path)
    policy_path.write_bytes(data + b"\0")
    refused(policy_path)


def test_not_a_safetensors_file(policy_path: Path) -> None:
    for data in (b"hello", b"\x80\x04\x95" + b"x" * 100, b"PK\x03\x04" + b"\0" * 50, struct.pack("<Q", 2**63) + b"{}"):
        policy_path.write_bytes(data)
        assert "not a whole safetensors file" in refused(policy_path)


def test_another_safetensors_file(policy_path: Path) -> None:
    for metadata in (None, {"format": "pt"}):
        policy_path.write_bytes(pack({"weight": np.zeros(3, np.float32)}, metadata))
        assert "not a Lowgear policy" in refused(policy_path)


def test_any_flipped_bit_of_the_header_loads_or_is_refused(policy_path: Path) -> None:
    data = policy_path.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    messages = []
    for place in range(end):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 7
        policy_path.write_bytes(flipped)
        try:
            load_policy(policy_path)  # a digit of the seed, a letter of the task: nothing to notice
        except LowgearError as error:
            messages.append(str(error))
    assert len(messages) > end / 2
    assert all(str(policy_path) in message for message in messages)


@pytest.mark.parametrize("name", ["gear0.0.weight", "gear1.2.bias", "master.1.weight"])
@pytest.mark.parametrize("damage", ["missing", "shape", "transposed", "float64", "float16", "nan", "inf"])
def test_damaged_tensor_is_named(policy_path: Path, name: str, damage: str) -> None:
    tensors = parse(policy_path.read_bytes())
    tensor = tensors[name].copy()
    if damage == "missing":
        del tensors[name]
    elif damage == "shape":
        tensors[name] = np.concatenate([tensor, tensor])
    elif damage == "transposed":
        tensors[name] = np.ascontiguousarray(tensor.T)[..., None]
    elif damage in ("float64", "float16"):
        tensors[name] = tensor.astype(damage)
    else:
        tensor.flat[-1] = float(damage)
        tensors[name] = tensor
    rewrite(policy_path, tensors)
    assert name in refused(policy_path)


def test_tensor_of_a_kind_that_numpy_has_not(policy_path: Path) -> None:
    data = policy_path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    header["extra"] = {"dtype": "BF16", "shape": [2], "data_offsets": [len(data) - 8 - length, len(data) - 4 - length]}
    text = json.dumps(header).encode()
    policy_path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :] + b"\0" * 4)
    refused(policy_path)


def test_extra_tensor(policy_path: Path) -> None:
    rewrite(policy_path, parse(policy_path.read_bytes()) | {"gear2.0.weight": np.zeros((2, 2), np.float32)})
    assert "gear2.0.weight" in refused(policy_path)


@pytest.mark.parametrize("version", [0, 1, 5, "2", None])
def test_another_format_number(policy_path: Path, version: object) -> None:
    rewrite(policy_path, header=HEADER.to_json() | {"format": version})
    message = refused(policy_path)
    assert str(version) in message
    assert "reads 2, 3 and 4" in message


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"text"', "{}", "[" * 100_000])
def test_header_that_is_no_header(policy_path: Path, text: str) -> None:
    rewrite(policy_path, header=text)
    refused(policy_path)


@pytest.mark.parametrize("key", sorted(set(HEADER.to_json()) - {"cost_unit", "observation_names", "action_names"}))
def test_header_with_an_entry_missing(policy_path: Path, key: str) -> None:
    rewrite(policy_path, header={k: v for k, v in HEADER.to_json().items() if k != key})
    refused(policy_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("obs_dim", 5),
        ("obs_dim", "4"),
        ("obs_dim", None),
        ("act_dim", 3),
        ("act_dim", None),
        ("gears", [3]),
        ("gears", [3, 5, 7]),
        ("gears", [3, None]),
        ("gears", []),
        ("gears", 3),
        ("master_units", 8),
        ("layout", 3),
        ("layout", [["position", "one"]]),
        ("action_low", None),
        ("activation", "sigmoid"),
        ("activation", None),
        ("forced_gear", 2),
        ("forced_gear", "large"),
        ("periods", [0, 5, 20]),
        ("periods", [2, 5]),
        ("periods", [2, 5, 20, 40]),
        ("periods", [2, 5, "20"]),
        ("periods", [2, 5, 20.5]),
        ("periods", []),
        ("periods", 5),
        ("cost_coefficient", -0.01),
        ("cost_coefficient", float("nan")),
        ("cost_coefficient", float("inf")),
        ("cost_coefficient", "0.01"),
        ("cost_coefficient", None),
        ("cost_coefficient", 0.2),  # outside the dial
        ("cost_coefficient", 0.0),
        ("dial", None),  # the master has an input for it
        ("dial", []),
        ("dial", [0.01]),
        ("dial", [0.001, 0.01, 0.1]),
        ("dial", 0.01),
        ("dial", "ab"),
        ("dial", ["0.001", "0.1"]),
        ("dial", [None, 0.1]),
        ("dial", [0.1, 0.001]),
        ("dial", [0.02, 0.1]),
        ("dial", [-0.1, -0.001]),
        ("dial", [-0.1, 0.0]),  # nothing of it is above 0
        ("dial", [float("-inf"), 0.1]),
        ("dial", [0.001, float("inf")]),
        ("dial", [float("nan"), 0.1]),
        ("dial", {"low": 0.001, "high": 0.1}),
        ("cost_unit", 0.0),
        ("observation_names", ["angle"]),
        ("observation_names", "angle"),
        ("observation_names", ["a\nb"] * HEADER.obs_dim),
        ("observation_names", [""] * HEADER.obs_dim),
        ("action_names", [1] * HEADER.act_dim),
        ("action_names", ["torque"] * (HEADER.act_dim + 1)),
        ("cost_unit", -0.5),
        ("cost_unit", True),
        ("cost_unit", "0.5"),
        ("cost_unit", float("nan")),
        ("cost_unit", float("inf")),
        ("layout", [["position", 1]]),
        ("action_low", [-1.0]),
        ("known_prices", True),  # the master has an input for the position
        ("known_prices", 0),
        ("known_prices", None),
        ("known_prices", "no"),
    ],
)
def test_header_that_does_not_fit(policy_path: Path, key: str, value: object) -> None:
    rewrite(policy_path, header=HEADER.to_json() | {key: value})
    refused(policy_path)


def test_a_dial_on_a_master_that_has_no_input_for_it(tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    Policy(PLAIN, take(random_weights(header=PLAIN), 0)).save(path)
    rewrite(path, header=PLAIN.to_json() | {"dial": [0.001, 0.1]})
    assert "master.0.weight" in refused(path)


def test_a_file_cannot_run_code(policy_path: Path) -> None:
    import pickle

    policy_path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    refused(policy_path)


def test_files_from_before_relative_coefficients_are_read_and_have_none(policy_path: Path) -> None:
    rewrite(policy_path, header={key: value for key, value in HEADER.to_json().items() if key != "cost_unit"})
    loaded = load_policy(policy_path).header
    assert (loaded.cost_unit, loaded.relative_coefficient) == (None, None)
    assert loaded == HEADER


def test_a_relative_coefficient_is_the_coefficient_in_cost_units(policy_path: Path) -> None:
    unit = 0.1 / 3  # a tenth of it, and back, is not exactly a tenth
    relative = replace(HEADER, dial=Dial(-1.0, 10.0).times(unit), cost_coefficient=0.1 * unit, cost_unit=unit)
    Policy(relative, take(random_weights(), 1)).save(policy_path)
    policy = load_policy(policy_path)
    assert policy.header.relative_coefficient == 0.1
    assert policy.at(-unit).header.relative_coefficient == -1
    assert policy.at(3 * unit).header.relative_coefficient == 3
    with pytest.raises(LowgearError, match="outside"):
        policy.at(-1.001 * unit)


@pytest.fixture
def known_path(tmp_path: Path) -> Path:
    path = tmp_path / "known.safetensors"
    Policy(KNOWN, take(random_weights(header=KNOWN), 1)).save(path)
    return path


def test_a_tariff_comes_back_and_a_policy_without_one_has_none(known_path: Path, policy_path: Path) -> None:
    loaded, saved = load_policy(known_path), take(random_weights(header=KNOWN), 1)
    assert loaded.header == KNOWN
    assert loaded.weights.tariff is not None
    assert saved.tariff is not None
    for found, wanted in zip(loaded.weights.tariff, saved.tariff, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype == np.float32
    assert load_policy(policy_path).weights.tariff is None


def test_files_from_before_tariffs_are_read_and_have_none(policy_path: Path, known_path: Path) -> None:
    before = {key: value for key, value in HEADER.to_json().items() if key != "known_prices"} | {"format": 2}
    rewrite(policy_path, header=before)
    loaded = load_policy(policy_path)
    assert not loaded.header.known_prices
    assert loaded.weights.tariff is None
    # Nor may they claim one.
    rewrite(known_path, header=KNOWN.to_json() | {"format": 2})
    refused(known_path)


@pytest.mark.parametrize(
    ("each", "wrong"),
    [
        (np.zeros(3, np.float32), "should be float32 (6,) but is float32 (3,)"),
        (np.zeros((1, 6), np.float32), "should be float32 (6,) but is float32 (1, 6)"),
        (np.zeros(6, np.float64), "should be float32 (6,) but is float64 (6,)"),
        (np.array([0, 1, 2, 3, 4, -1], np.float32), "holds values that no choice can cost"),
        (np.array([0, 1, 2, 3, 4, np.nan], np.float32), "holds values that no choice can cost"),
        (np.array([0, 1, 2, 3, 4, np.inf], np.float32), "holds values that no choice can cost"),
    ],
)
def test_a_tariff_that_cannot_be_right_is_refused(known_path: Path, each: np.ndarray, wrong: str) -> None:
    rewrite(known_path, parse(known_path.read_bytes()) | {"master.tariff": each}, KNOWN.to_json())
    assert f"master.tariff {wrong}" in refused(known_path)


def test_known_prices_need_their_tariff(known_path: Path) -> None:
    tensors = parse(known_path.read_bytes())
    del tensors["master.tariff"]
    rewrite(known_path, tensors, KNOWN.to_json())
    assert "master.tariff should be float32 (6,) but is missing" in refused(known_path)


@pytest.mark.parametrize("header", [HEADER, PLAIN], ids=["dial", "no dial"])
def test_a_tariff_needs_a_header_that_says_so(tmp_path: Path, header: PolicyHeader) -> None:
    path = tmp_path / "learned.safetensors"
    Policy(header, take(random_weights(header=header), 1)).save(path)
    each = np.zeros(len(header.gears) * len(header.periods), np.float32)
    rewrite(path, parse(path.read_bytes()) | {"master.tariff": each}, header.to_json())
    assert "holds master.tariff, but its header says that its master learned prices" in refused(path)


def test_known_prices_need_a_dial(tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    Policy(PLAIN, take(random_weights(header=PLAIN), 1)).save(path)
    for each in ({}, {"master.tariff": np.zeros(2, np.float32)}):
        rewrite(path, parse(path.read_bytes()) | each, PLAIN.to_json() | {"known_prices": True})
        assert "only a policy with a dial can have" in refused(path)
