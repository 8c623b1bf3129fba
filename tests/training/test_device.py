"""Compiled programs on disk."""

import os
import subprocess
import sys

PROGRAM = """
import jax
from lowgear.training.device import keep_compiled_programs

keep_compiled_programs()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
print(float(jax.jit(lambda x: 2 * x + 1)(3.0)))
"""


def test_a_program_that_was_cut_off_on_disk_is_compiled_anew_without_a_word(tmp_path):
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)

    def run():
        command = [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    first = run()
    assert (first.returncode, first.stdout) == (0, "7.0\n"), first.stderr
    kept = list((tmp_path / "lowgear" / "compiled").glob("*-cache"))
    assert kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:10])
    again = run()
    assert (again.returncode, again.stdout, again.stderr) == (0, "7.0\n", ""), again.stderr
