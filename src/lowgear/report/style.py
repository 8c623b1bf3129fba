"""How each variant and each gear is drawn: a colour of its own, and a marker."""

from typing import NamedTuple


class Style(NamedTuple):
    """How something is drawn, in a colour of Okabe and Ito (2008) that the colour-blind can tell from the others."""

    colour: str
    marker: str = ""  # Matplotlib's letter; none: no marker
    size: float = 5.0  # of the marker, in points


VARIANTS = {
    "asymmetric": Style("#0072B2", "o", 5.5),
    "separate-buffers": Style("#CC79A7", "D", 5.0),
    "fixed-cost": Style("#D55E00", "s", 5.5),
    "no-cost": Style("#E69F00", "P", 7.0),
    "small-only": Style("#009E73", "v", 7.0),
    "large-only": Style("#000000", "^", 7.0),
}
UNKNOWN = Style("#777777", "X", 6.0)
GEARS = ("#56B4E9", "#E69F00", "#D55E00")  # cheap, between, dear: also lighter to darker in print
GREY = "#555555"


def variant_style(variant: str) -> Style:
    """How a variant is drawn; one of another version of Lowgear is grey."""
    return VARIANTS.get(variant, UNKNOWN)


def variant_rank(variant: str) -> int:
    """Where a variant stands among the others, those of other versions last."""
    return list(VARIANTS).index(variant) if variant in VARIANTS else len(VARIANTS)


def pays(variant: str) -> bool:
    """Whether a cost coefficient means something to the variant."""
    return variant not in ("no-cost", "small-only", "large-only")


def gear_style(gear: int, gears: int) -> Style:
    """Of one gear among so many."""
    return Style(GEARS[0] if gear == 0 else GEARS[2] if gear == gears - 1 else GEARS[1], "s", 8.0)


def gear_name(gear: int, gears: int) -> str:
    """What a person calls it."""
    return "small gear" if gear == 0 else "large gear" if gear == gears - 1 else f"gear {gear}"
