"""The mathematics that generated C carries with it, so that it needs no library: tanh, exp and asinh.

tanh is x·P(x²)/Q(x²) with x held within ±8.5, a minimax fit over that range. It has no branch and no table, so a
compiler turns a loop of it into vector instructions: a large gear's 128 calls of libm's `tanhf` cost more than its
products. exp is for numbers up to 0 alone, all that elu and silu ask of it: 2 to a whole power, written as the bits of
a float, times a minimax fit over what is left.
"""

TANH_ERROR = 5e-7  # at most, for every float; 3.4e-7 was measured, all of it rounding
EXP_ERROR = 2e-7  # at most, relative, from -87 to 0; 1.2e-7 was measured
ASINH_ERROR = 1e-6  # at most, of the greater of 1 and the result

_LIMIT = 8.5
_P = (0.99999994, 0.134062037, 0.00352581684, 2.11215374e-05, 1.4099208e-08)
_Q = (1.0, 0.467395157, 0.0259911269, 0.000333568663, 8.07360209e-07)
_LEAST = -87.0  # whose exp is a normal float still
_E = (0.49999994, 0.166665196, 0.0416683927, 0.00836878084, 0.00138144672)  # of (exp(r) - 1 - r) / r²


def tanh_source(name: str) -> str:
    """`NAME_limit` and `NAME_tanh`, one after the other; NaN stays NaN, so a bad observation shows in the action."""
    p, q, limit = [f"{c!r}f" for c in _P], [f"{c!r}f" for c in _Q], f"{_LIMIT!r}f"
    return f"""\
/* Where tanh is 1 in all but the last digits. */
static inline float {name}_limit(float x)
{{
    return x < -{limit} ? -{limit} : x > {limit} ? {limit} : x;
}}

#ifdef {name.upper()}_LIBM
#define {name}_tanh tanhf
#else
/* Within {TANH_ERROR:g} of tanh for every x that {name}_limit gives; NaN stays NaN. */
static inline float {name}_tanh(float x)
{{
    const float z = x * x, zz = z * z;
    const float p = ({p[4]} * zz + ({p[3]} * z + {p[2]})) * zz + ({p[1]} * z + {p[0]});
    const float q = ({q[4]} * zz + ({q[3]} * z + {q[2]})) * zz + ({q[1]} * z + {q[0]});
    return x * p / q;
}}
#endif
"""


def tanh_loops(name: str, loop: str, row: str) -> str:
    """tanh of a row, in place. Two loops: folded into one, gcc makes branches of the limits and vectorises worse."""
    return f"""\
    {loop}
        {row}[j] = {name}_limit({row}[j]);
    {loop}
        {row}[j] = {name}_tanh({row}[j]);
"""


def exp_source(name: str) -> str:
    """`NAME_below` and `NAME_exp`, one after the other; they need stdint.h, and whoever asks keeps a NaN."""
    e, least = [f"{c!r}f" for c in _E], f"{_LEAST!r}f"
    return f"""\
/* -|x|, but not below {_LEAST:g}, where exp is as good as 0; {_LEAST:g} for NaN. */
static inline float {name}_below(float x)
{{
    return x < 0.0f ? (x > {least} ? x : {least}) : (x < {-_LEAST!r}f ? -x : {least});
}}

#ifdef {name.upper()}_LIBM
#define {name}_exp expf
#else
/* Within {EXP_ERROR:g} of exp, relative, for every x that {name}_below gives. */
static inline float {name}_exp(float x)
{{
    const int32_t k = (int32_t)(x * 1.44269504f - 0.5f); /* the nearest whole power of 2 */
    const float n = (float)k, r = (x - n * 0.693359375f) + n * 2.12194440e-4f, rr = r * r;
    const float p = (1.0f + r) + rr * (({e[0]} + {e[1]} * r) + rr * (({e[2]} + {e[3]} * r) + rr * {e[4]}));
    union {{
        int32_t bits;
        float power;
    }} two;
    two.bits = (k + 127) * 8388608;
    return p * two.power;
}}
#endif
"""


def exp_loops(name: str, loop: str, row: str, out: str) -> str:
    """exp(-|x|) of a row into another. Two loops, for the same reason as those of tanh."""
    return f"""\
    {loop}
        {out}[j] = {name}_below({row}[j]);
    {loop}
        {out}[j] = {name}_exp({out}[j]);
"""


def asinh_source(name: str) -> str:
    """The function `NAME_asinh`: a square root by Newton's steps, then a logarithm.

    The logarithm is taken by halvings and the series of 2·artanh((x-1)/(x+1)).
    """
    return f"""\
#ifdef {name.upper()}_LIBM
#define {name}_asinh asinhf
#else
static float {name}_asinh(float x)
{{
    const float size = x < 0.0f ? -x : x;
    float root = size + 1.0f, sum, t, tt;
    int i, halvings = 0;
    for (i = 0; i < 4; ++i)
        root = 0.5f * (root + (size * size + 1.0f) / root);
    root += size;
    while (root > 1.5f) {{
        root *= 0.5f;
        ++halvings;
    }}
    t = (root - 1.0f) / (root + 1.0f);
    tt = t * t;
    sum = 2.0f * t * (1.0f + tt * (0.33333333f + tt * (0.2f + tt * (0.14285714f + tt * 0.11111111f))));
    sum += 0.69314718f * (float)halvings;
    return x < 0.0f ? -sum : sum;
}}
#endif
"""
