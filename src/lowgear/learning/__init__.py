"""Pure JAX: networks, SAC, DQN, replay with hindsight, normalised observations, random numbers."""
