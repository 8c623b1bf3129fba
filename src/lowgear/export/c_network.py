"""C functions of the controller's networks: one product for each shape, one function for each gear and the master."""

from collections.abc import Sequence

from lowgear.export.c_activations import activation_loops
from lowgear.export.c_arrays import Shape, array, layer_arrays, shape_of
from lowgear.export.layers import ExportedLayer, activation_of
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
static inline void {_dense_name(name, shape)}(const {kind} *restrict weight, {scale}const float *restrict start,
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
    """The arrays of one gear and `NAME_gearG(x, action)`; a NaN on the way reaches every number of the action."""
    own, last, kind = f"{name}_gear{gear}", shape_of(layers[-1]), header.gears[gear]
    arrays, rows, clipping = _network_arrays(own, layers), _row_declarations(layers), ""
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
        action[j] = {name}_within(out[j], j);
}}
"""


def split_dial_row(
    master: Sequence[ExportedLayer] | None, header: PolicyHeader
) -> tuple[Sequence[ExportedLayer] | None, FloatArray | None]:
    """The master without the weights of the dial's position, and these, where the position is an input."""
    if master is None or not header.sees_position:
        return master, None
    first = master[0]
    return [first._replace(weight=first.weight[:-1]), *master[1:]], first.dequantised[-1]


def master_source(name: str, layers: Sequence[ExportedLayer], dial_row: FloatArray | None, policy: Policy) -> str:
    """The master's arrays and `NAME_pick(x, state)`, which returns the first of its best choices.

    The dial's position shifts where the first sum starts, so that the observation need not be copied to append it.
    """
    header, tariff, own = policy.header, policy.weights.tariff, f"{name}_master"
    choices = len(header.gears) * len(header.periods)
    arrays, start_row, begin, charge = _network_arrays(own, layers), "", "", ""
    if dial_row is not None:
        shape = shape_of(layers[0])
        arrays += array(f"{own}_dial", shape.pad(dial_row))
        start_row = f"    float start[{shape.columns}];\n"
        begin = f"""\
    {shape.loop(name)}
        start[j] = {own}_0_bias[j] + state->position * {own}_dial[j];
"""
    if tariff is not None:
        arrays += array(f"{own}_tariff", tariff.each[0])
        charge = f"""\
    for (j = 0; j < {choices}; ++j)
        out[j] -= state->cost_coefficient * {own}_tariff[j];
"""
    unused = "" if header.dial is not None else "    (void)state;\n"
    start = None if dial_row is None else "start"
    return f"""\
/* The master: {header.master_units} units, {choices} choices. */
{arrays}
static int {name}_pick(const float *restrict x, const {name}_state *state)
{{
{_row_declarations(layers)}
{start_row}    int j, best = 0;
{unused}{begin}{_forward(name, own, layers, header.activation, start)}{charge}\
    for (j = 1; j < {choices}; ++j)
        best = out[j] > out[best] ? j : best;
    return best;
}}
"""


def _dense_name(name: str, shape: Shape) -> str:
    return f"{name}_dense_{shape.inputs}_{shape.outputs}"


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
        scale = "" if layer.scale is None else f"{own}_{place}_scale, "
        text += f"    {_dense_name(name, shape)}({own}_{place}_weight, {scale}{begin}, {x}, {y});\n"
        if y != "out":
            text += activation_loops(name, shape.loop(name), y, activation)
        x = y
    return text
