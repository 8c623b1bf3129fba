"""MuJoCo chooses how it draws when it is first imported, whichever test does that."""

import ctypes.util
import os
import sys

if sys.platform == "linux" and not os.environ.get("DISPLAY") and ctypes.util.find_library("EGL"):
    os.environ.setdefault("MUJOCO_GL", "egl")
