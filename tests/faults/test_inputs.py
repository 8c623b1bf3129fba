"""Damaged and hostile files: every loader takes them or refuses them in one line. `make test-slow` has a million."""

import pytest

from tests.fixtures.loaders import FORGIVING, MILLION, loaders, quick_statistics

PART = 10  # of the million; other inputs than those


@pytest.mark.faults
@pytest.mark.parametrize("name", MILLION)
def test_inputs(tmp_path, counts, name):
    inputs = range(MILLION[name], MILLION[name] + MILLION[name] // PART)
    with quick_statistics():
        taken = loaders(tmp_path / "files")[name].feed(name, inputs)
    assert taken == len(inputs) if name in FORGIVING else 0 < taken < len(inputs)
    counts["inputs tried"] += len(inputs)
    counts["  taken, as what they hold is within its limits"] += taken
    counts["  refused in one line"] += len(inputs) - taken
