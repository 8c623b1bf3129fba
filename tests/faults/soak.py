"""An hour of save, kill, resume and evaluate: `make soak`. Ends with 1 where something grows.

Each round a process goes on with one long run, is looked at after the same number of steps, and is killed or stopped;
another evaluates. Beside them one process stays and trains, resumes and evaluates small runs, one each round.
"""

import argparse
import contextlib
import gc
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = [
    "--gears",
    "2,4",
    "--critic-units",
    "4",
    "--master-units",
    "4",
    "--period",
    "2,7",
    "--evaluate-episodes",
    "1",
]
SETTINGS += [f"--set={text}" for text in ("batch=16", "master_batch=8", "actor_every=1", "chunk=32", "replay=1024")]
LONG = [*SETTINGS, "--set=random_steps=64", "--steps", "100000000", "--evaluate-every", "512"]
SHORT = [*SETTINGS, "--set=random_steps=64", "--steps", "384", "--evaluate-every", "128", "--checkpoint-every", "128"]
EACH = 1280  # steps of a round: more than the buffer holds
WARM = 3  # rounds until buffers and allocators are full
LEAST = 9  # rounds after those: thirds of three, since one process differs from the next
MAY_GROW_MB = 8.0  # beside a twentieth: pages come and go
# Two threads load compiled programs at once. Where they meet, malloc gives the second an arena of its own and keeps the
# 56 MB that become free in it: by chance, in one process and not in the next. With one arena all have the same.
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}


def lowgear(*arguments):
    return [sys.executable, "-m", "lowgear", *map(str, arguments)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        sys.exit(soak(Path(folder), options.seconds, random.Random(options.seed)))


def soak(folder, seconds, draw):
    """Rounds until the time is up; the exit code."""
    temporary, run = folder / "tmp", folder / "run"
    temporary.mkdir()
    environment = os.environ | ONE_ARENA | {"TMPDIR": str(temporary)}
    resident = subprocess.Popen(
        [sys.executable, "-c", "from tests.faults.soak import stay; stay()", str(folder / "resident")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    rounds, began = [], time.monotonic()
    try:
        while time.monotonic() - began < seconds or len(rounds) < WARM + LEAST:
            found = one_round(run, draw, environment)
            resident.stdin.write("go\n")
            resident.stdin.flush()
            found |= json.loads(resident.stdout.readline())
            found["temporary files"] = sum(1 for _ in temporary.rglob("*"))
            found["processes left"] = len(with_marker(str(temporary), but={resident.pid}))
            rounds.append(found)
            shown = ", ".join(f"{name} {value:,.0f}" for name, value in found.items())
            print(f"{time.monotonic() - began:6.0f} s, round {len(rounds)}: {shown}", flush=True)
    finally:
        resident.stdin.close()
        resident.wait()
    return judge(rounds, time.monotonic() - began)


def one_round(run, draw, environment):
    """Go on with the run, look, end it, evaluate it."""
    new = not run.exists()
    begun = 0 if new else steps_of(run)
    arguments = ["envpool:Pendulum-v1", *LONG, "--checkpoint-every", 512, "--out", run] if new else ["--resume", run]
    process = subprocess.Popen(lowgear("train", *arguments), env=environment, stderr=subprocess.DEVNULL)
    while steps_of(run) < begun + EACH:
        if process.poll() is not None:
            raise SystemExit(f"training ended by itself, with exit code {process.returncode}")
        time.sleep(0.02)
    found = {"MB": resident_mb(process.pid), **handles_of(process.pid)}
    killed = draw.random() < 0.5
    time.sleep(draw.random() * killed)
    process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
    process.wait()
    if steps_of(run) < begun + EACH:
        raise SystemExit("steps were lost that a checkpoint had")
    with subprocess.Popen(
        lowgear("evaluate", run, "--episodes", 1), env=environment, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"evaluate ended with exit code {process.returncode}")
    return {"steps": steps_of(run)} | found | {"evaluate MB": used.ru_maxrss / 1024, "files": len(files_of(run))}


def stay():
    """Train, stop, resume, evaluate within this process, once for each line of standard input."""
    from click.testing import CliRunner

    from lowgear.commands.cli import cli

    home, runner = Path(sys.argv[1]), CliRunner()
    for number, _ in enumerate(sys.stdin):
        run = home / f"run{number}"
        for arguments in (
            ["train", "envpool:Pendulum-v1", *SHORT, "--out", run],
            ["train", "--resume", run, "--steps", 640],
            ["evaluate", run, "--episodes", 1],
        ):
            result = runner.invoke(cli, list(map(str, arguments)))
            assert result.exit_code == 0, result.output
        for path in sorted(run.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        gc.collect()  # what is left then has leaked
        mine = {f"resident {name}": value for name, value in handles_of(os.getpid()).items()}
        print(json.dumps({"resident MB": resident_mb(os.getpid())} | mine), flush=True)


def judge(rounds, seconds):
    """1 where something has grown between the first third and the last; the rounds that warm up do not count."""
    rounds = rounds[WARM:]
    third, grown = max(1, len(rounds) // 3), []
    print(f"\n{len(rounds) + WARM} rounds, {rounds[-1]['steps']:,} steps, {seconds:,.0f} s; median of the first third")
    print(f"(after {WARM} rounds), median of the last, most of all:")
    for name in rounds[0]:
        first, last = ([each[name] for each in part] for part in (rounds[:third], rounds[-third:]))
        before, after = statistics.median(first), statistics.median(last)
        print(f"  {name:20} {before:10,.0f} {after:10,.0f} {max(each[name] for each in rounds):10,.0f}")
        allowed = before * 1.05 + MAY_GROW_MB if name.endswith("MB") else max(first)
        if name != "steps" and after > allowed:
            grown.append(name)
    print(f"grew: {', '.join(grown)}" if grown else "nothing grew")
    return int(bool(grown))


def steps_of(run):
    """Of the last checkpoint."""
    try:
        return json.loads((run / "checkpoint" / "latest.json").read_text())["steps"]
    except FileNotFoundError:
        return 0


def files_of(run):
    return [path for path in run.rglob("*") if path.is_file() and "tensorboard" not in path.parts]


def resident_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def handles_of(pid):
    tasks = Path(f"/proc/{pid}/task")
    children = sum(len((task / "children").read_text().split()) for task in tasks.iterdir())
    return {"handles": len(os.listdir(f"/proc/{pid}/fd")), "threads": len(os.listdir(tasks)), "children": children}


def with_marker(marker, but):
    """Processes whose environment holds a text."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) not in but:
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                found |= {int(entry.name)} if marker.encode() in (entry / "environ").read_bytes() else set()
    return found


if __name__ == "__main__":
    main()
