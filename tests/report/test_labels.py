"""Labels keep off each other, stay inside the frame and near their points."""

import itertools
import math

import numpy as np
import pytest

from lowgear.report.labels import Box, Label, disc, leader, place, samples

FRAME = Box(0, 0, 400, 200)
NOTHING = np.zeros((0, 3))


def test_a_lone_label_lies_close_to_its_point() -> None:
    label = Label(200, 100, 40, 10)
    (box,) = place([label], NOTHING, FRAME)
    assert math.dist(*leader(label, box)) <= 5.0


@pytest.mark.parametrize("corner", [(0, 0), (400, 200), (0, 200), (400, 0)])
def test_labels_of_points_in_the_corners_stay_inside(corner: tuple[float, float]) -> None:
    (box,) = place([Label(*corner, 40, 10)], NOTHING, FRAME)
    assert box.within(FRAME)


def test_a_crowd_does_not_overlap() -> None:
    crowd = [Label(190 + 3 * i, 100 + (-1) ** i, 44, 10) for i in range(12)]
    drawn = np.array([row for label in crowd for row in disc((label.x, label.y), 3, 30.0)])
    boxes = place(crowd, drawn, FRAME)
    assert all(box.within(FRAME) for box in boxes)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_a_label_keeps_off_a_line() -> None:
    label = Label(200, 100, 40, 10)
    (box,) = place([label], np.array(samples([(0, 100), (400, 100)], 3.0)), FRAME)
    assert box.bottom > 100 or box.top < 100


def test_samples_follow_the_line() -> None:
    assert samples([(0, 0), (4, 0)], 0.5) == [(0, 0, 0.5), (2, 0, 0.5), (4, 0, 0.5)]
    assert samples([], 0.5) == []
