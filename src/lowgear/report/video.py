"""An episode as a video file: animated WebP or GIF by Pillow, MP4 by FFmpeg through imageio (extra `video`)."""

import io
import itertools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image

from lowgear import LowgearError
from lowgear.policy.files import write_whole
from lowgear.report.film import QUALITY, annotated
from lowgear.report.playback import Playback

KINDS = ("webp", "gif", "mp4")
RATE = 50.0  # frames a second at most: browsers slow down animations that want more
MP4_QUALITY = 8  # of 10


def check_kind(path: Path) -> None:
    """Refuse a name that says no kind of video, and MP4 where nothing writes it."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in KINDS:
        raise LowgearError(f"{path}: a video's name ends in {', '.join(f'.{kind}' for kind in KINDS)}")
    if kind == "mp4":
        try:
            import imageio_ffmpeg  # noqa: F401
        except ImportError:
            raise LowgearError(
                f"{path}: MP4 needs FFmpeg: pip install 'lowgear[video]', or write .webp, which browsers play"
            ) from None


def write(playback: Playback, path: Path, rate: float = RATE) -> Path:
    """The whole episode in the simulation's own time, at `rate` frames a second at most."""
    check_kind(path)
    shown = playback.thinned(max(1, round(1 / (rate * playback.step_s * playback.every))))
    frame_s = shown.step_s * shown.every
    if path.suffix.lower() == ".mp4":
        write_whole(path, _mp4(annotated(shown), 1 / frame_s))
    else:
        write_whole(path, _animation(annotated(shown), path.suffix.removeprefix(".").lower(), round(1000 * frame_s)))
    return path


def _animation(frames: Iterable[Image.Image], kind: str, frame_ms: int) -> bytes:
    frames, buffer = iter(frames), io.BytesIO()
    first = next(frames)
    options = {"quality": QUALITY, "method": 2} if kind == "webp" else {"optimize": False}
    timing = {"duration": max(frame_ms, 20), "loop": 0}
    first.save(buffer, kind.upper(), save_all=True, append_images=frames, **options, **timing)
    return buffer.getvalue()


def _mp4(frames: Iterable[Image.Image], rate: float) -> bytes:
    import imageio_ffmpeg

    frames = iter(frames)
    first = next(frames)
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        path = Path(folder, "episode.mp4")
        writer = imageio_ffmpeg.write_frames(
            str(path), first.size, fps=rate, quality=MP4_QUALITY, macro_block_size=2, ffmpeg_log_level="error"
        )
        writer.send(None)
        for frame in itertools.chain([first], frames):
            writer.send(np.ascontiguousarray(np.asarray(frame)))
        writer.close()
        return path.read_bytes()
