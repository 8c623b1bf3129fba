"""Policy files that a stranger made to hurt: refused in one line, in little memory, before a number is read."""

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as parse
from safetensors.numpy import save as pack

from lowgear import LowgearError
from lowgear.policy.dial import Dial
from lowgear.policy.file import load
from tests.fixtures.weights import HEADER, KNOWN, random_policy

CODE = '0 */ __attribute__((constructor)) static void f(void) { system("touch OWNED"); } /* '


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "agent0.safetensors"
    random_policy().save(made)
    return made


def refused(path: Path) -> str:
    with pytest.raises(LowgearError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert message.isprintable()
    assert len(message) < 600
    return message.removeprefix(str(path))


def with_header(path: Path, **changes: Any) -> Path:
    tensors = parse(path.read_bytes())
    path.write_bytes(pack(tensors, {"lowgear": json.dumps(HEADER.to_json() | changes)}))
    return path


def raw_file(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("seed", -1, "seed is -1, not a whole number from 0 to 2147483647"),
        ("seed", 1.5, "seed is 1.5"),
        ("seed", 2**31, "seed is 2147483648"),
        ("seed", True, "seed is True"),
        ("seed", CODE, "seed is '0 */ __attribute__"),
        ("steps", CODE, "steps is '0 */ __attribute__"),
        ("steps", -1, "steps is -1"),
        ("steps", 2**63, "steps is 9223372036854775808"),
        ("steps", 10**100, "steps is a number of more than 60 digits"),
        ("task", 123, "task is 123, not one line of at most 200 printable letters"),
        ("task", "", "task is empty"),
        ("task", "walker\nstand", "task is 'walker\\nstand'"),
        ("task", "a" * 201, "task is 'aaa"),
        ("task", "\x1b[31mred", "task is '\\x1b[31mred'"),
        ("task", "\u202etfel", "task is '\\u202etfel'"),
        ("task", "\ud800", "task is '\\ud800'"),
        ("recipe", ["modern"], "recipe is a list of 1"),
        ("variant", {"a": 1}, "variant is an object"),
        ("variant", None, "variant is None"),
        ("layout", [["position\n", 1], ["velocity", 3]], "a key of layout is 'position\\n'"),
        ("layout", [["position", 1.0], ["velocity", 3]], "a size in layout is 1.0"),
        ("layout", [["position", -1], ["velocity", 5]], "a size in layout is -1"),
        ("layout", [["position", 1]], "layout does not have the 4 numbers of obs_dim"),
        ("layout", [["x", 0]] * 5000, "layout is a list of 5000"),
        ("boltzmann", "no", "boltzmann is 'no', not true or false"),
        ("boltzmann", 1, "boltzmann is 1"),
        ("hindsight", None, "hindsight is None"),
        ("periods", [2, 5, 10**12], "a period is 1000000000000, not a whole number from 1 to 1000000"),
        ("periods", [5, 2, 20], "periods are 5,2,20"),
        ("periods", [True, 2, 20], "a period is True"),
        ("obs_dim", 2**21, "obs_dim is 2097152"),
        ("act_dim", 0, "act_dim is 0"),
        ("master_units", 2**40, "master_units is 1099511627776"),
        ("gears", [3, 10**15], "a width in gears is 1000000000000000"),
        ("gears", [1] * 100, "gears is a list of 100, not a list of 2 to 64"),
        ("action_low", [-1.0, float("nan")], "a bound of action_low is nan"),
        ("action_low", [-1.0, 2.0], "action_low has 2, which is not below 2 of action_high"),
        ("action_high", [1.0, 1e31], "a bound of action_high is 1e+31"),
        ("action_high", [1.0, 10**400], "a bound of action_high is a number of more than 60 digits"),
        ("action_high", [1.0, True], "a bound of action_high is True"),
        ("cost_coefficient", True, "cost_coefficient is True"),
        ("cost_coefficient", 1e300, "cost_coefficient is 1e+300"),
        ("dial", [0.001, True], "an end of dial is True"),
        ("dial", [5e-324, 0.1], "dial ends at 4.94066e-324 and 0.1, too near to 0"),
        ("dial", [0.01, 0.01 + 2e-18], "cost_coefficient is 0.01, which no dial from 0.01 to 0.01 has"),
        ("dial", [1e-18, 0.1], "which no dial from 1e-18 to 0.1 has"),
        ("cost_unit", True, "cost_unit is True"),
        ("cost_unit", 1e-300, "cost_unit is 1e-300"),
        ("activation", ["tanh"], "activation is a list of 1, not tanh or relu"),
        ("forced_gear", True, "forced_gear is True"),
        ("forced_gear", 1, "forced_gear is 1, but the master of asymmetric picks"),
        ("variant", "small-only", "forced_gear is None, but small-only acts with gear 0"),
        ("variant", "large-only", "forced_gear is None, but large-only acts with gear 1"),
        ("known_prices", "no", "known_prices is 'no'"),
    ],
)
def test_every_field_has_a_type_and_a_range(path: Path, field: str, value: Any, says: str) -> None:
    message = refused(with_header(path, **{field: value}))
    assert "has a damaged policy header" in message
    assert says in message
    assert message.endswith("; train or copy it again")


def test_whole_numbers_count_as_numbers(path: Path) -> None:
    header = load(with_header(path, cost_unit=1, action_low=[-1, -2], action_high=[1, 2])).header
    assert (header.cost_unit, header.action_low, header.action_high) == (1.0, (-1.0, -2.0), (1.0, 2.0))
    assert all(type(value) is float for value in (header.cost_unit, *header.action_low))


def test_a_header_that_load_would_refuse_is_not_written(tmp_path: Path) -> None:
    policy = random_policy()
    bad = replace(policy, header=replace(HEADER, layout=(("a\nb", 4),)))
    with pytest.raises(LowgearError, match=r"could not write .*a key of layout is 'a\\nb'"):
        bad.save(tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_header_that_says_a_thing_twice(path: Path) -> None:
    text = json.dumps(HEADER.to_json())
    path.write_bytes(pack(parse(path.read_bytes()), {"lowgear": text[:-1] + ', "seed": 4}'}))
    assert "an entry is there twice" in refused(path)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_a_header_that_nests_deeply(path: Path, depth: int) -> None:
    tensors = parse(path.read_bytes())
    path.write_bytes(pack(tensors, {"lowgear": '{"task":' + "[" * depth + "]" * depth + "}"}))
    refused(path)
    raw_file(path, b'{"x":' + b"[" * depth + b"]" * depth + b"}")
    refused(path)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"[]", "its header is no object"),
        (b"{}", "not a Lowgear policy"),
        (b'{"__metadata__": 3}', "__metadata__ is 3, not an object"),
        (b'{"__metadata__": {"lowgear": 3}}', "entry 'lowgear' of its header is no text"),
        (b'{"x": 3}', "a tensor is 3, not an object"),
        (b'{"x": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}', "a tensor's dtype is 'BF16'"),
        (b'{"x": {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]}}', "an axis of a tensor is 2.0"),
        (b'{"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', "an axis of a tensor is -1"),
        (b'{"x": {"dtype": "F32", "shape": [0, 99999999999999], "data_offsets": [0, 0]}}', "an axis of a tensor"),
        (b'{"x": {"dtype": "F32", "shape": [], "data_offsets": [4, 0]}}', "does not have -4 bytes"),
        (b'{"x": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', "overlap or leave gaps"),
        (b'{"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', "declares 77 bytes but it has 69"),
        (b'{"x": {"dtype": "F32"}}', "it has no shape"),
        (b'{"\\n": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}', "a tensor's name is '\\n'"),
        (b"{" + b"1" * 5000 + b"}", "Expecting property name"),
        (b'{"x": ' + b"1" * 5000 + b"}", "Exceeds the limit"),
        (b"\xff\xfe{", "its header is no object"),
        (b'{"\xff": 1}', "can't decode byte 0xff"),
    ],
)
def test_a_list_of_tensors_that_cannot_be_right(path: Path, header: bytes, says: str) -> None:
    assert says in refused(raw_file(path, header))


@pytest.mark.parametrize("length", [0, 1, 2**20 + 1, 2**32, 2**63, 2**64 - 1])
def test_a_header_of_a_length_that_cannot_be(path: Path, length: int) -> None:
    path.write_bytes(struct.pack("<Q", length) + b"{}" * 2**20)
    assert f"its header would have {length} bytes" in refused(path)


def limited(path: Path) -> str:
    """What a process of 1.2 GB that loads the file says."""
    program = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, (1_200_000_000,) * 2)\n"
        "from lowgear import LowgearError\nfrom lowgear.policy.file import load\n"
        "try:\n    load(sys.argv[1])\nexcept LowgearError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
@pytest.mark.parametrize("wide", [50_000, 8_000])
def test_a_sparse_file_is_refused_in_little_memory(path: Path, wide: int) -> None:
    """Of 10 GB, refused by its size; of 256 MB, which is as its header says, read."""
    header = replace(HEADER, gears=(3, wide))
    declared: dict[str, Any] = {"__metadata__": {"lowgear": json.dumps(header.to_json())}}
    place = 0
    shapes = {name: list(value.shape) for name, value in parse(path.read_bytes()).items()}
    shapes |= {"gear1.0.weight": [4, wide], "gear1.0.bias": [wide], "gear1.1.weight": [wide, wide]}
    shapes |= {"gear1.1.bias": [wide], "gear1.2.weight": [wide, 4]}
    for name, shape in shapes.items():
        size = 4 * int(np.prod(shape))
        declared[name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    raw_file(path, declared)
    os.truncate(path, path.stat().st_size + place)
    too_large = f"has {path.stat().st_size:,} bytes, more than the 1,073,741,824 that a policy file may have"
    assert limited(path) == (f"{path} {too_large}; train or copy it again" if wide > 10_000 else "")


def test_a_small_file_that_declares_a_large_tensor(path: Path) -> None:
    raw_file(path, {"x": {"dtype": "F32", "shape": [2**20, 2**20], "data_offsets": [0, 2**42]}}, b"\0" * 8)
    assert "declares 4398046511" in refused(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no such policy file" in refused(tmp_path / "pipe")
    assert "no such policy file" in refused(Path("/dev/zero"))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_weights_that_would_overflow(path: Path, activation: str) -> None:
    tensors = parse(path.read_bytes())
    header = {"lowgear": json.dumps(replace(HEADER, activation=activation).to_json())}
    for name, size in (("gear1.0.weight", 3e38), ("master.2.bias", 3e38)):
        big = tensors | {name: np.full_like(tensors[name], size)}
        path.write_bytes(pack(big, header))
        assert f"the weights of {name.split('.')[0]} are so large that sums overflow" in refused(path)
    large = {name: value * np.float32(100) for name, value in tensors.items()}
    path.write_bytes(pack(large, header))
    assert load(path).header.activation == activation


def test_a_tariff_that_would_overflow(path: Path) -> None:
    random_policy(KNOWN).save(path)
    tensors = parse(path.read_bytes())
    tensors["master.tariff"][0] = 1e30
    path.write_bytes(pack(tensors, {"lowgear": json.dumps(KNOWN.to_json())}))
    assert "holds values that no choice can cost" in refused(path)


def test_a_tensor_with_an_odd_name_is_named_on_one_line(path: Path) -> None:
    tensors = parse(path.read_bytes()) | {"é" * 150: np.zeros(1, np.float32)}
    path.write_bytes(pack(tensors, {"lowgear": json.dumps(HEADER.to_json())}))
    assert "a tensor that its header does not name: '\\xe9" in refused(path)


@pytest.mark.parametrize("ends", [(1.0, 1.0 + 1e-12), (1e-10, 1e10), (-1e15, 1e-10), (-1.0, 0.0), (2.0, 1.0)])
def test_dials_that_cannot_turn(ends: tuple[float, float]) -> None:
    assert not Dial(*ends).holds(ends[1])
