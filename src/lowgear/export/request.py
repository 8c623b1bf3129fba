"""What every format takes and gives back."""

from dataclasses import dataclass
from typing import Any

from lowgear.export.source import Source


@dataclass(frozen=True)
class ExportRequest:
    """One export that was asked for."""

    source: Source
    name: str  # of files and symbols
    weights: str = "float32"  # or int8, for C
    episodes: int = 4  # to check it on
    unchecked: bool = False  # write C although no compiler can check it


@dataclass(frozen=True)
class ExportFiles:
    """Files by name, and what export.json says of them."""

    files: dict[str, bytes]
    report: dict[str, Any]
