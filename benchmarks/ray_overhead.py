"""What scheduling costs on a simulated cluster of several nodes: programs that sleep, handed out by `ray_pool`.

    python benchmarks/ray_overhead.py [--nodes 8] [--programs 24] [--seconds 60] [--out results/ray-overhead.json]

Overhead is the time from the first program's start to the last one's end, beyond what the programs take by themselves
on so many machines. All nodes are processes of this machine.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.studies.executors import Watcher, carry_out
from lowgear.studies.program import Program
from lowgear.studies.ray_pool import RayPool, connect
from lowgear.studies.schedule import makespan


def sleep(raw: dict, told: dict) -> tuple[str, str]:  # noqa: ARG001
    time.sleep(float(raw["program"]["name"].split("-")[1]))
    return "done", ""


def measure(nodes: int, count: int, seconds: float) -> dict:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    connect(cluster.address)
    config = resolve(find("reacher-easy"))
    lengths = [seconds * (0.5 + number / max(1, count - 1)) for number in range(count)][::-1]  # longest first
    with tempfile.TemporaryDirectory() as folder:
        pool = RayPool(Path(folder), cpus=1, gpus=0, work=sleep)
        warm = [Program(f"warm{number}-5", config, 1, 1) for number in range(nodes)]  # workers start once
        list(carry_out(pool, warm, Watcher()))
        programs = [Program(f"{number}-{length}", config, 1, 1) for number, length in enumerate(lengths)]
        began = time.perf_counter()
        ended = list(carry_out(pool, programs, Watcher()))
        took = time.perf_counter() - began
        assert all(each.result.kind == "done" for each in ended)
        pool.close()
    cluster.shutdown()
    ideal = makespan(lengths, nodes)
    return {
        "nodes": nodes,
        "programs": count,
        "program_seconds": [min(lengths), max(lengths)],
        "ideal_s": ideal,
        "took_s": took,
        "overhead": took / ideal - 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--programs", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    import ray

    found = measure(arguments.nodes, arguments.programs, arguments.seconds)
    found = {"command": "python benchmarks/ray_overhead.py", "ray": ray.__version__, "cores": os.cpu_count()} | found
    print(json.dumps(found, indent=1))
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
