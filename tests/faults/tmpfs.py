"""A run on a file system of its own, within a namespace: `unshare -rm python -m tests.faults.tmpfs WHAT FOLDER WHOLE`.

It is too small at first, and enlarged where the run has stopped, or while it goes on; or it is read-only.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.faults.children import arguments_of, steer, train

STEPS = 416
PAGE_KB = 4


def allowed() -> bool:
    """Whether file systems can be mounted in a namespace of one's own."""
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", "/mnt"]
    return (
        shutil.which("unshare") is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0
    )


def mount(place: Path, options: str) -> None:
    """A file system, or what it is from now on."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)


def main() -> None:
    """The run on it, copied to FOLDER/copy."""
    what, folder, whole = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    place = folder / "disk"
    place.mkdir()
    run, enlarged = place / "run", "remount,size=64m"
    if what == "read-only":
        mount(place, "size=64m")
        shutil.copytree(whole, run)
        read_only(place, run)
    else:
        files = [path for path in whole.rglob("*") if path.is_file()]
        kb = sum(-(-path.stat().st_size // (1024 * PAGE_KB)) * PAGE_KB for path in files)
        mount(place, f"size={int(kb * 0.7)}k")
        command = [sys.executable, "-m", "lowgear", *arguments_of(run, STEPS), "--on-write-error", what]
        actions = [("going on meanwhile", lambda: mount(place, enlarged))] if what == "go-on" else []
        code, said = steer(command, dict(os.environ), actions)
        print(said)
        assert "No space left on device" in said
        assert "Traceback" not in said
        assert code == (0 if what == "go-on" else 2)
        if what == "stop":
            mount(place, enlarged)
            assert train(run, STEPS).returncode == 0
    shutil.copytree(run, folder / "copy")


def read_only(place: Path, run: Path) -> None:
    """Every command says so in one line; then the run is whole as it was."""
    mount(place, "remount,ro")
    for arguments in (
        ["train", "--resume", str(run), "--steps", "1000"],
        ["evaluate", str(run), "--episodes", "1"],
        ["train", "envpool:Pendulum-v1", "--steps", "64", "--out", str(place / "other")],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "lowgear", *arguments], capture_output=True, text=True, check=False
        )
        print(done.stderr)
        assert done.returncode == 2
        assert "Read-only file system" in done.stderr
        assert "Traceback" not in done.stderr
    mount(place, "remount,rw")


if __name__ == "__main__":
    main()
