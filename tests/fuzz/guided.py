"""Coverage-guided fuzzing of every loader with Atheris: `make fuzz`, or `make fuzz SECONDS=3600`.

An input is one byte that names the loader, then the file. Half of the changes are Atheris's own, half are those of
`tests/fixtures/mutations.py`, which keep the file whole but for a value. A finding stops the run and is written to the
corpus's directory as crash-*; pass that file as the only argument to see it again.
"""

import random
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["lowgear"]):
    from tests.fixtures.loaders import Loader, loaders, quick_statistics

NEVER_LONGER = 1 << 16  # bytes


def main() -> None:
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder, quick_statistics():
        every = list(loaders(Path(folder) / "files").items())
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, (name, loader) in enumerate(every):
            for place, data in enumerate(loader.files):
                (corpus / f"{name}-{place}").write_bytes(bytes([number]) + data)

        def chosen(data: bytes) -> Loader:
            return every[data[0] % len(every)][1]

        def try_one(data: bytes) -> None:
            if data:
                chosen(data).try_load(data[1:])

        def change(data: bytes, most: int, seed: int) -> bytes:
            draw = random.Random(seed)
            if not data or draw.random() < 0.5:
                return bytes(atheris.Mutate(data, most))
            try:
                changed = chosen(data).change(data[1:], draw)
            except Exception:  # no longer a file that has values
                changed = chosen(data).change(draw.choice(chosen(data).files), draw)
            return (data[:1] + changed)[:most]

        arguments = [*sys.argv, f"-max_len={NEVER_LONGER}"]
        if not any(Path(argument).exists() for argument in sys.argv[1:]):
            arguments.append(str(corpus))
        atheris.Setup(arguments, try_one, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
