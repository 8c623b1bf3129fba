"""The page: one HTML file that opens from disk, without a server or a network.

The script and the style are the package's own and named by their hashes in the page's security policy, so nothing that
comes from a run's files could run even if it were markup. Those files' strings reach the page as JSON, whose `<` is
escaped, and the script turns them into text, never into elements.
"""

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from string import Template

from lowgear import __version__
from lowgear.report.figure import Figure
from lowgear.report.payload import Json, RunSection, clean, comparison_payload, section_payload

SCRIPTS = ("dom.js", "chart.js", "tables.js", "tracks.js", "player.js", "page.js")


def write(sections: Sequence[RunSection], together: Sequence[Figure]) -> str:
    """The whole page; `together` are the figures of all runs."""
    runs = [section.run for section in sections]
    tasks = list(dict.fromkeys(run.task.name for run in runs))
    heading = tasks[0] if len(tasks) == 1 else f"{len(runs)} runs, {len(tasks)} tasks"
    script = '"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS)
    style = _asset("page.css")
    data: Json = {
        "runs": [section_payload(section) for section in sections],
        "comparison": comparison_payload(runs, together),
    }
    return Template(_asset("page.html")).substitute(
        TITLE=html.escape(f"{', '.join(tasks)} – Lowgear report"),
        HEADING=html.escape(heading),
        VERSION=html.escape(__version__),
        DATE=datetime.now(UTC).strftime("%d %B %Y"),
        STYLE=style,
        STYLE_HASH=_hash(style),
        SCRIPT=script,
        SCRIPT_HASH=_hash(script),
        DATA=embed(data),
    )


def embed(data: Json) -> str:
    """JSON that can stand inside a script element whatever its strings hold."""
    text = json.dumps(clean(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    return resources.files("lowgear").joinpath("report", "assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
