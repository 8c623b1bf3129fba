"""The Python face: an `Agent` that learns, predicts, saves and loads, its callbacks, and functions of what was trained.

`agent` has the signatures of Stable-Baselines3; `trainable` is its side of learning and `given` its environment.
`functions` are the commands `evaluate`, `tune`, `report`, `export` and `import`.
"""

from lowgear.agent.agent import Agent

__all__ = ["Agent"]
