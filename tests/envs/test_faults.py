"""One environment of a batch that raises or hangs: told with its number, seed and line, and the others step on."""

import threading
import time
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs import watchdog
from tests.fixtures import faulty
from tests.fixtures.faulty import Faulty

pytestmark = pytest.mark.skipif(watchdog.SIGNAL is None, reason="signals of POSIX")
LIMIT_S = 0.2


def batch(how, at=3, count=3, limit=LIMIT_S):
    """The second of `count` fails."""
    made = iter(range(count))
    env = envs.wrap(lambda: Faulty(how if next(made) == 1 else "", at), count)
    env.limit_s = limit
    return env


def steps(env, count=5, heard=None):
    """Observations (steps, environments), and what was said."""
    heard = [] if heard is None else heard
    env.on_bad = lambda number, why: heard.append((number, why))
    env.reset([7, 8, 9])
    seen = [env.step(np.full((env.num_envs, 1), 0.5, np.float32)).observation[:, 0] for _ in range(count)]
    env.close()
    return np.array(seen), heard


def line_of(words):
    with open(faulty.__file__) as file:
        return next(number for number, line in enumerate(file, 1) if words in line)


LINES = {
    "raise": "raise RuntimeError",
    "sleep": "time.sleep(3600)",
    "loop": "time.sleep(0.01)",
    "wait": "Event().wait()",
    "pause": "pause()",
}


@pytest.mark.parametrize("how", LINES)
def test_it_alone_fails(how):
    seen, ((number, why),) = steps(batch(how))
    well, nothing = steps(batch(""))
    assert nothing == []
    assert (seen[:, [0, 2]] == well[:, [0, 2]]).all()
    assert (seen[:2, 1] == well[:2, 1]).all()
    assert (seen[2:, 1] == 0).all()
    assert number == 1
    where = f"(environment 1, seed 8, tests/fixtures/faulty.py:{line_of(LINES[how])})"
    if how == "raise":
        assert why == f"Faulty raised RuntimeError at step 3: motor is unplugged {where}"
    else:
        assert why.startswith(f"Faulty did not return for 0.2 s at step 3 {where}")
        assert "--env-timeout" in why


@pytest.mark.parametrize("how", ["raise", "sleep"])
def test_on_reset_too(how):
    seen, ((number, why),) = steps(batch(how, at=0))
    assert number == 1
    assert "on reset" in why
    assert (seen[:, 1] == 0).all()


def test_where_nobody_hears_it_is_an_error():
    env = batch("sleep", at=1)
    env.reset([1, 2, 3])
    with pytest.raises(LowgearError, match=r"did not return for 0.2 s at step 1 \(environment 1, seed 2, "):
        env.step(np.zeros((3, 1), np.float32))


def test_a_loop_in_another_thread_is_interrupted_too():
    heard, stuck = [], []

    def play():
        with watchdog.stuck(stuck.append):
            steps(batch("loop"), heard=heard)

    thread = threading.Thread(target=play)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert [number for number, _ in heard] == [1]
    assert stuck == []


def test_what_cannot_be_interrupted_is_told():
    told, said = threading.Event(), []

    def play():
        with watchdog.stuck(lambda why: (said.append(why), told.set())):
            steps(batch("deadlock"))

    threading.Thread(target=play, daemon=True).start()
    assert told.wait(60)
    assert "did not return for 0.2 s at step 3 (environment 1, seed 8, tests/fixtures/faulty.py:" in said[0]


def test_a_slow_call_that_returns_keeps_its_answer():
    """It returns between the look that finds it late and the exception; whatever comes first, nothing comes after."""
    release = threading.Event()

    def wait():
        release.wait(60)
        return 5

    def late(_):
        release.set()
        return "late"

    answers = []

    def play():
        for _ in range(5):
            release.clear()
            try:
                answers.append(watchdog.call(0.05, late, wait))
            except watchdog.HangError as error:
                answers.append(str(error))
            sum(range(100_000))  # a stray exception would end this thread
        answers.append("done")

    thread = threading.Thread(target=play)
    thread.start()
    thread.join(60)
    assert answers[-1] == "done"
    assert len(answers) == 6
    assert set(answers[:-1]) <= {5, "late"}


class Odd(Faulty):
    """Returns what can't stand beside the others'."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def step(self, action):
        return self.answer(*super().step(action)) if self.steps else super().step(action)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda o, r, *others: (np.append(o, o), r, *others), "an observation of shape (2,), where its space has (1,)"),
        (lambda o, r, a, b, info: (o, r, a or b, info), "not enough values to unpack"),
        (lambda o, _, *others: (o, None, *others), "NoneType"),
    ],
)
def test_odd_answers_are_failures_of_one(answer, said):
    made = iter(range(3))
    env = envs.wrap(lambda: Odd(answer) if next(made) == 1 else Faulty(), 3)
    seen, ((number, why),) = steps(env)
    assert number == 1
    assert said in why
    assert (seen[1:, 1] == 0).all()
    assert (seen[:, [0, 2]] == steps(batch(""))[0][:, [0, 2]]).all()


def test_dm_control_fails_one_by_one(monkeypatch):
    env = envs.make(find("dmc:cartpole-swingup"), 2)
    env.reset([3, 4])
    heard = []
    env.on_bad = lambda number, why: heard.append((number, why))

    def explode(_):
        raise ArithmeticError("the physics is unstable")

    monkeypatch.setattr(env._envs[0], "step", explode)
    action = np.zeros((2, 1), np.float32)
    first, second = env.step(action), env.step(action)
    assert heard[0][0] == 0
    assert "raised ArithmeticError at step 1: the physics is unstable (environment 0, seed 3, " in heard[0][1]
    assert len(heard) == 1
    assert (first.observation[0] == 0).all()
    assert (first.observation[1] != 0).any()
    assert (first.observation[1] != second.observation[1]).any()
    env.close()


def test_environments_made_by_name_have_a_limit_and_those_passed_in_have_none():
    assert envs.make(find("gym:Pendulum-v1"), 1).limit_s == watchdog.DEFAULT_S
    pool = envs.make(find("envpool:Pendulum-v1"), 4)
    assert [part.limit_s for part in pool.split([2, 2])] == [watchdog.DEFAULT_S] * 2
    assert envs.wrap(gymnasium.make("Pendulum-v1")).limit_s == 0


def test_a_pool_that_hangs_is_told_as_a_whole():
    env = envs.make(find("envpool:Pendulum-v1"), 2)
    env.limit_s = LIMIT_S
    env.reset([0, 1])
    pool = env._pool
    env._pool = SimpleNamespace(_send=pool._send, _recv=lambda: time.sleep(3600))
    with pytest.raises(
        LowgearError, match=r"^envpool:Pendulum-v1 did not return for 0.2 s at step 1 \(2 environments, "
    ):
        env.step(np.zeros((2, 1), np.float32))
    pool._recv()  # what was sent
