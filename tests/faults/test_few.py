"""A few of the faults of `make test-faults`, for the default suite."""

import errno
import random
from collections import Counter

from click.testing import CliRunner

from lowgear.commands.cli import cli
from tests.faults.children import Fault, train
from tests.faults.conftest import same
from tests.faults.trials import QUICK, goes_on, kill


def test_kills_between_writes(tmp_path, unbroken, library):
    faults = [Fault("rename", "latest.json", "after"), Fault("evaluation"), Fault("write", "state-", "half")]
    run, counts = tmp_path / "run", Counter()
    assert kill(run, QUICK, faults, library, random.Random(0), counts) == []
    assert counts["kills survived"] == 3
    done = train(run, QUICK)
    assert done.returncode == 0, done.stderr
    same(run, unbroken(QUICK))


def test_a_full_disk_that_is_freed_again(tmp_path, unbroken, library):
    goes_on(tmp_path / "run", unbroken, library, Fault("write", "state-"), errno.ENOSPC, QUICK)


def test_evaluation_repeats_itself(unbroken):
    run, found = unbroken(QUICK), []
    for seed in (0, 0, 1):
        arguments = ["evaluate", str(run.path), "--episodes", "3", "--json", "--seed", str(seed)]
        printed = CliRunner().invoke(cli, arguments)
        assert printed.exit_code == 0, printed.output
        found.append((printed.stdout, run.evaluation.read_bytes()))
    assert found[0] == found[1] != found[2]
    run.evaluation.unlink()
