"""What Lowgear and its peers do when something goes wrong: the same faults, tried on each.

    python benchmarks/peer_faults.py [--tools sb3,zoo,sbx,rltools,lowgear] [--zoo PYTHON] [--json FILE]

`make peer-faults` makes the environments and runs it. Each tool trains SAC on a pendulum that fails on command
(`faulty_pendulum.py`), 256 steps with a checkpoint every 64, in processes of its own. What is told is what was seen:
exit codes, the last line of standard error, files that load or do not, and a digest of the weights beside that of a run
without the fault. A stranger's file holds code that makes one empty file in the trial's own folder, and nothing else.
"""

import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path

import click
import peer_tools
import peer_workers
from rich.console import Console
from rich.table import Table

AT = {"kill": 210, "interrupt": 210, "terminate": 210, "full": 150, "cut": 150}  # steps; in one of two members: 75
PATIENCE_S = 90  # for an evaluation that may never end
WORK = f"SAC on Pendulum, {peer_workers.STEPS} steps, a checkpoint every {peer_workers.EVERY}"
HERE = Path(__file__).resolve().parent


class Trials:
    """One tool's trials, in a folder of their own."""

    def __init__(self, tool, root):
        self.tool, self.root = tool, root
        own = {"TMPDIR": root / "tmp", "JAX_COMPILATION_CACHE_DIR": root / "jax", "OMP_NUM_THREADS": 1}
        own["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = 0
        own["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {name: str(value) for name, value in own.items()}
        server = [tool.python, Path(__file__).with_name("peer_server.py"), *tool.imports]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen(server, env=environment, **pipes)
        assert self.server.stdout.readline() == "1\n", "an import starts threads, which a fork would lose"
        self.whole = self.load(self.newest(self.run("whole")[0]))
        self.ends_elsewhere = 0  # steps kept from which a run that goes on was seen to end elsewhere

    def run(self, name, fault=None, **options):
        """A run in the folder `name`, with a fault or without: the folder, and what the process said."""
        folder = self.root / name
        return folder, self.call(self.tool.train(folder, **options), fault)

    def call(self, command, fault=None, patience_s=600):
        return self.end(*self.start(command, fault), patience_s)

    def start(self, command, fault=None):
        """A process's id and the folder of its output."""
        own = Path(tempfile.mkdtemp(dir=self.root))
        marks = (
            {"FAULT": fault, "FAULT_STEP": str(AT.get(fault, 75)), "FAULT_MARK": str(own / "failed")} if fault else {}
        )
        job = {"argv": command, "set": marks, "cwd": str(self.root), "out": str(own / "out"), "err": str(own / "err")}
        return self.ask(job), own

    def end(self, process, own, patience_s=600):
        """What the process did; a code of None where it did not end."""
        late = threading.Timer(patience_s, os.kill, (process, signal.SIGKILL))
        late.start()
        code = self.ask({"wait": process})
        patient = late.is_alive()
        late.cancel()
        lines = [line.rstrip() for line in (own / "err").read_text().splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
        found = {"output": (own / "out").read_text(), "error": (errors or lines or [""])[-1][:300]}
        return {"code": code if patient else None} | found

    def ask(self, job):
        print(json.dumps(job), file=self.server.stdin, flush=True)
        return int(self.server.stdout.readline())

    def newest(self, folder):
        return self.tool.saved(folder)[-1]

    def load(self, path):
        """What a saved file of this tool's own holds, or why it does not load."""
        return peer_workers.look({"zoo": "sb3"}.get(self.tool.key, self.tool.key), path)

    def stopped(self, fault):
        """A run that `fault` ends: what is left of it, and where it ends when it goes on."""
        folder, done = self.run(fault, fault)
        facts = {"code": done["code"], "error": done["error"], "broken_files": 0, "kept_steps": 0}
        for path in self.tool.saved(folder)[-2:][::-1]:  # the newest first
            found = self.load(path)
            if "refused" not in found:
                facts["kept_steps"] = found["steps"]
                break
            facts |= {"broken_files": facts["broken_files"] + 1, "refused": found["refused"]}
        if self.tool.go_on and facts["kept_steps"] > self.ends_elsewhere:
            again = self.call(self.tool.go_on(folder, path, facts["kept_steps"]))
            end = self.load(self.newest(folder))
            facts |= {"went_on_code": again["code"], "same_end": end.get("digest") == self.whole["digest"]}
            self.ends_elsewhere = 0 if facts["same_end"] else facts["kept_steps"]
        return facts

    def member(self, fault, **options):
        """Of two members one fails."""
        folder, done = self.run(fault + "-".join(options), fault, members=2, **options)
        facts = {"code": done["code"], "error": done["error"]}
        saved = self.tool.saved(folder)
        if saved:
            found = self.load(saved[-1])
            facts |= {"saved_finite": found.get("finite"), "saved_steps": found.get("steps")}
        stopped = folder / "stopped.json"
        if stopped.exists():
            facts |= {"told": json.loads(stopped.read_text()), "other_same": self._other_is_same(folder)}
        return facts

    def _other_is_same(self, folder):
        """Whether an agent that goes on ends as it does beside a sound one: Lowgear's two policies, compared."""
        sound = self.root / "two-sound"
        if not sound.exists():
            self.call(self.tool.train(sound, members=2))
        names = [f"policies/agent{number}.safetensors" for number in range(2)]
        return any((folder / name).read_bytes() == (sound / name).read_bytes() for name in names)

    def together(self):
        """Two runs into one folder at the same time."""
        folder = self.root / "together"
        both = [self.start(self.tool.train(folder, seed=seed)) for seed in (0, 1)]
        ends = [self.end(*process) for process in both]
        facts = {"codes": sorted(end["code"] for end in ends), "errors": [end["error"] for end in ends if end["code"]]}
        alone = {path.name: path for path in self.tool.saved(self.root / "whole")}
        saved = self.tool.saved(folder)
        facts |= {"files": len(saved), "files_alone": len(alone)}
        pairs = [path for path in saved[-1:] if path.name in alone]
        if pairs:
            first, found = (self.load(path).get("digest") for path in (alone[pairs[0].name], pairs[0]))
            facts["newest_is_of_the_first"] = first == found
        return facts

    def twice(self):
        folder, _ = self.run("twice")
        first, second = self.newest(self.root / "whole"), self.newest(folder)
        if first.is_dir():
            first, second = (path / "policies/agent0.safetensors" for path in (first, second))
        same = self.load(self.newest(folder))["digest"] == self.whole["digest"]
        return {"same_weights": same, "same_bytes": first.read_bytes() == second.read_bytes()}

    def endless(self):
        done = self.call(self.tool.evaluate(self.root / "endless", self.newest(self.root / "whole")), None, PATIENCE_S)
        return {"code": done["code"], "error": done.get("error", "")}

    def strangers(self):
        folder, touch = self.root / "strangers", self.root / "tmp" / "code-ran"
        folder.mkdir()
        facts = {}
        for what, command in self.tool.hostile(self.newest(self.root / "whole"), folder, touch).items():
            touch.unlink(missing_ok=True)
            done = self.call(command)
            facts[what] = {"code_ran": touch.exists(), "code": done["code"], "error": done["error"]}
        return facts

    def truncated(self):
        path = self.newest(self.root / "whole")
        path = path / "policies/agent0.safetensors" if path.is_dir() else path
        half = self.root / f"half{path.suffix}"
        half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        done = self.call(self.tool.load(half))
        if done["code"] is None:
            return {"code": None, "error": done["error"]}
        return {"refused": done["error"]} if done["code"] else json.loads(done["output"].splitlines()[-1])

    def all(self):
        """Every fault by its name, in the order of the table."""
        faults = {
            "killed": lambda: self.stopped("kill"),
            "Ctrl-C": lambda: self.stopped("interrupt"),
            "SIGTERM": lambda: self.stopped("terminate"),
            "disk full": lambda: self.stopped("full"),
            "killed while writing": lambda: self.stopped("cut"),
            "two runs, one directory": self.together,
            "NaN observation in one of two": lambda: self.member("observation"),
            "NaN reward in one of two": lambda: self.member("reward"),
            "NaN observation, VecCheckNan": lambda: self.member("observation", guard=True),
            "one of two raises": lambda: self.member("raise"),
            "no time limit, evaluated": self.endless,
            "a stranger's file with code": self.strangers,
            "half a file": self.truncated,
            "same seed twice": self.twice,
        }
        if self.tool.key not in ("sb3", "sbx"):
            del faults["NaN observation, VecCheckNan"]  # a wrapper of Stable-Baselines3's
        return faults


def told(facts):
    """One line for a table; the file has the rest."""
    if "kept_steps" in facts:
        end = {True: "goes on bit for bit", False: "goes on, to another end"}.get(facts.get("same_end"), "")
        broken = f"{facts['broken_files']} broken file left" if facts["broken_files"] else ""
        return ", ".join(
            part for part in (f"exit {facts['code']}", f"{facts['kept_steps']} steps kept", broken, end) if part
        )
    if "codes" in facts:
        return (
            f"exits {facts['codes']}, {facts['files']} files (alone {facts['files_alone']}) {' '.join(facts['errors'])}"
        )
    if "same_bytes" in facts:
        words = {True: "same", False: "differ"}
        return f"weights {words[facts['same_weights']]}, bytes {words[facts['same_bytes']]}"
    if "refused" in facts:
        return f"refused: {facts['refused']}"
    if all(isinstance(value, dict) for value in facts.values()):
        return ", ".join(
            f"{what}: {'ran' if found['code_ran'] else 'did not run: ' + found['error']}"
            for what, found in facts.items()
        )
    if "code" in facts and facts["code"] is None:
        return f"no end within {PATIENCE_S} s"
    weights = {True: "saved weights finite", False: "saved weights not finite"}.get(facts.get("saved_finite"), "")
    return " ".join(part for part in (f"exit {facts.get('code')}", weights, facts.get("error", "")) if part)


def version_of(tool):
    if tool.key != "zoo":
        return version(tool.package)
    ask = f"from importlib.metadata import version; print(version({tool.package!r}))"
    return subprocess.run([tool.python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()


@click.command()
@click.option("--tools", default="sb3,zoo,sbx,rltools,lowgear")
@click.option("--faults", default="", help="Only those whose name has one of these in it.")
@click.option("--zoo", "zoo_python", default=".venv-zoo/bin/python", help="The interpreter that has RL Zoo.")
@click.option("--json", "json_path", default="results/peer-faults.json", show_default=True, type=Path)
def main(tools, faults, zoo_python, json_path):
    """The same faults, tried on each tool; those tried before stay in the file."""
    made = [
        peer_tools.StableBaselines(),
        peer_tools.Zoo(os.path.abspath(zoo_python)),
        peer_tools.Sbx(),
        peer_tools.RlTools(),
        peer_tools.Lowgear(),
    ]
    named = {tool.key: tool for tool in made}
    for key in tools.split(","):
        root = Path(tempfile.mkdtemp(prefix=f"peer-faults-{key}-"))
        (root / "tmp").mkdir()
        trials = Trials(named[key], root)
        table = Table("", f"{key} {version_of(named[key])}")
        for what, tried in trials.all().items():
            if any(word in what for word in faults.split(",")):
                facts = tried()
                table.add_row(what, told(facts))
                keep(
                    json_path,
                    named[key],
                    what,
                    json.loads(json.dumps(facts).replace(f"{root}/", "").replace(f"{HERE}/", "benchmarks/")),
                )
        Console(width=140).print(table)
        trials.server.stdin.close()
        trials.server.wait()
        shutil.rmtree(root)


def keep(path, tool, what, facts):
    """Write down one fault; what is known of others stays."""
    kept = json.loads(path.read_text()) if path.exists() else {"work": WORK, "tools": {}}
    entry = kept["tools"].setdefault(tool.key, {"faults": {}})
    entry |= {"version": version_of(tool), "date": datetime.date.today().isoformat()}
    entry["faults"][what] = facts
    kept["machine"] = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
