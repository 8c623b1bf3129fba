"""The NumPy runtime against the JAX networks; policy files come back whole or are refused in one line."""

import itertools
import json
import struct
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as pack

from lowgear import networks, runtime
from lowgear.errors import LowgearError
from lowgear.runtime import Policy, PolicyHeader, Shifter, Weights

OBS, ACT, POPULATION, ENVS = 4, 2, 3, 6
GEARS, MASTER = (3, 5), 7
HEADER = PolicyHeader(
    task="walker-stand",
    recipe="modern",
    variant="asymmetric",
    seed=3,
    cost_coefficient=0.01,
    steps=1000,
    obs_dim=OBS,
    act_dim=ACT,
    layout=(("position", 1), ("velocity", 3)),
    action_low=(-1.0, -2.0),
    action_high=(1.0, 2.0),
    gears=GEARS,
    master_units=MASTER,
    period=5,
    activation="tanh",
    forced_gear=None,
    boltzmann=False,
    hindsight=False,
)


def random_weights(population: int = POPULATION, seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)

    def layers(*sizes: int):
        return [
            (
                rng.normal(size=(population, a, b)).astype(np.float32),
                rng.normal(size=(population, b)).astype(np.float32),
            )
            for a, b in itertools.pairwise(sizes)
        ]

    gears = tuple(layers(OBS, units, units, 2 * ACT) for units in GEARS)
    return Weights(gears, layers(OBS, MASTER, MASTER, len(GEARS)))


def batch(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    observation, noise = rng.normal(size=(POPULATION, ENVS, OBS)), rng.normal(size=(POPULATION, ENVS, ACT))
    return observation.astype(np.float32), noise.astype(np.float32)


def assert_same(one: Weights, two: Weights) -> None:
    leaves, tree = jax.tree.flatten(jax.tree.map(np.asarray, (tuple(map(tuple, one.gears)), tuple(one.master))))
    other, other_tree = jax.tree.flatten(jax.tree.map(np.asarray, (tuple(map(tuple, two.gears)), tuple(two.master))))
    assert tree == other_tree
    for a, b in zip(leaves, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def jax_actions():
    def sample(layers, observation, noise, activation):
        return networks.sample_action(
            tuple(networks.Layer(*layer) for layer in layers), observation, noise, activation
        )[0]

    return jax.jit(jax.vmap(sample, in_axes=(0, 0, 0, None)), static_argnums=3)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("noisy", [False, True])
def test_actions_equal_those_of_jax_and_each_env_gets_its_gear(jax_actions, activation: str, noisy: bool) -> None:
    weights, (observation, noise) = random_weights(), batch()
    gear = np.random.default_rng(2).integers(0, 2, (POPULATION, ENVS)).astype(np.int32)
    assert 0 < gear.sum() < gear.size
    kept = observation.copy()
    found = runtime.act(weights.gears, observation, gear, activation, noise if noisy else None)
    each = np.stack([jax_actions(g, observation, noise if noisy else 0 * noise, activation) for g in weights.gears])
    expected = np.take_along_axis(each, gear[None, ..., None], axis=0)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(each[0] - each[1]).min(axis=-1).max() > 0.01  # the gears disagree
    assert found.dtype == np.float32
    np.testing.assert_array_equal(observation, kept)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_master_values_equal_those_of_jax(activation: str) -> None:
    weights, (observation, _) = random_weights(), batch()
    found = runtime.mlp(weights.master, observation, activation)
    layers = tuple(networks.Layer(*map(jnp.asarray, layer)) for layer in weights.master)
    expected = jax.vmap(lambda master, x: networks.mlp(master, x, activation))(layers, observation)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_log_std_bounds_are_those_of_training() -> None:
    assert (runtime.LOG_STD_MIN, runtime.LOG_STD_MAX) == (networks.LOG_STD_MIN, networks.LOG_STD_MAX)


@pytest.mark.parametrize("number", range(2))
def test_all_in_one_gear(number: int) -> None:
    weights, (observation, _) = random_weights(), batch()
    gear = np.full((POPULATION, ENVS), number, np.int32)
    mean = runtime.mlp(weights.gears[number], observation, "tanh")[..., :ACT]
    np.testing.assert_array_equal(runtime.act(weights.gears, observation, gear, "tanh"), np.tanh(mean))


def test_shifter_holds_a_pick_for_its_period_or_until_the_end() -> None:
    shifter = Shifter((1, 2), 3)
    ends = [(0, 0), (0, 1), (0, 0), (0, 0), (0, 0)]
    due, closed = [], []
    for ended in ends:
        due.append(shifter.due[0].tolist())
        done = shifter.advance(np.array([ended], bool))
        closed.append(done[0].tolist())
        shifter.release(done)
    assert due == [[True, True], [False, False], [False, True], [True, False], [False, False]]
    assert closed == [[False, False], [False, True], [True, False], [False, False], [False, True]]


def test_boltzmann_frequencies_are_the_softmax() -> None:
    values = np.array([[0.0, 1.0, -2.0], [1000.0, 1001.0, 999.0]], np.float32)
    grid = 50_000
    chance = np.tile((np.arange(grid, dtype=np.float32) + 0.5) / grid, (2, 1))
    picked = runtime.boltzmann(np.repeat(values[:, None], grid, axis=1), chance)
    assert picked.dtype == np.int32
    weight = np.exp(values.astype(np.float64) - values.max(axis=-1, keepdims=True))
    for found, expected in zip(picked, weight / weight.sum(axis=-1, keepdims=True), strict=True):
        np.testing.assert_allclose(np.bincount(found, minlength=3) / grid, expected, atol=1e-4)


def test_boltzmann_stays_in_range_at_the_ends_of_chance() -> None:
    values = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    top = np.full(1000, np.nextafter(np.float32(1), np.float32(0)), np.float32)
    assert set(runtime.boltzmann(values, top)) == {2}
    assert set(runtime.boltzmann(values, np.zeros(1000, np.float32))) == {0}


def test_boltzmann_never_picks_what_has_no_chance() -> None:
    values = np.array([[-1000.0, 0.0, 0.0]], np.float32)
    assert runtime.boltzmann(values, np.zeros(1, np.float32)) == 1


def test_stack_and_take_undo_each_other() -> None:
    weights = random_weights()
    parts = [runtime.take(weights, agent) for agent in range(POPULATION)]
    assert parts[1].master[0][0].shape == (1, OBS, MASTER)
    assert_same(runtime.stack(parts), weights)
    assert_same(runtime.stack(parts[1:2]), parts[1])


@pytest.fixture
def policy_path(tmp_path: Path) -> Path:
    path = tmp_path / "agent0.safetensors"
    Policy(HEADER, runtime.take(random_weights(), 1)).save(path)
    return path


@pytest.mark.parametrize("header", [HEADER, replace(HEADER, forced_gear=1, boltzmann=True, hindsight=True)])
def test_save_and_load_round_trip(tmp_path: Path, header: PolicyHeader) -> None:
    weights = runtime.take(random_weights(), 1)
    path = tmp_path / "policy.safetensors"
    Policy(header, weights).save(path)
    loaded = runtime.load(str(path))
    assert loaded.header == header
    assert_same(loaded.weights, weights)
    assert [p.name for p in tmp_path.iterdir()] == ["policy.safetensors"]
    observation, gear = batch()[0][:1], np.ones((1, ENVS), np.int32)
    np.testing.assert_array_equal(
        runtime.act(loaded.weights.gears, observation, gear, "tanh"),
        runtime.act(weights.gears, observation, gear, "tanh"),
    )


def test_saving_replaces_a_file_and_says_when_it_cannot(policy_path: Path) -> None:
    Policy(replace(HEADER, seed=9), runtime.take(random_weights(), 2)).save(policy_path)
    assert runtime.load(policy_path).header.seed == 9
    for place in (policy_path.parent / "missing" / "x.safetensors", policy_path.parent):
        with pytest.raises(LowgearError, match="could not write") as caught:
            Policy(HEADER, runtime.take(random_weights(), 1)).save(place)
        assert str(place) in str(caught.value)
    assert runtime.load(policy_path).header.seed == 9


def refused(path: Path) -> str:
    """What `load` says to the person at the keyboard: one line that names the file."""
    with pytest.raises(LowgearError) as caught:
        runtime.load(path)
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
    text = header if isinstance(header, str) else json.dumps(asdict(HEADER) if header is None else header)
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
            runtime.load(policy_path)  # a digit of the seed, a letter of the task: nothing to notice
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


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_number(policy_path: Path, version: object) -> None:
    rewrite(policy_path, header=asdict(HEADER) | {"format": version})
    message = refused(policy_path)
    assert str(version) in message
    assert "format 1" in message


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '"text"', "{}", "[" * 100_000])
def test_header_that_is_no_header(policy_path: Path, text: str) -> None:
    rewrite(policy_path, header=text)
    refused(policy_path)


@pytest.mark.parametrize("key", sorted(asdict(HEADER)))
def test_header_with_an_entry_missing(policy_path: Path, key: str) -> None:
    rewrite(policy_path, header={k: v for k, v in asdict(HEADER).items() if k != key})
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
        ("period", 0),
        ("period", "5"),
        ("layout", [["position", 1]]),
        ("action_low", [-1.0]),
    ],
)
def test_header_that_does_not_fit(policy_path: Path, key: str, value: object) -> None:
    rewrite(policy_path, header=asdict(HEADER) | {key: value})
    refused(policy_path)


def test_a_file_cannot_run_code(policy_path: Path) -> None:
    import pickle

    policy_path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    refused(policy_path)


def test_importing_the_runtime_pulls_in_no_jax() -> None:
    code = "import lowgear.runtime, sys; assert 'jax' not in sys.modules and 'optax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
