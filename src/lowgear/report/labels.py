"""Where the labels of a picture go: near their points, off each other, and off what is drawn where there is room.

Plain geometry in points of 1/72 inch; what draws the labels is elsewhere.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Segment = tuple[tuple[float, float], tuple[float, float]]
DISTANCES = (5.0, 7.5, 11.0, 16.0, 22.0, 30.0, 40.0, 52.0, 66.0, 84.0)
DIRECTIONS = 24
PAD = 1.5  # kept free around each label
FORBIDDEN = 1e4  # cost of lying on another label or outside the frame
TANGLED = 40.0  # cost of a leader that crosses another one, or a label
FAR = 0.3  # cost of each point of distance
STRUCK = 1.2  # a leader closer than this to what is drawn crosses it
OWN = 4.0  # around a label's own point, crossing is free
EDGE = 8  # rows for the edge of a marker
PASSES = 4


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def around(cls, x: float, y: float, width: float, height: float) -> "Box":
        """The rectangle with its centre at (x, y)."""
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def centre(self) -> tuple[float, float]:
        """Its middle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share any area."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def within(self, other: "Box") -> bool:
        """Whether it lies inside the other one."""
        return (
            other.left <= self.left
            and self.right <= other.right
            and other.bottom <= self.bottom
            and self.top <= other.top
        )

    def padded(self) -> "Box":
        """With the room around it that is kept free."""
        return Box(self.left - PAD, self.bottom - PAD, self.right + PAD, self.top + PAD)


@dataclass(frozen=True)
class Label:
    """What is to be placed: the point it names and its size."""

    x: float
    y: float
    width: float
    height: float


def place(labels: Sequence[Label], drawn: FloatArray, frame: Box) -> list[Box]:
    """A box inside `frame` for every label; `drawn` is (n, 3): x, y and how bad it is to cover that point.

    Each label takes the cheapest of the candidates around its point, and again in further passes once the others have
    taken theirs.
    """
    ranked = [_candidates(label, drawn, frame) for label in labels]
    boxes = [candidates[0][1] for candidates in ranked]
    for _ in range(PASSES):
        for i, label in enumerate(labels):
            others = [(labels[j], box) for j, box in enumerate(boxes) if j != i]
            boxes[i] = _cheapest(label, ranked[i], others)
    return boxes


def leader(label: Label, box: Box) -> Segment:
    """The line from the label's point to the nearest point of its box."""
    end = min(max(label.x, box.left), box.right), min(max(label.y, box.bottom), box.top)
    return (label.x, label.y), end


def samples(
    points: Sequence[tuple[float, float]], weight: float, step: float = 2.0
) -> list[tuple[float, float, float]]:
    """A line through the points as rows of `drawn`, one every `step`."""
    rows = [(x, y, weight) for x, y in points[:1]]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        count = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / step))
        rows += [(x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count, weight) for i in range(1, count + 1)]
    return rows


def disc(centre: tuple[float, float], radius: float, weight: float) -> list[tuple[float, float, float]]:
    """A marker as rows of `drawn`: its middle and its edge."""
    x, y = centre
    angles = [2 * math.pi * turn / EDGE for turn in range(EDGE)]
    edge = [(x + radius * math.cos(angle), y + radius * math.sin(angle), weight / EDGE) for angle in angles]
    return [(x, y, weight), *edge]


def _candidates(label: Label, drawn: FloatArray, frame: Box) -> list[tuple[float, Box]]:
    """Boxes around the label's point with what each costs by itself, cheapest first."""
    found = []
    for distance in DISTANCES:
        for turn in range(DIRECTIONS):
            angle = 2 * math.pi * turn / DIRECTIONS
            x = label.x + math.cos(angle) * (label.width / 2 + distance)
            y = label.y + math.sin(angle) * (label.height / 2 + distance)
            box = Box.around(x, y, label.width, label.height)
            found.append((_cost_alone(label, box, drawn, frame), box))
    return sorted(found, key=lambda candidate: candidate[0])


def _cost_alone(label: Label, box: Box, drawn: FloatArray, frame: Box) -> float:
    wide = box.padded()
    covered = (drawn[:, 0] > wide.left) & (drawn[:, 0] < wide.right)
    covered &= (drawn[:, 1] > wide.bottom) & (drawn[:, 1] < wide.top)
    covered |= _struck(leader(label, box), drawn)
    length = math.dist(*leader(label, box))
    return length * FAR + float(drawn[covered, 2].sum()) + FORBIDDEN * (not wide.within(frame))


def _struck(line: Segment, drawn: FloatArray) -> npt.NDArray[np.bool_]:
    """What lies on a leader, but for the surroundings of the point where it begins."""
    start, end = np.array(line)
    way, offset = end - start, drawn[:, :2] - start
    share = np.clip(offset @ way / max(float(way @ way), 1e-9), 0, 1)
    distance = np.hypot(*(offset - share[:, None] * way).T)
    struck: npt.NDArray[np.bool_] = (distance < STRUCK) & (np.hypot(*offset.T) > OWN)
    return struck


def _cheapest(label: Label, ranked: Sequence[tuple[float, Box]], others: Sequence[tuple[Label, Box]]) -> Box:
    best, least = ranked[0][1], math.inf
    for alone, box in ranked:
        if alone >= least:
            break
        cost = alone + sum(_cost_beside(label, box, other, taken) for other, taken in others)
        if cost < least:
            best, least = box, cost
    return best


def _cost_beside(label: Label, box: Box, other: Label, taken: Box) -> float:
    wide, mine, theirs = box.padded(), leader(label, box), leader(other, taken)
    tangled = _cross(mine, theirs) + _enters(mine, taken) + _enters(theirs, wide)
    return FORBIDDEN * wide.overlaps(taken) + TANGLED * tangled


def _cross(one: Segment, other: Segment) -> bool:
    def side(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    return side(*one, other[0]) * side(*one, other[1]) < 0 and side(*other, one[0]) * side(*other, one[1]) < 0


def _enters(segment: Segment, box: Box) -> bool:
    return any(box.left < x < box.right and box.bottom < y < box.top for x, y, _ in samples(segment, 0.0, 3.0))
