"""What a population takes is known before any of it is asked for."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.training import algorithm, memory
from tests.fixtures.methods import CAPACITY, COLUMNS, METHOD, buffer_of, method, parameters, steps

UPDATES, AGENTS = 128, 3


def test_a_rounds_batches_are_what_the_compiler_makes_room_for():
    learned = method(batch=256, master_batch=128)
    agents = parameters(list(range(AGENTS)))
    rows = np.broadcast_to(steps(np.random.default_rng(0), CAPACITY), (AGENTS, CAPACITY, COLUMNS.width))
    buffer = buffer_of(rows, agents.shared, learned.replay, CAPACITY, CAPACITY)
    learners = jax.jit(partial(algorithm.init, method=learned))(agents.seed)
    update = jax.jit(partial(algorithm.update, method=learned), static_argnames=("which", "updates"))
    program = update.lower(learners, buffer, agents, None, jnp.int32(0), which=(0, 1, 2), updates=UPDATES).compile()
    made = program.memory_analysis().temp_size_in_bytes
    assert 0.5 < AGENTS * UPDATES * memory.bytes_of_batches(learned) / made < 2


def test_more_updates_in_a_round_are_refused_where_their_batches_do_not_fit(monkeypatch: pytest.MonkeyPatch):
    there = 2 * memory.bytes_of_agent(METHOD, 1_000, updates=64) / memory.SHARE
    monkeypatch.setattr(memory, "available", lambda: there)
    memory.check(METHOD, 2, 1_000, updates=64)
    with pytest.raises(LowgearError, match=r"2 agents would need .* updates_per_step=1"):
        memory.check(METHOD, 2, 1_000, updates=128)
    with pytest.raises(LowgearError, match="3 agents would need"):
        memory.check(METHOD, 3, 1_000, updates=64)
