"""Activations of generated C: which ones a controller has, their functions, and their loops over a row."""

from collections.abc import Iterable

from lowgear.export.c_maths import EXP_ERROR, TANH_ERROR, exp_loops, exp_source, tanh_loops, tanh_source
from lowgear.export.layers import ExportedNetworks, activation_of, holds
from lowgear.policy.file import PolicyHeader

# What each is in C, where it is a function of its own; NaN stays NaN. `small` is exp(-|x|).
RULES = {
    "relu": "return x < 0.0f ? 0.0f : x; /* NaN stays NaN */",
    "elu": """const float below = small - 1.0f;
    return x < 0.0f ? below : x; /* NaN stays NaN */""",
    "silu": "return x * (x < 0.0f ? x < -87.0f ? 0.0f : small : 1.0f) / (1.0f + small); /* NaN stays NaN */",
    "leaky_relu": "return x < 0.0f ? 0.01f * x : x; /* NaN stays NaN */",
}
NEEDS_EXP = ("elu", "silu")
CLIP = "clip"  # to [-1, 1], as some frozen gears have it instead of tanh


def functions_of(header: PolicyHeader, networks: ExportedNetworks) -> set[str]:
    """Activations, hidden ones and the last, that a controller has."""
    found = set() if networks.master is None else {header.activation}
    for gear, layers in networks.gears.items():
        found |= {header.gears[gear].squash} | ({activation_of(header, gear)} if len(layers) > 1 else set())
    return found | ({CLIP} if holds(header) else set())


def libm_of(functions: Iterable[str]) -> list[str]:
    """What they take from math.h where they are told to."""
    used = set(functions)
    return ["tanhf"] * ("tanh" in used) + ["expf"] * bool(used.intersection(NEEDS_EXP))


def accuracy_of(functions: Iterable[str]) -> str:
    """What the comment at the top of the source says of them."""
    taken = libm_of(functions)
    said = [f"Own tanh: within {TANH_ERROR:g} of the true one. "] * ("tanhf" in taken)
    return "".join(said + [f"Own exp: within {EXP_ERROR:g}, relative. "] * ("expf" in taken))


def activation_source(name: str, functions: Iterable[str]) -> str:
    """The functions, those of mathematics first."""
    used = set(functions)
    parts = [tanh_source(name)] if "tanh" in used else []
    parts += [exp_source(name)] if used.intersection(NEEDS_EXP) else []
    for activation, rule in RULES.items():
        if activation in used:
            parts.append(_function(name, activation, rule))
    if CLIP in used:
        parts.append(_function(name, "unit", "return x < -1.0f ? -1.0f : x > 1.0f ? 1.0f : x; /* NaN stays NaN */"))
    return "\n".join(parts)


def activation_loops(name: str, loop: str, row: str, activation: str) -> str:
    """An activation of a row, in place; with another row, `small`, where it needs exp."""
    if activation == "tanh":
        return tanh_loops(name, loop, row)
    if activation in NEEDS_EXP:
        exps = exp_loops(name, loop, row, "small")
        return f"{exps}    {loop}\n        {row}[j] = {name}_{activation}({row}[j], small[j]);\n"
    return f"    {loop}\n        {row}[j] = {name}_{'unit' if activation == CLIP else activation}({row}[j]);\n"


def _function(name: str, what: str, body: str) -> str:
    return f"""\
static inline float {name}_{what}(float x{", float small" if what in NEEDS_EXP else ""})
{{
    {body}
}}
"""
