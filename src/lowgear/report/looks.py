"""What each variant and each gear looks like in a picture: a colour of its own, and a marker."""

from typing import NamedTuple


class Look(NamedTuple):
    """How a variant is drawn, in a colour of Okabe and Ito (2008) that the colour-blind can tell from the others."""

    colour: str
    marker: str
    size: float  # of the marker, in points


LOOKS = {
    "asymmetric": Look("#0072B2", "o", 5.5),
    "separate-buffers": Look("#CC79A7", "D", 5.0),
    "fixed-cost": Look("#D55E00", "s", 5.5),
    "no-cost": Look("#E69F00", "P", 7.0),
    "small-only": Look("#009E73", "v", 7.0),
    "large-only": Look("#000000", "^", 7.0),
}
UNKNOWN = Look("#777777", "X", 6.0)
PAY_NOTHING = ("no-cost", "small-only", "large-only")
GEARS = ("#56B4E9", "#E69F00", "#D55E00")  # cheap, between, dear: also lighter to darker in print


def look_of(variant: str) -> Look:
    """How a variant is drawn; one of another version of Lowgear is grey."""
    return LOOKS.get(variant, UNKNOWN)


def place(variant: str) -> int:
    """Where a variant stands among the others, those of other versions last."""
    return list(LOOKS).index(variant) if variant in LOOKS else len(LOOKS)


def gear_colour(gear: int, gears: int) -> str:
    """Of one gear among so many."""
    return GEARS[0] if gear == 0 else GEARS[2] if gear == gears - 1 else GEARS[1]


def gear_name(gear: int, gears: int) -> str:
    """What a person calls it."""
    return "small gear" if gear == 0 else "large gear" if gear == gears - 1 else f"gear {gear}"
