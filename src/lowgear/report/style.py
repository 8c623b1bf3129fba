"""Every colour of the report: one for each meaning, in figures, in the page and in videos.

What runs the small gear alone has the small gear's colour, what runs the large one alone the large one's. Each colour
is there twice: for paper and light pages, and for dark grounds. After Okabe and Ito (2008) the colour-blind can tell
them apart, and each stands out from its ground by 3 to 1 at least. Where two are alike to some, their markers differ.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lowgear.policy.gears import Gear, small_of


class Style(NamedTuple):
    """How something is drawn."""

    colour: str  # a light one, of COLOURS
    marker: str = ""  # Matplotlib's letter; none: no marker
    size: float = 5.0  # of the marker, in points


COLOURS = {  # by meaning: on light grounds, on dark ones
    "asymmetric": ("#0072B2", "#4BA8E0"),
    "hold": ("#8A8F98", "#858C96"),  # the gear that repeats the last action
    "small": ("#008862", "#34BD92"),
    "between": ("#7A5AA6", "#B79CE6"),  # gears that are neither the cheapest nor the dearest
    "large": ("#D55E00", "#F08A3C"),
    "fixed-cost": ("#16191D", "#E9ECEF"),
    "no-cost": ("#6B5B00", "#E6C23A"),
    "separate-buffers": ("#B85F92", "#DD94BD"),
    "fit": ("#7B4B2A", "#C9966F"),  # rivals of the asymmetric agents in `lowgear study rivals`
    "student": ("#A3295B", "#E57BA6"),
    "pruned": ("#5D6B00", "#B7C440"),
    "unknown": ("#777777", "#9A9A9A"),  # variants of other versions of Lowgear
    "plain": ("#58616C", "#A0A9B4"),  # letters and lines that stand for no controller
}
MARKERS = {  # with their sizes; the variants in the order of legends
    "asymmetric": ("o", 5.5),
    "separate-buffers": ("D", 5.0),
    "fixed-cost": ("s", 5.5),
    "no-cost": ("P", 7.0),
    "small-only": ("v", 7.0),
    "large-only": ("^", 7.0),
}
RIVALS = {"with hold": ("h", 6.5), "fit": ("s", 6.0), "student": ("D", 5.0), "pruned": ("X", 6.5)}  # drawn beside them
OWN = ("*", 11.0)  # marks the setting that is deployed
GREY = COLOURS["plain"][0]
FILM = {"ground": "#16181D", "ink": "#FFFFFF", "soft": "#C9CED6"}  # of a video's margin


def colour(meaning: str, dark: bool = False) -> str:
    """Of a variant or a gear, by its name in COLOURS; small-only is drawn as the small gear is."""
    name = meaning.removesuffix("-only")
    return COLOURS.get(name, COLOURS["unknown"])[dark]


def variant_style(variant: str) -> Style:
    """How a variant is drawn; one of another version of Lowgear is grey."""
    return Style(colour(variant if variant in MARKERS else "unknown"), *MARKERS.get(variant, ("X", 6.0)))


def rival_style(kind: str) -> Style:
    """How a rival of the asymmetric agents is drawn, or a variant; a gear that holds gives its agents its colour."""
    if kind not in RIVALS:
        return variant_style(kind)
    return Style(colour("hold" if kind == "with hold" else kind), *RIVALS[kind])


def variant_rank(variant: str) -> int:
    """Where a variant stands among the others, those of other versions last."""
    return list(MARKERS).index(variant) if variant in MARKERS else len(MARKERS)


def pays(variant: str) -> bool:
    """Whether a cost coefficient means something to the variant."""
    return variant not in ("no-cost", "small-only", "large-only")


def gear_style(gear: int, gears: Sequence[Gear]) -> Style:
    """Of one gear among the others."""
    return Style(colour(_meaning(gear, gears)), "s", 8.0)


def gear_on_dark(gear: int, gears: Sequence[Gear]) -> str:
    """The gear's colour on a dark ground."""
    return colour(_meaning(gear, gears), dark=True)


def gear_name(gear: int, gears: Sequence[Gear]) -> str:
    """What a person calls it."""
    names = {"hold": "hold", "small": "small gear", "large": "large gear"}
    return names.get(_meaning(gear, gears), f"gear {gear}")


def themes() -> tuple[str, dict[str, str]]:
    """For the page: a style sheet that names every colour in both themes, and the name of each light one."""
    rules = "".join(f"--{name}:light-dark({light},{dark});" for name, (light, dark) in COLOURS.items())
    return f":root{{{rules}}}\n", {light: f"--{name}" for name, (light, _) in COLOURS.items()}


def _meaning(gear: int, gears: Sequence[Gear]) -> str:
    """The dearest is the large one, also where it is the only one that computes."""
    if not gears[gear].computes:
        return "hold"
    return "large" if gear == len(gears) - 1 else "small" if gear == small_of(gears) else "between"
