"""Whatever a file holds, every loader takes it or refuses it in one line, and a policy that is taken acts."""

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as parse
from safetensors.numpy import save as pack

from lowgear.policy.gears import read_gear
from tests.fixtures.kinds import IMPORTED
from tests.fixtures.loaders import FORGIVING, MILLION, Loader, loaders, quick_statistics
from tests.fixtures.mutations import ODD_VALUES, other_bytes
from tests.fixtures.weights import HEADER, random_policy

NAMES = (
    "policy",
    "demonstrations",
    "state",
    "config",
    "latest",
    "evaluation",
    "metrics",
    "settings",
    "tracking",
    "scores",
    "foreign",
    "status",
    "speeds",
)
FROZEN = IMPORTED.to_json()
QUICK = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
JSON = st.recursive(
    st.sampled_from(ODD_VALUES) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Loader]]:
    with quick_statistics():
        yield loaders(tmp_path_factory.mktemp("loaders") / "files")


def test_the_names_are_those_of_the_loaders(every: dict[str, Loader]) -> None:
    assert tuple(every) == NAMES == tuple(MILLION)
    assert sum(MILLION.values()) == 1_000_000


@pytest.mark.parametrize("name", NAMES)
def test_whole_files_are_taken(every: dict[str, Loader], name: str) -> None:
    assert all(every[name].try_load(data) for data in every[name].files)


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes(every: dict[str, Loader], name: str) -> None:
    loader = every[name]

    @QUICK
    @given(st.data())
    def check(data: st.DataObject) -> None:
        whole = data.draw(st.sampled_from((*loader.files, b"")))
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 40)))
        loader.try_load(whole[:start] + data.draw(st.binary(max_size=40)) + whole[end:])

    check()


@pytest.mark.parametrize("name", NAMES)
def test_any_value(every: dict[str, Loader], name: str) -> None:
    loader = every[name]

    @QUICK
    @given(st.randoms(use_true_random=False), st.integers(0, len(loader.files) - 1))
    def check(draw: random.Random, which: int) -> None:
        loader.try_load(loader.change(loader.files[which], draw))

    check()


@pytest.mark.parametrize("name", ["config", "latest", "evaluation", "tracking", "scores"])
def test_any_json(every: dict[str, Loader], name: str) -> None:
    loader = every[name]
    whole = json.loads(loader.files[0])

    @QUICK
    @given(st.dictionaries(st.sampled_from(sorted(whole)), JSON, max_size=3), JSON)
    def check(changes: dict[str, Any], instead: Any) -> None:
        loader.try_load(json.dumps(whole | changes).encode())
        loader.try_load(json.dumps(instead).encode())

    check()


@QUICK
@given(st.dictionaries(st.sampled_from(sorted(HEADER.to_json())), JSON, max_size=3), st.floats(width=32), st.data())
def check_policies(loader: Loader, changes: dict[str, Any], number: float, data: st.DataObject) -> None:
    """Any header on tensors of the sizes it names, where those are sizes, with one number of any kind."""
    plain = st.lists(st.integers(1, 4), min_size=2, max_size=3)
    gears = data.draw(plain | st.lists(st.sampled_from((3, "x2", "2x3x4", FROZEN)), min_size=2, max_size=3))
    version = 3 if all(type(gear) is int for gear in gears) else 4
    header = HEADER.to_json() | {"gears": gears, "format": version}
    tensors = {name: values for name, values in parse(loader.files[0]).items() if name.startswith("master")}
    for number, gear in enumerate(map(read_gear, gears)):
        sizes = gear.sizes(4, 2)
        for i in range(len(sizes) - 1):
            tensors[f"gear{number}.{i}.weight"] = np.ones((sizes[i], sizes[i + 1]), np.float32)
            tensors[f"gear{number}.{i}.bias"] = np.ones(sizes[i + 1], np.float32)
        if gear.clips:
            tensors |= {f"gear{number}.{end}": np.ones(4, np.float32) for end in ("low", "high")}
    choices = 3 * len(header["gears"])
    tensors["master.2.weight"] = np.ones((7, choices), np.float32)
    tensors["master.2.bias"] = np.ones(choices, np.float32)
    assert loader.try_load(pack(tensors, {"lowgear": json.dumps(header)}))
    tensors[data.draw(st.sampled_from(sorted(tensors)))].flat[0] = number
    loader.try_load(pack(tensors, {"lowgear": json.dumps(header | changes)}))


def test_any_header_of_a_policy(every: dict[str, Loader]) -> None:
    check_policies(every["policy"])


def test_what_is_taken_is_what_safetensors_takes(every: dict[str, Loader]) -> None:
    """Our reading of the format is never wider than the library's."""
    draw, taken = random.Random(0), 0
    for name in ("policy", "demonstrations", "state"):
        loader = every[name]
        for number in range(1000):
            data = (loader.change if number % 2 else other_bytes)(loader.files[0], draw)
            if loader.try_load(data):
                taken += 1
                assert parse(data)
    assert taken > 100


def test_the_finders_find(every: dict[str, Loader], monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader that lets one kind of bad value through is caught by the same inputs."""
    loader = every["policy"]
    monkeypatch.setattr("lowgear.policy.fields.whole", lambda _name, value, _low, _high: value)
    draw, found = random.Random(0), []
    for _ in range(3000):
        try:
            loader.try_load(loader.change(loader.files[0], draw))
        except Exception as error:
            found.append(error)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_million_inputs(every: dict[str, Loader], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    taken = every[name].feed(name, range(MILLION[name]))
    with capsys.disabled():
        print(f"\n{name}: {MILLION[name]:,} inputs, {taken:,} taken, the others refused in one line")
    assert taken == MILLION[name] if name in FORGIVING else 0 < taken < MILLION[name]


def test_a_policy_of_any_length(every: dict[str, Loader], tmp_path: Path) -> None:
    path = tmp_path / "policy"
    random_policy().save(path)
    data = path.read_bytes()
    for length in (2**8, 2**16, 2**20, 2**32, 2**63):
        assert not every["policy"].try_load(struct.pack("<Q", length) + data[8:])
