"""Lowgear and its peers behind one face, for `peer_faults.py`: how each trains, saves, loads and goes on.

A tool gives commands, which `peer_faults.py` runs as processes of their own: RL Zoo's and Lowgear's own command lines,
and for libraries those of `peer_workers.py`.
"""

import base64
import json
import shutil
import sys
import zipfile
from pathlib import Path

import peer_workers
from peer_workers import ENDLESS, EVERY, STEPS, TASK


def worker(tool, action, **given):
    return [peer_workers.__file__, json.dumps({"tool": tool, "action": action} | given, default=str)]


class Payload:
    """Makes the file `touch` when it is unpickled, and does nothing else."""

    def __init__(self, touch):
        self.touch = str(touch)

    def __reduce__(self):
        return open, (self.touch, "w")


class StableBaselines:
    """Stable-Baselines3; SBX by its other algorithm."""

    package, key, imports = "stable-baselines3", "sb3", ("stable_baselines3", "faulty_pendulum")
    python = sys.executable

    def train(self, folder, seed=0, members=1, **more):
        return worker(self.key, "train", folder=folder, seed=seed, members=members, **more)

    def go_on(self, folder, path, steps):
        return worker(self.key, "go_on", folder=folder, path=path, steps=steps)

    def evaluate(self, folder, path):
        del folder
        return worker(self.key, "endless", path=path)

    def load(self, path):
        return worker(self.key, "load", path=path)

    def saved(self, folder):
        return sorted(Path(folder).rglob("*.zip"), key=lambda path: path.stat().st_mtime_ns)

    def hostile(self, path, folder, touch):
        """Files from a stranger, by what is wrong with them, with the commands that open them."""
        import cloudpickle

        made = folder / "stranger.zip"
        with zipfile.ZipFile(path) as sound, zipfile.ZipFile(made, "w") as bad:
            for name in sound.namelist():
                content = sound.read(name)
                if name == "data":
                    data = json.loads(content)
                    code = base64.b64encode(cloudpickle.dumps(Payload(touch))).decode()
                    data["ep_info_buffer"] = {":type:": "deque", ":serialized:": code}
                    content = json.dumps(data).encode()
                bad.writestr(name, content)
        return {"a pickle in the model": self.load(made)}


class Sbx(StableBaselines):
    package, key, imports = "sbx-rl", "sbx", ("sbx", "faulty_pendulum")


class Zoo(StableBaselines):
    """RL Zoo's command line, in its own interpreter: its requirements do not fit ours."""

    package, key, imports = "rl_zoo3", "zoo", ("rl_zoo3.exp_manager", "faulty_pendulum")

    def __init__(self, python):
        self.python = python

    def train(self, folder, seed=0, members=1, task=TASK, **more):
        del more
        return self._train(folder, task, "--seed", seed, "-n", STEPS, "--eval-freq", -1, members=members)

    def go_on(self, folder, path, steps):
        return self._train(folder, TASK, "--seed", 0, "-n", STEPS - steps, "--eval-freq", -1, "-i", path)

    def evaluate(self, folder, path):
        del path
        return self._train(folder, ENDLESS, "-n", STEPS, "--eval-freq", EVERY, "--eval-episodes", 1)

    def load(self, path):
        return worker("sb3", "load", path=path)

    def hostile(self, path, folder, touch):
        found = {}
        for what in ("a pickle in the model", "code in config.yml"):
            logs = folder / what.split()[-1]
            shutil.copytree(path.parent, logs / "sac" / f"{TASK}_1")
            if what.startswith("a pickle"):
                super().hostile(path, folder, touch)
                shutil.move(folder / "stranger.zip", logs / "sac" / f"{TASK}_1" / f"{TASK}.zip")
            else:
                text = f"normalize: \"{{'norm_obs': open({str(touch)!r}, 'w')}}\"\n"
                (logs / "sac" / f"{TASK}_1" / TASK / "config.yml").write_text(text)
            found[what] = self._run("enjoy", logs, TASK, "-n", 2, "--no-render", "--exp-id", 1)
        return found

    def _train(self, folder, task, *more, members=1):
        settings = Path(folder).parent / f"{task}-{members}.yml"
        settings.write_text(
            f"{task}:\n  n_envs: {members}\n  policy: MlpPolicy\n  n_timesteps: {STEPS}\n  learning_starts: 64\n"
            "  batch_size: 64\n  policy_kwargs: 'dict(net_arch=[32, 32])'\n"
        )
        every = ["--save-freq", EVERY, "--save-replay-buffer", "-c", settings]
        return self._run("train", folder, task, *every, *more)

    def _run(self, script, folder, task, *more):
        command = ["-m", f"rl_zoo3.{script}", "--algo", "sac", "--env", task, "-f", folder]
        return [str(part) for part in [*command, "--gym-packages", "faulty_pendulum", "--device", "cpu", *more]]


class RlTools:
    """RLtools' Python interface: a state that steps, and a policy exported as a C++ header."""

    package, key, imports = "rltools", "rltools", ("rltools", "faulty_pendulum")
    python = sys.executable
    go_on = None

    def train(self, folder, seed=0, members=1, **more):
        return worker(self.key, "train", folder=folder, seed=seed, members=members, **more)

    def evaluate(self, folder, path):
        del path
        return worker(self.key, "train", folder=folder, seed=0, members=1, task=ENDLESS)

    def load(self, path):
        return worker(self.key, "compile", path=path)

    def saved(self, folder):
        return sorted(Path(folder).glob("*.h"), key=lambda path: path.stat().st_mtime_ns)

    def hostile(self, path, folder, touch):
        made = folder / "stranger.h"
        made.write_text(f'{path.read_text()}\n#include <fstream>\nstatic std::ofstream touched("{touch}");\n')
        return {"code in the header": self.load(made)}


class Lowgear:
    """Lowgear's command line. A member is an agent of the population; what is saved is the run directory."""

    package, key, imports = "lowgear", "lowgear", ("lowgear.training.loop", "lowgear.envs", "gymnasium.vector")
    python = sys.executable

    def train(self, folder, seed=0, members=1, **more):
        del more
        seeds = f"{seed}-{seed + members - 1}"
        return self._train(folder, TASK, "--seeds", seeds, "--evaluate-every", 0)

    def go_on(self, folder, path, steps):
        del path, steps
        return ["-m", "lowgear", "train", "--resume", str(folder), "--trust"]

    def evaluate(self, folder, path):
        del path
        return self._train(folder, ENDLESS, "--evaluate-every", STEPS, "--evaluate-episodes", 1)

    def load(self, path):
        return worker(self.key, "load", path=path)

    def saved(self, folder):
        return [Path(folder)] if (Path(folder) / "checkpoint/latest.json").exists() else []

    def hostile(self, path, folder, touch):
        import pickle

        from safetensors.numpy import load, save

        policy = (path / "policies/agent0.safetensors").read_bytes()
        length = int.from_bytes(policy[:8], "little")
        header = json.loads(json.loads(policy[8 : 8 + length])["__metadata__"]["lowgear"])
        header["seed"] = f'0 */ __attribute__((constructor)) static void f(void) {{ fopen("{touch}", "w"); }} /*'
        files = {
            "a pickle": pickle.dumps(Payload(touch)),
            "code in the header": save(load(policy), {"lowgear": json.dumps(header)}),
        }
        for number, content in enumerate(files.values()):
            (folder / f"stranger{number}.safetensors").write_bytes(content)
        export = ["-m", "lowgear", "export"]
        names = [str(folder / f"stranger{number}.safetensors") for number in range(len(files))]
        return {what: [*export, name, "--out", f"{name}-out"] for what, name in zip(files, names, strict=True)}

    def _train(self, folder, task, *more):
        command = ["-m", "lowgear", "train", f"gym:faulty_pendulum:{task}", "--out", folder]
        command += ["--steps", STEPS, "--checkpoint-every", EVERY, "--gears", "8,32"]
        return [str(part) for part in [*command, "--set", "random_steps=64", "--set", "batch=64", *more]]
