"""C functions of the controller's networks: one product for each shape, one function for each gear and the master."""

from collections.abc import Sequence
from typing import NamedTuple

from lowgear.export.c_activations import NEEDS_EXP, activation_loops
from lowgear.export.c_arrays import Shape, array, layer_arrays, shape_of
from lowgear.export.layers import ExportedLayer, activation_of, holds
from lowgear.export.plain import plain
from lowgear.policy.arrays import FloatArray
from lowgear.policy.file import Policy, PolicyHeader
from lowgear.policy.networks import Clip


def columns_source(name: str) -> str:
    """Vector units are given the padding too: whole registers are faster than a remainder."""
    macro, rolled = f"{name.upper()}_COLUMNS", f"{name.upper()}_ROLLED"
    return f"""\
#if defined(__SSE__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__riscv_vector)
#define {macro}(outputs, padded) (padded)
#else
#define {macro}(outputs, padded) (outputs)
#endif

/* Unrolled all the way, these loops lose their vectors in clang. */
#ifdef __clang__
#define {rolled} _Pragma("clang loop unroll(disable)")
#else
#define {rolled}
#endif
"""


def dense_source(name: str, shape: Shape, int8: bool) -> str:
    """`y = start + x · weight`, four inputs at a time: four independent products for each sum that waits."""
    inputs, loop = shape.inputs, shape.loop(name)
    kind, cast, scale = ("int8_t", "(float)", "const float *restrict scale, ") if int8 else ("float", "", "")
    # Written out as indices: gcc 12 keeps the sums in registers this way, and not where a pointer walks the rows.
    terms = [f"x[i] * {cast}weight[i * {shape.columns} + j]"]
    terms += [f"x[i + {k}] * {cast}weight[(i + {k}) * {shape.columns} + j]" for k in range(1, 4)]
    text = f"""\
static inline void {_dense_name(name, shape, int8)}(const {kind} *restrict weight, {scale}const float *restrict start,
    const float *restrict x, float *restrict y)
{{
    int i, j;
    {loop}
        y[j] = {"0.0f" if int8 else "start[j]"};
"""
    if inputs >= 4:
        text += f"""\
    {name.upper()}_ROLLED
    for (i = 0; i < {inputs // 4 * 4}; i += 4)
        {loop}
            y[j] += ({terms[0]} + {terms[1]})
                + ({terms[2]} + {terms[3]});
"""
    if inputs % 4:
        text += f"""\
    for (i = {inputs // 4 * 4}; i < {inputs}; ++i)
        {loop}
            y[j] += {terms[0]};
"""
    if int8:
        text += f"""\
    {loop}
        y[j] = start[j] + scale[j] * y[j];
"""
    return text + "}\n"


def gear_source(
    name: str, gear: int, layers: Sequence[ExportedLayer], header: PolicyHeader, clip: Clip | None = None
) -> str:
    """The arrays of one gear and `NAME_gearG(x, action)`; a NaN on the way stays one.

    Where a gear holds the last action, it is in [-1, 1] here, and scaled afterwards.
    """
    own, last, kind = f"{name}_gear{gear}", shape_of(layers[-1]), header.gears[gear]
    arrays, rows, clipping = _network_arrays(own, layers), _row_declarations(layers), ""
    if activation_of(header, gear) in NEEDS_EXP and len(layers) > 1:
        rows += f"\n    float small[{max(shape_of(layer).columns for layer in layers[:-1])}];"
    if clip is not None:
        arrays += array(f"{own}_low", clip.low[0]) + array(f"{own}_high", clip.high[0])
        rows += f"\n    float seen[{header.obs_dim}];"
        clipping = f"""\
    for (j = 0; j < {header.obs_dim}; ++j) /* NaN stays NaN */
        seen[j] = x[j] < {own}_low[j] ? {own}_low[j] : x[j] > {own}_high[j] ? {own}_high[j] : x[j];
"""
    forward = _forward(name, own, layers, activation_of(header, gear), x="seen" if clip is not None else "x")
    return f"""\
/* Gear {gear}: {" - ".join(map(plain, kind.description.split(", ")))}. */
{arrays}
static void {own}(const float *restrict x, float *restrict action)
{{
{rows}
    int j;
{clipping}{forward}\
{activation_loops(name, last.loop(name), "out", kind.squash)}\
    for (j = 0; j < {last.outputs}; ++j)
        action[j] = {f"{name}_unit(out[j])" if holds(header) else f"{name}_within(out[j], j)"};
}}
"""


class Master(NamedTuple):
    """The master's layers on the observation, and what its other inputs add to the first of their sums."""

    layers: Sequence[ExportedLayer]
    last: ExportedLayer | None  # of the last action, where a gear holds it
    dial_row: FloatArray | None  # of the dial's position, where it is an input

    @property
    def all_layers(self) -> list[ExportedLayer]:
        """Every product that it has."""
        return [*self.layers, *([] if self.last is None else [self.last])]


def split_master(layers: Sequence[ExportedLayer], header: PolicyHeader) -> Master:
    """The master, its first layer by inputs."""
    first, obs, end = layers[0], header.obs_dim, header.obs_dim + header.act_dim * header.sees_action
    return Master(
        [first._replace(weight=first.weight[:obs]), *layers[1:]],
        first._replace(weight=first.weight[obs:end]) if header.sees_action else None,
        first.weight[-1] if header.sees_position else None,
    )


def master_source(name: str, master: Master, policy: Policy) -> str:
    """The master's arrays and `NAME_pick(x, state)`, which returns the first of its best choices.

    The last action and the dial's position shift where the first sum starts, so that the observation need not be copied
    to append them.
    """
    header, tariff, own, layers = policy.header, policy.weights.tariff, f"{name}_master", master.layers
    choices = len(header.gears) * len(header.periods)
    start_arrays, begin = _start_source(name, own, master)
    arrays, charge = _network_arrays(own, layers) + start_arrays, ""
    start_row = f"    float start[{shape_of(layers[0]).columns}];\n" if begin else ""
    if tariff is not None:
        arrays += array(f"{own}_tariff", tariff.each[0])
        charge = f"""\
    for (j = 0; j < {choices}; ++j)
        out[j] -= state->cost_coefficient * {own}_tariff[j];
"""
    unused = "" if header.dial is not None or holds(header) else "    (void)state;\n"
    forward = _forward(name, own, layers, header.activation, "start" if begin else None)
    return f"""\
/* The master: {header.master_units} units, {choices} choices. */
{arrays}
static int {name}_pick(const float *restrict x, const {name}_state *state)
{{
{_row_declarations(layers)}
{start_row}    int j, best = {int(holds(header))};
{unused}{begin}{forward}{charge}{_best_source(header, choices)}\
    return best;
}}
"""


def _start_source(name: str, own: str, master: Master) -> tuple[str, str]:
    """Arrays and statements that fill `start`, from which the master's first sums go on; nothing if from the bias."""
    arrays, text, sums, shape = "", "", f"{own}_0_bias[j]", shape_of(master.layers[0])
    if master.last is not None:
        arrays, last = array(f"{own}_last_weight", shape.pad(master.last.weight)), shape_of(master.last)
        text = f"    {_dense_name(name, last)}({own}_last_weight, {own}_0_bias, state->last_action, start);\n"
        sums = "start[j]"
    if master.dial_row is not None:
        arrays += array(f"{own}_dial", shape.pad(master.dial_row))
        text += f"    {shape.loop(name)}\n        start[j] = {sums} + state->position * {own}_dial[j];\n"
    return arrays, text


def _best_source(header: PolicyHeader, choices: int) -> str:
    """The first of the best values. Where a gear holds, NaN gives gear 1, in whose action it shows."""
    if not holds(header):
        return f"""\
    for (j = 1; j < {choices}; ++j)
        best = out[j] > out[best] ? j : best;
"""
    return f"""\
    for (j = 0; j < {choices}; ++j)
        if (state->choice >= 0 || j % {len(header.gears)}) /* at an episode's start there is nothing to repeat */
            best = out[j] > out[best] || (out[j] == out[best] && j < best) ? j : best;
"""


def _dense_name(name: str, shape: Shape, int8: bool = False) -> str:
    return f"{name}_dense_{shape.inputs}_{shape.outputs}{'_int8' * int8}"


def _network_arrays(own: str, layers: Sequence[ExportedLayer]) -> str:
    return "".join(layer_arrays(f"{own}_{place}", layer) for place, layer in enumerate(layers))


def _rows(layers: Sequence[ExportedLayer]) -> list[str]:
    """What the layers write: two rows in turn, then the last one's own."""
    return [("first", "second")[place % 2] for place in range(len(layers) - 1)] + ["out"]


def _row_declarations(layers: Sequence[ExportedLayer]) -> str:
    columns: dict[str, int] = {}
    for row, layer in zip(_rows(layers), layers, strict=True):
        columns[row] = max(columns.get(row, 0), shape_of(layer).columns)
    return f"    float {', '.join(f'{row}[{count}]' for row, count in columns.items())};"


def _forward(
    name: str, own: str, layers: Sequence[ExportedLayer], activation: str, start: str | None = None, x: str = "x"
) -> str:
    """The calls from `x` to `out`; the first sum starts from the bias unless told."""
    text = ""
    for place, (layer, y) in enumerate(zip(layers, _rows(layers), strict=True)):
        shape = shape_of(layer)
        begin = start if start and place == 0 else f"{own}_{place}_bias"
        int8 = layer.scale is not None
        scale = f"{own}_{place}_scale, " if int8 else ""
        text += f"    {_dense_name(name, shape, int8)}({own}_{place}_weight, {scale}{begin}, {x}, {y});\n"
        if y != "out":
            text += activation_loops(name, shape.loop(name), y, activation)
        x = y
    return text
