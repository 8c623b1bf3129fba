"""From run directories to figures, tables and one page; it needs the extra `report`.

`runs` reads a directory and `settings` aggregates its evaluation; `selection` says what to play, `simulator` and
`playback` play it. `frontier`, `curves`, `scatter`, `profiles`, `sweeps` and `timeline` describe a `figure` each, which
`matplotlib_figure` draws for print and `assets/chart.js` in the `page`. `assemble` does all of it.
"""

import sys

from lowgear import CallableRoom

sys.modules[__name__].__class__ = CallableRoom  # lowgear.report(...)
