"""A compiled controller that replays recorded episodes: as a library to time, as a program to count instructions of."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowgear.evaluation.record import Episode
from lowgear.export import compiler
from lowgear.export.c_format import c_files
from lowgear.policy.file import Policy

DRIVER = """\
#include "{name}.h"
#ifdef DRIVER_MAIN
#include <stdio.h>
#include <stdlib.h>
#endif

/* Replays `steps` observations `passes` times; `shares` counts the steps of each gear. With `chained` each step waits
   for the action before it, as on a robot: the row it reads depends on an action beyond `limit`, which never comes. */
int {name}_replay(const float *observation, const unsigned char *start, int steps, int passes, int chained,
    float limit, int *shares)
{{
    float action[{act}];
    int pass, t, skip = 0;
    {name}_state state;
    {name}_init(&state);
    action[0] = 0.0f;
    for (pass = 0; pass < passes; ++pass)
        for (t = 0; t < steps; ++t) {{
            if (start[t])
                {name}_reset(&state);
            skip = chained ? action[0] > limit : 0;
            ++shares[{name}_step(&state, observation + (t + skip) * {obs}, action)];
        }}
    return passes * steps;
}}

#ifdef DRIVER_MAIN
int main(int argc, char **argv)
{{
    int steps = argc > 2 ? atoi(argv[2]) : 0, shares[{gears}] = {{0}};
    float *observation = malloc(sizeof(float) * {obs} * (size_t)(steps + 1));
    unsigned char *start = malloc((size_t)(steps + 1));
    FILE *file = argc > 2 ? fopen(argv[1], "rb") : 0;
    if (!file || !observation || !start
        || fread(observation, sizeof(float) * {obs}, (size_t)steps, file) != (size_t)steps
        || fread(start, 1, (size_t)steps, file) != (size_t)steps)
        return 1;
    return {name}_replay(observation, start, steps, 1, 0, 1e30f, shares) != steps;
}}
#endif
"""


class CompiledReplay:
    """One controller and the episodes it replays."""

    def __init__(
        self,
        policy: Policy,
        name: str,
        episodes: Sequence[Episode],
        folder: Path,
        cc: str,
        weights: str = "float32",  # or int8
    ) -> None:
        self.name, self.folder, self._cc = name, folder, cc
        self.shares = np.zeros(len(policy.header.gears), np.int32)  # steps of each gear so far
        self._observation = np.concatenate([episode.observation for episode in episodes])
        self._start = np.concatenate([np.arange(episode.steps) == 0 for episode in episodes]).astype(np.uint8)
        sizes = {"obs": policy.header.obs_dim, "act": policy.header.act_dim, "gears": len(policy.header.gears)}
        driver = DRIVER.format(name=name, **sizes).encode()
        folder.mkdir()
        for file, data in (c_files(policy, name, weights, episodes) | {"driver.c": driver}).items():
            (folder / file).write_bytes(data)
        library = self._build([*compiler.FAST, *compiler.SHARED], f"lib{name}-{folder.parent.name}.so")
        self._replay: Any = getattr(ctypes.CDLL(str(library)), f"{name}_replay")

    def run(self, passes: int, chained: bool = False) -> int:
        """Replay; returns the steps taken."""
        return int(
            self._replay(
                self._observation.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
                self._start.ctypes.data_as(ctypes.POINTER(ctypes.c_ubyte)),
                len(self._observation),
                passes,
                int(chained),
                ctypes.c_float(1e30),
                self.shares.ctypes.data_as(ctypes.POINTER(ctypes.c_int)),
            )
        )

    def program(self, flags: Sequence[str]) -> list[str]:
        """A command that replays the episodes once; its last word is the number of steps."""
        program, data = self._build([*flags, "-DDRIVER_MAIN"], "driver"), self.folder / "observations.bin"
        data.write_bytes(self._observation.tobytes() + self._start.tobytes())
        return [str(program), str(data), str(len(self._observation))]

    def _build(self, flags: Sequence[str], out: str) -> Path:
        """The controller and the driver are compiled apart, so that neither is folded into the other."""
        sources = [self.folder / f"{self.name}.c", self.folder / "driver.c"]
        return compiler.build(self._cc, ["-std=c99", *flags], sources, self.folder / out)
