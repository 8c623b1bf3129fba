"""What slimming came to: controllers beside the policy that they are to replace, in numbers and in words."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowgear.evaluation.statistics import SAMPLES, by_step, mean_interval
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.file import Policy

ITSELF = "the policy itself"


class Episodes(NamedTuple):
    """What episodes of one controller came to, one number each."""

    scores: DoubleArray
    flops: DoubleArray  # a step
    large_share: DoubleArray  # of their steps
    lengths: DoubleArray


def rows(policies: Mapping[str, Policy], played: Mapping[str, Sequence[Episodes]]) -> list[dict[str, Any]]:
    """A row for each controller, from episodes that began alike; the policy itself comes first."""
    large = policies[ITSELF].header.cost.gear_flops[0]
    its = np.concatenate([part.scores for part in played[ITSELF]])
    found = []
    for name, policy in policies.items():
        scores, flops, shares, lengths = map(np.concatenate, zip(*played[name], strict=True))
        spent = float(by_step(flops, lengths).mean())
        several = len(policy.header.gears) > 1
        found.append(
            {
                "name": name,
                "gears": [gear.to_json() for gear in policy.header.gears],
                "score_mean": float(scores.mean()),
                "score_interval": list(mean_interval(scores)),
                "score_by_seed": [float(part.scores.mean()) for part in played[name]],
                "kept": kept(float(scores.mean()), float(its.mean())),
                "kept_interval": _kept_interval(scores, its),
                "flops_per_step": spent,
                "flops_reduction": 1 - spent / large,
                "large_share": float(by_step(shares, lengths).mean()) if several else None,
                "relative_coefficient": policy.header.relative_coefficient if several else None,
                "bytes": sum(array.nbytes for network in policy.weights.gears for layer in network for array in layer),
            }
        )
    return found


def kept(score: float, reference: float) -> float | None:
    """The share of a reference that a score keeps; where that is negative, a loss makes it larger."""
    if not reference:
        return None
    return score / reference if reference > 0 else 2 - score / reference


def _kept_interval(scores: DoubleArray, its: DoubleArray) -> list[float] | None:
    """The 95% bootstrap interval of what is kept, by episodes that began alike."""
    if not its.mean():
        return None
    drawn = np.random.default_rng(0).integers(len(scores), size=(SAMPLES, len(scores)))
    shares = [kept(*pair) for pair in zip(scores[drawn].mean(axis=1), its[drawn].mean(axis=1), strict=True)]
    return [float(end) for end in np.percentile(np.array(shares, np.float64), [2.5, 97.5])]


def words(rows: Sequence[Mapping[str, Any]], chosen: str, meets: bool, keep: float) -> list[str]:
    """What to make of it, in sentences."""
    by_name = {row["name"]: row for row in rows}
    best, alone = by_name[chosen], [row for row in rows[1:] if row["large_share"] is None]
    if not meets:
        return [
            f"Nothing here certainly keeps {keep:.0%} of the score. The nearest, {chosen}, keeps {_share(best)}. Wider "
            "--widths, more --labels or more --steps may."
        ]
    saved = f"keeps {_share(best)} of the score and saves {best['flops_reduction']:.1%} of the FLOPs"
    if best["large_share"] is None:
        found = [f"A distilled small policy alone suffices: {chosen}, {saved}. No master is needed."]
    else:
        widest = alone[-1]
        found = [f"Switching pays: it {saved}; {widest['name']} and acting alone, keep {_share(widest)}."]
    if best["kept"] is not None and best["kept"] < keep:
        found.append(
            f"On fresh starts that is less than the {keep:.0%} it was chosen by: give more --episodes, or ask for more."
        )
    return found


def _share(row: Mapping[str, Any]) -> str:
    if row["kept"] is None:
        return "a score of " + f"{row['score_mean']:.4g}"
    low, high = row["kept_interval"]
    return f"{row['kept']:.1%} [{100 * low:.1f}, {100 * high:.1f}]"
