"""The gears of a run: what a person writes for them, put in order of cost, with the frozen policies among them."""

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lowgear import LowgearError
from lowgear.config.tasks import MOST_WIDTH, Task
from lowgear.policy import fields
from lowgear.policy.cost import gear_flops
from lowgear.policy.fields import BadField
from lowgear.policy.file import Policy, load
from lowgear.policy.gears import FROZEN, NETWORK, SIZES, Gear, names, parse_gear
from lowgear.policy.header import IMPORTED, MOST_GEARS
from lowgear.policy.networks import Weights, leaves_of

GivenGear = Gear | int | str | Path  # a gear as a person gives it: text and paths may name a policy file
SUFFIX = ".safetensors"
EXAMPLE = "write for example --gears 8,64 or --gears hold,8,64x64x64 or --gears 16,large.safetensors"
OWN_SOURCE = "Lowgear"  # of gears that were trained here


@dataclass(frozen=True)
class Frozen:
    """The policy of a frozen gear, alone; runs whose frozen policies differ in a number differ."""

    digest: str  # SHA-256 of its numbers
    policy: Policy | None = field(default=None, compare=False, repr=False)  # None: not read yet

    @property
    def gear(self) -> Gear:
        """What it computes."""
        return self.read.header.gears[0]

    @property
    def read(self) -> Policy:
        """The policy, once it is there."""
        assert self.policy is not None
        return self.policy


def parse_gears(text: str) -> tuple[Gear | Path, ...]:
    """Gears from `--gears`, for example "hold,8,64" or "16,large.safetensors"; nothing is read yet."""
    try:
        found = tuple(_one(part.strip()) for part in text.split(","))
    except LowgearError:
        raise LowgearError(f"--gears {fields.shown(text)}: {EXAMPLE}") from None
    _check_count(found, text)
    return found


def parse_widths(text: str) -> tuple[int, ...]:
    """Widths of gears with two equal layers, in order, for what can only compare those."""
    found = parse_gears(text)
    widths = sorted(gear.hidden[0] for gear in found if isinstance(gear, Gear) and gear.is_plain)
    if len(widths) < len(found):
        raise LowgearError(
            f"--gears {fields.shown(text)}: only widths of two equal layers here; write for example --gears 8,64"
        )
    return tuple(widths)


def need_sizes(given: Sequence[GivenGear] | None) -> bool:
    """Whether their order by cost is known only once the task's sizes are."""
    gears = [gear for gear in map(_one, given or ()) if isinstance(gear, Gear)]
    return any(gear.computes and not gear.is_plain for gear in gears)


def arrange(given: Sequence[GivenGear], task: Task) -> tuple[tuple[Gear, ...], tuple[Frozen, ...]]:
    """The gears, cheapest first, and the policies of the frozen ones; whatever can't be a run's gears is an error."""
    text = ",".join(map(str, given))
    _check_count(given, text)
    read = [one if isinstance(one, Gear) else read_frozen(one) for one in map(_one, given)]
    found = [(one, None) if isinstance(one, Gear) else (one.gear, one) for one in read]
    sizes = _sizes(task, [frozen for _, frozen in found if frozen is not None])
    if sizes is None and need_sizes(given):
        raise LowgearError(
            f"gears {fields.shown(text)}: the sizes of {task.name}, which order them by cost, are not known"
        )
    found.sort(key=lambda pair: gear_flops(pair[0], *(sizes or (1, 1))))
    gears = tuple(gear for gear, _ in found)
    policies = tuple(frozen for _, frozen in found if frozen is not None)
    return check_gears(gears, policies), policies


def check_gears(gears: Sequence[Gear], frozen: Sequence[Frozen]) -> tuple[Gear, ...]:
    """The gears of a run, in their order, if they can be that."""
    shown = fields.shown(names(gears))
    _check_count(gears, names(gears))
    if sum(not gear.computes for gear in gears) > 1:
        raise LowgearError(f"gears {shown}: hold is there twice; leave one out")
    if not gears[0].computes and all(not gear.computes for gear in gears):
        raise LowgearError(f"gears {shown}: one besides hold must act, at an episode's start; {EXAMPLE}")
    if any(not gear.computes for gear in gears[1:]):
        raise LowgearError(f"gears {shown}: hold costs nothing and comes first")
    flops = [gear_flops(gear, 1, 1) for gear in gears]  # whose order depends on no size where all are plain
    if flops != sorted(flops) and not need_sizes(gears):
        raise LowgearError(f"gears {shown}: the cheapest comes first")
    for gear in gears:
        if gear.kind == NETWORK and max(gear.hidden) > MOST_WIDTH:
            raise LowgearError(f"gears {shown}: no width may be above {MOST_WIDTH:,}, for example --gears 8,64")
    if len(frozen) != sum(gear.kind == FROZEN for gear in gears):
        raise LowgearError(f"gears {shown}: a frozen gear needs its policy; name the policy file")
    if len({one.digest for one in frozen}) < len(frozen):
        raise LowgearError(f"gears {shown}: one policy is frozen twice; leave one out")
    return tuple(gears)


def read_frozen(path: Path) -> Frozen:
    """The policy in a file as a frozen gear."""
    return freeze(load(path))


def freeze(policy: Policy) -> Frozen:
    """A policy's only gear that acts, or the dearest where its master picks, as it stands."""
    header = policy.header
    number = len(header.gears) - 1 if header.forced_gear is None else header.forced_gear
    gear = header.gears[number]
    if gear.kind == NETWORK:
        gear = Gear(FROZEN, gear.hidden, header.activation, source=OWN_SOURCE)
    alone = replace(
        header,
        variant=header.variant if header.variant == IMPORTED else "large-only",
        gears=(gear,),
        master_units=0,
        periods=(1,),
        forced_gear=0,
        dial=None,
        cost_coefficient=0.0,
        known_prices=False,
        cost_unit=None,
        boltzmann=False,
    )
    clips = policy.weights.clips[number : number + 1]
    weights = Weights((policy.weights.gears[number],), (), None, clips if any(clips) else ())
    return frozen_of(Policy(alone, weights))


def frozen_of(policy: Policy) -> Frozen:
    """A policy of one gear, with the digest of its numbers."""
    digest = hashlib.sha256(repr(policy.header.gears[0].to_json()).encode())
    for leaf in leaves_of(policy.weights):
        digest.update(leaf.tobytes())
    return Frozen(digest.hexdigest(), policy)


def pack(frozen: Frozen) -> str:
    """A frozen policy as text, for another process: its file in base 64."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"frozen{SUFFIX}"
        frozen.read.save(path)
        return base64.b64encode(path.read_bytes()).decode()


def unpack(text: str) -> Frozen:
    """Back from there."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"frozen{SUFFIX}"
        path.write_bytes(base64.b64decode(text))
        return frozen_of(load(path))


def read_digests(raw: Any) -> tuple[Frozen, ...]:
    """Frozen policies as config.json names them, not read yet; raises BadField."""
    found = [fields.text("a digest in frozen", one, 64) for one in fields.items("frozen", raw, 0, MOST_GEARS)]
    for digest in found:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise BadField(f"a digest in frozen is {fields.shown(digest)}, not 64 hexadecimal digits")
    return tuple(map(Frozen, found))


def _one(given: GivenGear) -> Gear | Path:
    """A gear, or the path of the policy file that it is to come from."""
    if isinstance(given, Gear | Path):
        return given
    text = given.strip() if isinstance(given, str) else f"{given}"
    named = text.endswith(SUFFIX) or os.sep in text or (not SIZES.fullmatch(text) and Path(text).is_file())
    return Path(text) if named else parse_gear(text)


def _check_count(gears: Sequence[Any], text: str) -> None:
    if not 2 <= len(gears) <= MOST_GEARS:
        raise LowgearError(f"gears {fields.shown(text)}: two are needed at least, {MOST_GEARS} at most; {EXAMPLE}")


def _sizes(task: Task, frozen: Sequence[Frozen]) -> tuple[int, int] | None:
    """The task's, or those that frozen policies tell: they must fit the task anyway."""
    if task.obs_dim is not None and task.act_dim is not None:
        return task.obs_dim, task.act_dim
    headers = [one.read.header for one in frozen]
    return (headers[0].obs_dim, headers[0].act_dim) if headers else None
