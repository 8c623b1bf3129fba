"""EnvPool's model files, corrected where its MuJoCo reads one of them unlike every other MuJoCo.

Only dm_control's finger needs it. A contact is as soft as the inverse weights of its two bodies (mjModel's
`body_invweight0`) are large. The spinner turns about its centre of mass, which no push moves, so its inverse weight
in translation is 0. MuJoCo 3.5.0 and 3.6.0 (EnvPool 1.2.5 carries the latter) put the one in rotation, 26.2 per kg m²,
in place of a 0: the fingertip sinks into the spinner and hardly turns it, and a random policy scores 0.1 instead of
0.55. Versions up to 3.4.0 and from 3.7.0 keep the 0. With a part of the spinner that touches nothing moved by a
hundredth of a millimetre, the inverse weight is 5e-12 per kg: no longer 0, and as good as 0 to every version.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FINGERS = ("FingerSpin-v1", "FingerTurnEasy-v1", "FingerTurnHard-v1")
MODELS = Path("mujoco", "assets_dmc")
CENTRED = '<geom name="spinner_decoration" type="cylinder" fromto="0 -.045 0 0 .045 0"'
MOVED = '<geom name="spinner_decoration" type="cylinder" fromto="1e-5 -.045 0 1e-5 .045 0"'


@contextmanager
def corrected(env_id: str, base_path: str) -> Iterator[str]:
    """The folder to make `env_id` from: `base_path`, or a corrected copy that is deleted afterwards.

    EnvPool reads models while it makes a pool and not later. Every call has a folder of its own, so nothing is
    shared between processes.
    """
    if env_id not in FINGERS:
        yield base_path
        return
    installed = Path(base_path) / MODELS
    model = (installed / "finger.xml").read_text(encoding="utf-8")
    if model.count(CENTRED) != 1:
        raise ValueError(f"{installed / 'finger.xml'} is not the one of envpool-assets==0.3.0; install that")
    with tempfile.TemporaryDirectory(prefix="lowgear-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / MODELS
        shutil.copytree(installed / "common", copy / "common")  # what finger.xml includes
        (copy / "finger.xml").write_text(model.replace(CENTRED, MOVED), encoding="utf-8")
        yield folder
