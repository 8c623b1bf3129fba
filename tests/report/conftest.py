"""A page to open in browsers."""

from pathlib import Path

import pytest

from lowgear.report import assemble
from tests.fixtures.runs import evaluate, make_run, write_report


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = evaluate(make_run(tmp_path_factory.mktemp("runs") / "car"))
    with pytest.MonkeyPatch.context() as patch:  # a thousand frames take a minute to draw
        patch.setattr(assemble, "FRAMES_AT_MOST", 100)
        return write_report(run, "--episodes", 4)
