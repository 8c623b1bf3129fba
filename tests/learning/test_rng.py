"""Random numbers against JAX's own Threefry, the published vectors and the distributions they claim."""

import math

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import rng

COUNT = 50_001  # odd, so that half a pair is left over
KINDS = {"bits": rng.bits, "uniform": rng.uniform, "normal": rng.normal}


def draw(kind: str, seed: int = 7, stream: int = 3, time: int = 11, count: int = COUNT) -> np.ndarray:
    return np.asarray(KINDS[kind](jnp.uint32(seed), stream, jnp.int32(time), count))


@pytest.fixture(scope="module", autouse=True)
def strict():
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    # Random123's kat_vectors, "threefry 2x32 20".
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_vectors(key, counter, expected) -> None:
    found = rng.threefry(tuple(map(jnp.uint32, key)), *map(jnp.uint32, counter))
    assert tuple(map(int, found)) == expected


def test_threefry_equals_jax() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (4, 257), dtype=np.uint32)
    ours = jax.jit(rng.threefry)((words[0], words[1]), words[2], words[3])
    for i in range(0, 257, 16):
        theirs = jax.extend.random.threefry_2x32(jnp.asarray(words[:2, i]), jnp.asarray(words[2:, i]))
        assert [int(ours[0][i]), int(ours[1][i])] == theirs.tolist()


def test_bits_are_threefry_of_seed_stream_index_time() -> None:
    key = jnp.array([7, 3], jnp.uint32)
    counters = jnp.concatenate([jnp.arange(8, dtype=jnp.uint32), jnp.full(8, 11, jnp.uint32)])
    expected = np.asarray(jax.extend.random.threefry_2x32(key, counters))[:8]  # the first word of each pair
    np.testing.assert_array_equal(draw("bits", count=8), expected)
    np.testing.assert_array_equal(draw("bits", count=7), expected[:7])


def test_every_stream_has_its_own_number() -> None:
    numbers = [
        rng.stream(purpose, learner)
        for purpose in (rng.ROWS, rng.ACTIONS, rng.COEFFICIENTS, rng.GOALS)
        for learner in range(256)
    ]
    assert len(set(numbers)) == len(numbers)


def test_uniform_moments_and_distribution() -> None:
    sample = draw("uniform").astype(np.float64)
    assert sample.min() >= 0
    assert sample.max() < 1
    assert abs(sample.mean() - 0.5) < 4 * math.sqrt(1 / 12 / COUNT)
    assert abs(sample.var() - 1 / 12) < 4 * math.sqrt(1 / 180 / COUNT)
    assert kolmogorov_smirnov(sample) < 1.95  # exceeded once in a thousand


def test_normal_moments_kurtosis_and_distribution() -> None:
    sample = draw("normal").astype(np.float64)
    assert abs(sample.mean()) < 4 / math.sqrt(COUNT)
    assert abs(sample.var() - 1) < 4 * math.sqrt(2 / COUNT)
    assert abs((sample**3).mean()) < 4 * math.sqrt(15 / COUNT)
    assert abs((sample**4).mean() - 3) < 4 * math.sqrt(96 / COUNT)
    assert kolmogorov_smirnov(np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in sample])) < 1.95


def kolmogorov_smirnov(below: np.ndarray) -> float:
    """√n times the widest gap between a sample's distribution and the claimed one, of which `below` is the function."""
    n, below = len(below), np.sort(below)
    return math.sqrt(n) * max((np.arange(1, n + 1) / n - below).max(), (below - np.arange(n) / n).max())


def test_uniform_of_every_possible_word(monkeypatch) -> None:
    monkeypatch.setattr(rng, "bits", lambda *_: jnp.array([0, 1, 255, 256, 2**31, 2**32 - 257, 2**32 - 1], "uint32"))
    np.testing.assert_array_equal(draw("uniform"), [0, 0, 0, 2**-24, 0.5, 1 - 2**-23, 1 - 2**-24])


def test_normal_of_every_possible_word(monkeypatch) -> None:
    # Only the upper 24 bits are read, so these are all the values there are.
    monkeypatch.setattr(rng, "bits", lambda *_: jnp.arange(2**24, dtype=jnp.uint32) << jnp.uint32(8))
    sample = draw("normal")
    assert sample.dtype == np.float32
    assert np.isfinite(sample).all()
    assert (np.diff(sample) >= 0).all()
    np.testing.assert_array_equal(sample, -sample[::-1])
    assert 0.5 * math.erfc(sample[-1] / math.sqrt(2)) == pytest.approx(2**-25, rel=0.01)
    assert np.square(sample, dtype=np.float64).mean() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("other", [{"seed": 8}, {"stream": 4}, {"time": 12}, {"seed": 3, "stream": 7}])
@pytest.mark.parametrize("kind", ["bits", "uniform", "normal"])
def test_seed_stream_and_time_give_unrelated_numbers(kind: str, other: dict[str, int]) -> None:
    one, two = draw(kind), draw(kind, **other)
    if kind == "bits":
        flipped = np.unpackbits((one ^ two).view(np.uint8)).mean()
        assert abs(flipped - 0.5) < 4 * 0.5 / math.sqrt(32 * COUNT)
        assert (one == two).mean() < 1e-3
    else:
        bound = 4 / math.sqrt(COUNT)
        assert abs(np.corrcoef(one, two)[0, 1]) < bound
        assert abs(np.corrcoef(one[:-1], two[1:])[0, 1]) < bound
        assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < bound
        assert abs(np.corrcoef(one[: COUNT // 2], one[-(COUNT // 2) :])[0, 1]) < bound


def test_same_arguments_give_the_same_numbers() -> None:
    np.testing.assert_array_equal(draw("normal"), draw("normal"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 7, 1536])
def test_in_company_and_compiled_equal_alone(kind: str, count: int) -> None:
    seeds = jnp.array([0, 5, 2**31 - 1], jnp.uint32)
    alone = np.stack([draw(kind, int(seed), 257, 9, count) for seed in seeds])
    company = jax.vmap(lambda seed, time: KINDS[kind](seed, 257, time, count), in_axes=(0, None))
    np.testing.assert_array_equal(alone, company(seeds, jnp.int32(9)))
    compiled_company = np.asarray(jax.jit(company)(seeds, jnp.int32(9)))
    compiled = jax.jit(lambda seed: KINDS[kind](seed, 257, jnp.int32(9), count))
    np.testing.assert_array_equal(compiled_company, np.stack([compiled(seed) for seed in seeds]))
    if kind == "normal":  # the compiler may fuse the inverse's polynomial
        np.testing.assert_allclose(compiled_company, alone, rtol=1e-6, atol=1e-7)
    else:
        np.testing.assert_array_equal(compiled_company, alone)
