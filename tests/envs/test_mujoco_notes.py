"""MuJoCo's remarks on models stay out of sight, and out of the working directory."""

import pytest

from lowgear.config.tasks import find
from lowgear.envs import make

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(autouse=True)
def _as_it_was():
    before = mujoco.get_mju_user_warning()
    yield
    mujoco.set_mju_user_warning(before)


def test_an_old_model_is_made_in_silence_and_leaves_no_log(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    make(find("gym:HalfCheetah-v5"), 1).close()  # whose model sets a total mass, which MuJoCo frowns on
    assert capfd.readouterr().err == ""
    assert not list(tmp_path.iterdir())


def test_what_matters_is_told_once(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    make(find("gym:HalfCheetah-v5"), 1).close()
    hear = mujoco.get_mju_user_warning()
    for time in (0.1, 0.2):
        hear(f"Nan, Inf or huge value in QACC at DOF 0. The simulation is unstable. Time = {time}.")
    assert capfd.readouterr().err.count("MuJoCo: Nan, Inf or huge value") == 1
