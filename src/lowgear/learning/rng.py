"""Random numbers as a pure function of (seed, stream, time): Threefry-2x32, 20 rounds, unrolled.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). It is the generator of `jax.random`, written so
that the compiler fuses it into one vectorised loop, some twenty times faster on a CPU. With no state to carry, a run
can stop and go on anywhere, and an agent draws the same numbers alone and in company.
"""

import jax
import jax.numpy as jnp

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA

# What the numbers are for. Each learner of an agent draws from a stream of its own for each purpose.
ROWS, ACTIONS, COEFFICIENTS, GOALS = range(4)
LEARNERS_AT_MOST = 256


def stream(purpose: int, learner: int) -> int:
    """The number of a stream: gear g is learner g, the master comes after the last gear."""
    return purpose * LEARNERS_AT_MOST + learner


def threefry(key: tuple[jax.Array, jax.Array], x0: jax.Array, x1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Scramble the counters `x0`, `x1` (uint32) under a two-word key."""
    words = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x0, x1 = x0 + words[0], x1 + words[1]
    for block in range(5):
        for distance in ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << jnp.uint32(distance)) | (x1 >> jnp.uint32(32 - distance)))
        x0 = x0 + words[(block + 1) % 3]
        x1 = x1 + words[(block + 2) % 3] + jnp.uint32(block + 1)
    return x0, x1


def bits(seed: jax.Array, stream: int, time: jax.Array, count: int) -> jax.Array:
    """`count` random uint32 words for one purpose at one time."""
    number = jnp.arange(count, dtype=jnp.uint32)
    key = (seed.astype(jnp.uint32), jnp.uint32(stream))
    # The second word of each pair is left: joining the two costs more than scrambling twice as many counters.
    return threefry(key, number, jnp.broadcast_to(time.astype(jnp.uint32), number.shape))[0]


def uniform(seed: jax.Array, stream: int, time: jax.Array, count: int) -> jax.Array:
    """Floats in [0, 1)."""
    words = bits(seed, stream, time, count)
    return jnp.multiply((words >> jnp.uint32(8)).astype(jnp.float32), 2**-24)


def normal(seed: jax.Array, stream: int, time: jax.Array, count: int) -> jax.Array:
    """Standard normal floats, by the inverse of the distribution function."""
    words = bits(seed, stream, time, count)
    # Odd multiples of 2^-24 in (-1, 1): symmetric, and never so near an end that the inverse is infinite.
    centred = ((words >> jnp.uint32(8)).astype(jnp.int32) - 2**23).astype(jnp.float32) * 2**-23 + 2**-24
    return jnp.multiply(jax.lax.erf_inv(centred), 2**0.5)
