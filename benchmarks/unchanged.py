"""Whether a change of the code's layout left every result as it was: record before it, compare after it.

    python benchmarks/unchanged.py record DIR      runs of every kind, with their evaluations, exports and reports
    python benchmarks/unchanged.py compare DIR     the same anew, held against what DIR recorded, bit for bit
    python benchmarks/unchanged.py replay DIR      only what is made of the policies in DIR: no training

Everything goes through the command line, so that it does not depend on where the code stands.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from safetensors import safe_open

SMALL = ["--evaluate-episodes", "2", "--critic-units", "16"]
RUNS = {
    "modern": "cartpole-swingup --steps 2560 --seeds 0-1 --evaluate-every 1280 --checkpoint-every 1280 "
    "--variants asymmetric,small-only,large-only,fixed-cost,no-cost,separate-buffers",
    "paper": "cartpole-swingup --recipe paper --steps 1920 --seeds 3 --cost-coefficients 0.001,0.1",
    "learned": "reacher-easy --learned-prices --steps 1920 --seeds 0-1 --period 1,4 --environments 2",
    "gears": "gym:Pendulum-v1 --gears 4,8,16 --cost-coefficients 0.01,1 --steps 1920 --variants asymmetric,fixed-cost",
    "large": "finger-spin --steps 1920 --variants large-only --seeds 0-2",
    "goals": "FetchPush-v1 --steps 6400 --seeds 1 --gears 4,8 --evaluate-every 0",
    "goals-paper": "FetchPush-v1 --recipe paper --steps 1920 --seeds 1 --gears 4,8 --evaluate-every 0",
}
DIALS = ("modern", "learned", "gears", "goals")
KEPT = (".c", ".h", ".onnx")
TIMED = {"steps_per_second"}


def lowgear(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "lowgear", *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lowgear {' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def tensors(path: Path) -> dict[str, str]:
    with safe_open(path, framework="numpy") as file:
        return {name: hashlib.sha256(file.get_tensor(name).tobytes()).hexdigest()[:16] for name in file.keys()}  # noqa: SIM118


def trained(run: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics = [{key: value for key, value in line.items() if key not in TIMED} for line in lines]
    policies = {path.name: tensors(path) for path in sorted((run / "policies").iterdir())}
    return {"metrics": metrics, "policies": policies}


def made_of(run: Path) -> dict[str, Any]:
    """Evaluation, tuning and exports of a run's policies, which are left as they are."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run"
        shutil.copytree(run, copy)
        found: dict[str, Any] = {}
        for name, options in (
            ("evaluate", ["--episodes", "3"]),
            ("boltzmann", ["--episodes", "3", "--master", "boltzmann", "--seed", "5"]),
            ("frontier", ["--episodes", "2", "--frontier", "3"]),
        ):
            if name == "frontier" and run.name not in DIALS:
                continue
            found[name] = json.loads(lowgear("evaluate", str(copy), "--json", *options))
        if run.name in ("modern", "learned"):
            found["tune"] = json.loads(
                lowgear("tune", str(copy), "--keep-return", "0.9", "--episodes", "8", "--agents", "0", "--json")
            )
        for name in ("c", "onnx", "numpy"):
            out = Path(folder) / name
            lowgear("export", str(copy), "--format", name, "--out", str(out))
            found[name] = {
                path.name: digest(path) for path in sorted(out.iterdir()) if path.suffix in (".c", ".h", ".onnx")
            }
            found[name]["export.json"] = json.loads((out / "export.json").read_text()).get("checked")
        found.pop("path", None)
        return json.loads(json.dumps(found).replace(folder, ""))


def main() -> None:
    what, directory = sys.argv[1], Path(sys.argv[2]).resolve()
    if what == "record":
        for name, words in RUNS.items():
            lowgear("train", *words.split(), *SMALL, "--out", str(directory / name))
            result = {"trained": trained(directory / name), "made": made_of(directory / name)}
            (directory / f"{name}.json").write_text(json.dumps(result))
            print(f"{name}: recorded", flush=True)
        return
    wrong = 0
    for name, words in RUNS.items():
        then = json.loads((directory / f"{name}.json").read_text())
        now: dict[str, Any] = {"made": made_of(directory / name)}
        if what == "compare":
            with tempfile.TemporaryDirectory() as folder:
                lowgear("train", *words.split(), *SMALL, "--out", str(Path(folder) / name))
                now["trained"] = trained(Path(folder) / name)
        for part in now:
            wrong += report(f"{name}/{part}", then[part], now[part])
    print(f"{wrong} differ")
    sys.exit(wrong > 0)


def report(where: str, then: Any, now: Any) -> int:
    """Say what differs, and count it."""
    if isinstance(then, dict) and isinstance(now, dict):
        names = sorted(then.keys() | now.keys())
        found = [report(f"{where}/{name}", then.get(name), now.get(name)) for name in names]
        if not where.count("/") > 1:
            print(f"{where}: {'the same' if not sum(found) else f'{sum(found)} differ'}", flush=True)
        return sum(found)
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return sum(report(f"{where}/{place}", a, b) for place, (a, b) in enumerate(zip(then, now, strict=True)))
    if then == now:
        return 0
    print(f"  {where}: {str(then)[:80]} became {str(now)[:80]}", flush=True)
    return 1


main()
