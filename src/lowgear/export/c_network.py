"""C functions of the controller's networks: one product for each shape, one function for each gear and the master."""

from collections.abc import Sequence

from lowgear.export.c_arrays import Layer, Shape, array, layer_arrays
from lowgear.export.c_maths import tanh_loops, tanh_source
from lowgear.policy.file import Policy, PolicyHeader

HIDDEN = ("first", "second")


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
    inputs, outputs, columns = shape
    kind = "int8_t" if int8 else "float"
    bound = f"{name.upper()}_COLUMNS({outputs}, {columns})"
    cast = "(float)" if int8 else ""
    # Written out as indices: gcc 12 keeps the sums in registers this way, and not where a pointer walks the rows.
    terms = [f"x[i] * {cast}weight[i * {columns} + j]"]
    terms += [f"x[i + {k}] * {cast}weight[(i + {k}) * {columns} + j]" for k in range(1, 4)]
    scale = "const float *restrict scale, " if int8 else ""
    text = f"""\
static inline void {dense_name(name, shape)}(const {kind} *restrict weight, {scale}const float *restrict start,
    const float *restrict x, float *restrict y)
{{
    int i, j;
    for (j = 0; j < {bound}; ++j)
        y[j] = {"0.0f" if int8 else "start[j]"};
"""
    if inputs >= 4:
        text += f"""\
    {name.upper()}_ROLLED
    for (i = 0; i < {inputs // 4 * 4}; i += 4)
        for (j = 0; j < {bound}; ++j)
            y[j] += ({terms[0]} + {terms[1]})
                + ({terms[2]} + {terms[3]});
"""
    if inputs % 4:
        text += f"""\
    for (i = {inputs // 4 * 4}; i < {inputs}; ++i)
        for (j = 0; j < {bound}; ++j)
            y[j] += {terms[0]};
"""
    if int8:
        text += f"""\
    for (j = 0; j < {bound}; ++j)
        y[j] = start[j] + scale[j] * y[j];
"""
    return text + "}\n"


def dense_name(name: str, shape: Shape) -> str:
    """Of the product of one shape."""
    return f"{name}_dense_{shape.inputs}_{shape.outputs}"


def activation_source(name: str, activation: str) -> str:
    """tanh, which the actions need in any case, and the rectifier where the hidden layers have it."""
    text = tanh_source(name)
    if activation == "relu":
        text += f"""
static inline float {name}_relu(float x)
{{
    return x < 0.0f ? 0.0f : x; /* NaN stays NaN */
}}
"""
    return text


def gear_source(name: str, gear: int, layers: Sequence[Layer], header: PolicyHeader) -> str:
    """The arrays of one gear and `NAME_gearG(x, action)`; a NaN on the way reaches every number of the action."""
    own = f"{name}_gear{gear}"
    arrays = "".join(layer_arrays(f"{own}_{place}", one) for place, one in enumerate(layers))
    last = layers[-1].shape
    bound = f"{name.upper()}_COLUMNS({last.outputs}, {last.columns})"
    return f"""\
/* Gear {gear}: {header.gears[gear]} units. */
{arrays}
static void {own}(const float *restrict x, float *restrict action)
{{
{_rooms(layers)}
    int j;
{_forward(name, own, layers, header.activation)}\
{tanh_loops(name, bound, "out")}\
    for (j = 0; j < {last.outputs}; ++j)
        action[j] = {name}_within(out[j], j);
}}
"""


def master_source(name: str, layers: Sequence[Layer], policy: Policy) -> str:
    """The master's arrays and `NAME_pick(x, state)`, which returns the first of its best choices."""
    header, tariff = policy.header, policy.weights.tariff
    own = f"{name}_master"
    first = layers[0]
    if header.sees_position:
        # The dial's position is one more input: it shifts where the first sum starts, so nothing need be copied.
        dial_row = first.exact[-1]
        first = first._replace(weight=first.weight[:-1])
        layers = [first, *layers[1:]]
    arrays = "".join(layer_arrays(f"{own}_{place}", one) for place, one in enumerate(layers))
    start = f"{own}_0_bias"
    lines, room = "", ""
    if header.sees_position:
        columns = first.shape.columns
        arrays += array(f"{own}_dial", [*dial_row.tolist(), *[0.0] * (columns - len(dial_row))])
        room = f"    float start[{columns}];\n"
        bound = f"{name.upper()}_COLUMNS({first.shape.outputs}, {columns})"
        lines = f"""\
    for (j = 0; j < {bound}; ++j)
        start[j] = {own}_0_bias[j] + state->position * {own}_dial[j];
"""
        start = "start"
    choices = len(header.gears) * len(header.periods)
    unused = "" if header.dial is not None else "    (void)state;\n"
    charge = ""
    if tariff is not None:
        arrays += array(f"{own}_tariff", tariff.each[0])
        charge = f"""\
    for (j = 0; j < {choices}; ++j)
        out[j] -= state->cost_coefficient * {own}_tariff[j];
"""
    return f"""\
/* The master: {header.master_units} units, {choices} choices. */
{arrays}
static int {name}_pick(const float *restrict x, const {name}_state *state)
{{
{_rooms(layers)}
{room}    int j, best = 0;
{unused}{lines}{_forward(name, own, layers, header.activation, start)}{charge}\
    for (j = 1; j < {choices}; ++j)
        best = out[j] > out[best] ? j : best;
    return best;
}}
"""


def _rooms(layers: Sequence[Layer]) -> str:
    sizes = [one.shape.columns for one in layers]
    return f"    float first[{sizes[0]}], second[{sizes[1]}], out[{sizes[2]}];"


def _forward(name: str, own: str, layers: Sequence[Layer], activation: str, start: str | None = None) -> str:
    """The calls from `x` to `out`."""
    text, source = "", "x"
    for place, (one, target) in enumerate(zip(layers, (*HIDDEN, "out"), strict=True)):
        begins = start if start and place == 0 else f"{own}_{place}_bias"
        scale = "" if one.scale is None else f"{own}_{place}_scale, "
        text += f"    {dense_name(name, one.shape)}({own}_{place}_weight, {scale}{begins}, {source}, {target});\n"
        if target in HIDDEN:
            bound = f"{name.upper()}_COLUMNS({one.shape.outputs}, {one.shape.columns})"
            text += (
                tanh_loops(name, bound, target)
                if activation == "tanh"
                else f"    for (j = 0; j < {bound}; ++j)\n        {target}[j] = {name}_relu({target}[j]);\n"
            )
        source = target
    return text
