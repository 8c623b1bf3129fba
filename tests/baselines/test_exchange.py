from dataclasses import replace

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines.exchange import to_minari
from tests.fixtures.teachers import valley_demonstrations

minari = pytest.importorskip("minari", reason="Minari is the extra `minari`")


@pytest.fixture(autouse=True)
def own_place(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


def test_minari_reads_what_was_recorded():
    data = valley_demonstrations(3, 4)
    data = replace(data, terminated=np.array([True, False, False]), truncated=np.array([False, True, False]))
    to_minari(data, "lowgear/valley/perfect-v0")
    dataset = minari.load_dataset("lowgear/valley/perfect-v0")
    episodes = list(dataset.iterate_episodes())
    assert (dataset.total_episodes, dataset.total_steps) == (3, 12)
    for i, episode in enumerate(episodes):
        np.testing.assert_array_equal(episode.observations[:-1], data.observations[4 * i : 4 * i + 4])
        np.testing.assert_array_equal(episode.observations[-1], data.last_observations[i])
        np.testing.assert_allclose(episode.actions, 2 * data.actions[4 * i : 4 * i + 4], atol=1e-6)  # bounds are ±2
        assert dataset.action_space.contains(episode.actions[0])
        assert episode.terminations.tolist() == [False] * 3 + [i == 0]
        assert episode.truncations.tolist() == [False] * 3 + [i != 0]


def test_a_dataset_is_not_overwritten():
    to_minari(valley_demonstrations(1, 2), "lowgear/valley/twice-v0")
    with pytest.raises(LowgearError, match="already"):
        to_minari(valley_demonstrations(1, 2), "lowgear/valley/twice-v0")


def test_a_bad_name_is_an_error():
    with pytest.raises(LowgearError, match="refused"):
        to_minari(valley_demonstrations(1, 2), "not a name!")
