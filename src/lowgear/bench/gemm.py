"""The rate of NumPy's matrix products on all cores; as a program it prints it, and imports little, to start fast."""

import os
import subprocess
import sys
import threading
import time

import numpy as np

from lowgear import LowgearError


def rate_alone(units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """`rate` in a process of its own: NumPy's BLAS reads only at its start that it may use one thread a call."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    command = [sys.executable, "-m", "lowgear.bench.gemm", str(units), str(batch), str(seconds)]
    done = subprocess.run(command, env=os.environ | dict.fromkeys(names, "1"), capture_output=True, text=True)
    if done.returncode:
        raise LowgearError(f"could not measure this machine's rate of products: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def rate(units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """FLOP/s of NumPy's (batch × units)·(units × units), one thread for each core at once; see `rate_alone`."""
    rates: list[float] = []

    def work() -> None:
        a = np.random.default_rng(0).normal(size=(batch, units)).astype(np.float32)
        b = np.random.default_rng(1).normal(size=(units, units)).astype(np.float32)
        out = np.empty((batch, units), np.float32)
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            for _ in range(20):
                np.matmul(a, b, out=out)
            count += 20
        rates.append(count / passed)

    threads = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * batch * units * units * sum(rates)


if __name__ == "__main__":
    print(rate(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
