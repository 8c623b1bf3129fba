"""Full disks, lost permissions, read-only directories: the run says so, stops cleanly or goes on, and loses nothing."""

import errno
import os
import shutil
import subprocess
import sys

import pytest

from tests.faults import tmpfs
from tests.faults.children import Fault, arguments_of, steer, train
from tests.faults.conftest import same, sound
from tests.faults.trials import failing, goes_on

STEPS = 416  # checkpoints at 128, 256 and 384, and where it ends
TARGETS = [
    (Fault("write", "rows-", at=2), errno.ENOSPC),
    (Fault("fsync", "rows-"), errno.EIO),
    (Fault("write", "state-", at=2), errno.EDQUOT),
    (Fault("rename", "latest.json", at=2), errno.EACCES),
    (Fault("write", "metrics.jsonl", at=2), errno.ENOSPC),
    (Fault("open", "agent0.safetensors", at=2), errno.EROFS),
    (Fault("write", "agent0-best.safetensors"), errno.ENOSPC),
    (Fault("", at=30), errno.EROFS),  # everything
]
IDS = [f"{fault.call or 'all'}-{fault.file}-{errno.errorcode[error]}" for fault, error in TARGETS]


def refused(done, what="could not write"):
    assert done.returncode == 2, done.stderr
    assert f"lowgear: error: {what}" in done.stderr
    assert "Traceback" not in done.stderr


def count(counts, kind):
    counts["faults injected"] += 1
    counts[f"  {kind}"] += 1


@pytest.mark.faults
@pytest.mark.parametrize(("fault", "error"), TARGETS, ids=IDS)
def test_a_run_stops_at_its_last_checkpoint(tmp_path, unbroken, library, counts, fault, error):
    run = tmp_path / "run"
    refused(train(run, STEPS, env=failing(library, run, fault, error)))
    if fault.call:  # where every call is refused, so is the one that deletes
        assert not list(run.rglob("*.partial"))
    sound(run)
    assert train(run, STEPS).returncode == 0
    assert not list(run.rglob("*.partial"))
    same(run, unbroken(STEPS))
    count(counts, f"{os.strerror(error)}, run stopped and resumed")


@pytest.mark.faults
@pytest.mark.parametrize(("fault", "error"), TARGETS, ids=IDS)
def test_a_run_goes_on(tmp_path, unbroken, library, counts, fault, error):
    goes_on(tmp_path / "run", unbroken, library, fault, error, STEPS)
    count(counts, f"{os.strerror(error)}, run went on")


@pytest.mark.faults
def test_a_disk_that_stays_full(tmp_path, unbroken, library, counts):
    """The run goes on to its end, says that its end is not on disk, and keeps the checkpoint from before."""
    run, fault = tmp_path / "run", Fault("write", "state-", at=2)
    refused(train(run, STEPS, "--on-write-error", "go-on", env=failing(library, run, fault, errno.ENOSPC)))
    assert sound(run) == 128
    killed = failing(library, run, fault._replace(at=1), errno.ENOSPC, times=1)
    go_on = [sys.executable, "-m", "lowgear", *arguments_of(run, STEPS), "--on-write-error", "go-on"]
    process = subprocess.Popen(go_on, env=killed, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert any("going on meanwhile" in line for line in process.stderr)
    process.kill()
    process.communicate()
    assert sound(run) >= 128
    assert train(run, STEPS).returncode == 0
    same(run, unbroken(STEPS))
    count(counts, "disk full to the end, then killed while going on")


def without_rights():
    """What lets even root be refused by a file's mode."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root can't be refused without setpriv")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.faults
@pytest.mark.parametrize("mode", ["stop", "go-on"])
def test_permissions_are_revoked(tmp_path, unbroken, counts, mode):
    run = tmp_path / "run"
    command = [*without_rights(), sys.executable, "-m", "lowgear", *arguments_of(run, STEPS), "--on-write-error", mode]
    folders = [run, run / "checkpoint", run / "policies"]
    revoke = lambda: [folder.chmod(0o555) for folder in folders]  # noqa: E731
    allow = lambda: [folder.chmod(0o755) for folder in folders]  # noqa: E731
    actions = [("evaluated at 96 steps", revoke)]
    code, said = steer(command, dict(os.environ), actions + [("going on", allow)] * (mode == "go-on"))
    allow()
    assert "could not write" in said
    assert "Permission denied" in said
    assert "Traceback" not in said
    assert code == (0 if mode == "go-on" else 2)
    sound(run)
    assert mode == "go-on" or train(run, STEPS).returncode == 0
    same(run, unbroken(STEPS))
    count(counts, f"permissions revoked while it trained ({mode})")


@pytest.mark.faults
@pytest.mark.parametrize("what", ["stop", "go-on", "read-only"])
def test_a_real_disk(tmp_path, unbroken, counts, what):
    """A file system of its own: too small and then enlarged, or read-only."""
    whole = unbroken(STEPS)
    command = ["unshare", "-rm", sys.executable, "-m", "tests.faults.tmpfs", what, str(tmp_path), str(whole.path)]
    if not tmpfs.allowed():
        pytest.skip("file systems can't be mounted here")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    same(tmp_path / "copy", whole)
    count(counts, "a real file system, read-only" if what == "read-only" else f"a real full disk ({what})")
