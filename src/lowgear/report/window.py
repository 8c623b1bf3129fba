"""An episode in a window, in the simulation's own time: drawn while it is watched, by Tk and Pillow.

Space stops and goes on, the right arrow takes one step, Escape or Q closes the window.
"""

import os
import sys
import time
from typing import Any

from PIL import Image

from lowgear import LowgearError
from lowgear.report.film import annotate, gear_strip
from lowgear.report.playback import Playback
from lowgear.report.simulator import Simulator

TICK_MS = 10


def has_display() -> bool:
    """Whether a window can be opened here: there is a screen, and Python was built with Tk."""
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        return False
    try:
        import tkinter  # noqa: F401

        from PIL import ImageTk  # noqa: F401
    except ImportError:
        return False
    return True


class EpisodeWindow:
    """Takes the steps of an episode again, as fast as the simulation's clock runs, and draws what it comes to."""

    def __init__(self, playback: Playback, simulator: Simulator, seed: int) -> None:
        import tkinter

        assert simulator.render is not None
        self._playback, self._simulator, self._render = playback, simulator, simulator.render
        self.step, self._running = 0, True
        try:
            self._root = tkinter.Tk()
        except tkinter.TclError as error:
            raise LowgearError(f"no window can be opened ({error}): write a video with --out FILE.webp") from None
        header = playback.episode.policy.header
        self._root.title(f"{header.task}: {header.variant}, λ {header.cost_coefficient:.3g} – Lowgear")
        self._label = tkinter.Label(self._root, borderwidth=0)
        self._label.pack()
        for name, action in {
            "<space>": self._turn,
            "<Right>": self._advance_one,
            "<Escape>": self.close,
            "q": self.close,
        }.items():
            self._root.bind(name, lambda _, action=action: action())  # type: ignore[misc]
        simulator.env.reset([seed])
        self._strip: Image.Image | None = None
        self._shown: Any = None  # Tk keeps no reference to what it shows
        self._start()

    def show(self) -> None:
        """Until it is closed."""
        self._draw()
        self._root.after(TICK_MS, self._tick)
        self._root.mainloop()

    def close(self) -> None:
        """Close it."""
        self._root.destroy()

    @property
    def _last(self) -> int:
        return self._playback.episode.steps - 1

    def _start(self) -> None:
        self._began = time.monotonic() - self.step * self._playback.step_s

    def _turn(self) -> None:
        self._running = not self._running
        self._start()

    def _advance_one(self) -> None:
        self._running = False
        self._go(self.step + 1)

    def _tick(self) -> None:
        if self._running:
            self._go(int((time.monotonic() - self._began) / self._playback.step_s))
        self._root.after(TICK_MS, self._tick)

    def _go(self, wanted: int) -> None:
        wanted = min(wanted, self._last)
        if wanted <= self.step:
            return
        for number in range(self.step, wanted):
            self._simulator.env.step(self._playback.episode.action[number][None])
        self.step = wanted
        self._draw()

    def _draw(self) -> None:
        from PIL import ImageTk

        frame = Image.fromarray(self._render())
        self._strip = self._strip or gear_strip(self._playback, frame.width)
        self._shown = ImageTk.PhotoImage(annotate(frame, self._strip, self._playback, self.step), master=self._root)
        self._label.configure(image=self._shown)
