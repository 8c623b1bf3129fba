"""What each variant looks like in a picture: a colour and a marker of its own."""

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
PAY_NOTHING = ("no-cost", "small-only", "large-only")
