"""Programs as tasks of a Ray cluster, each with the CPUs and GPUs that it needs.

A task starts the program's process beside it (`child`) and waits for it. Ray queues what it has no room for. A task
that is lost with its worker or machine is handed in again by `executors`, and its program goes on from the last
checkpoint: in a directory that all machines share, or at a URL. When this process dies, Ray ends its tasks.
"""

import contextlib
import os
import re
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowgear import LowgearError, __version__
from lowgear.policy.files import write_whole
from lowgear.studies import progress_file
from lowgear.studies.child import Child, Job, Result
from lowgear.studies.executors import StartedProgram
from lowgear.studies.program import Program
from lowgear.studies.progress_file import ProgramProgress
from lowgear.studies.storage import Remote

INSTALL = "pip install 'lowgear[ray]'"
CONNECT_S = 10.0
SETTINGS = b"\0\0\0\4\0\0\0\0\0"  # a frame of HTTP/2, whose fourth byte is its kind
CHILD_POLL_S = 0.2
FETCH_EVERY_S = 10.0  # progress, from a URL
Work = Callable[[dict[str, Any], dict[str, str]], tuple[str, str]]


def connect(address: str) -> None:
    """To a cluster: "auto" is one that runs on this machine, or else one of this machine alone that is started now."""
    try:
        import ray
    except ImportError:
        raise LowgearError(f"--ray needs Ray: {INSTALL}, or take --jobs N on this machine") from None
    if address != "auto":
        _reach(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray.init(_current() if address == "auto" else address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if _wants_token(error):
            raise LowgearError(
                f"--ray {address} asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to the cluster's "
                "own if that is not in ~/.ray/auth_token"
            ) from None
        said = str(error).strip().splitlines()[0]
        raise LowgearError(f"--ray {address}: no cluster answers ({said}): start one with `ray start --head`") from None


def _wants_token(error: BaseException | None) -> bool:
    """Whether that is why a cluster was not reached; Ray says so in an error behind others."""
    return error is not None and ("AuthToken" in str(error) or _wants_token(error.__cause__ or error.__context__))


def _current() -> str | None:
    """What Ray is told where it is to find a cluster of this machine: nothing, or to start one.

    It would wait for minutes for one that was killed and has left its address behind.
    """
    from ray._private.utils import read_ray_address

    named = os.environ.get("RAY_ADDRESS")
    found = named or read_ray_address()
    try:
        if found and found not in ("auto", "local"):
            _reach(found)
    except LowgearError:
        if named:
            raise
        return "local"
    return None


def _reach(address: str) -> None:
    """Ray itself would try for minutes."""
    found = re.fullmatch(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", address)
    if found is None:
        raise LowgearError(f"--ray {address!r} is no address: write HOST:PORT of the head node, or put --ray last")
    try:
        with socket.create_connection((found[1].strip("[]"), int(found[2])), CONNECT_S) as reached:
            answers = os.environ.get("RAY_USE_TLS", "0") != "0" or _speaks_http2(reached)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise LowgearError(
            f"--ray {address} cannot be reached ({said}): start a cluster with `ray start --head`, or check the address"
        ) from None
    if not answers:
        raise LowgearError(f"--ray {address} is no Ray cluster: write the port of `ray start --head`, 6379 if not told")


def _speaks_http2(reached: socket.socket) -> bool:
    """As the head node's gRPC does: it answers with its settings, whatever is asked of it."""
    reached.settimeout(CONNECT_S)
    try:
        reached.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS)
        return reached.recv(len(SETTINGS))[3:4] == SETTINGS[3:4]
    except OSError:
        return False


class RayPool:
    """A cluster that one is connected to; `close` when all is done."""

    most = 1_000_000  # Ray queues them

    def __init__(
        self,
        runs: Path,
        remote: Remote | None = None,
        cpus: float | None = None,  # that each program needs; None: a machine's share for each of its GPUs, or all
        gpus: float | None = None,  # None: one where a machine has any
        env_timeout_s: float = 300.0,
        work: Work | None = None,
    ) -> None:
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        self._runs, self._remote, self._env_timeout_s = runs.absolute(), remote, env_timeout_s
        self.gpus = gpus if gpus is not None else float(any(node.get("GPU", 0) >= 1 for node in nodes))
        able = [node for node in nodes if node.get("GPU", 0) >= self.gpus and node.get("CPU", 0) >= 1]
        if not able:
            raise LowgearError(f"no machine of the cluster has {self.gpus:g} GPUs and a CPU: lower --gpus")
        shares = [node["CPU"] // max(1, node.get("GPU", 0) if self.gpus else 1) for node in able]
        self.cpus = cpus if cpus is not None else max(1.0, min(shares))
        rooms = [int(min(n["CPU"] / self.cpus, n["GPU"] / self.gpus if self.gpus else n["CPU"])) for n in able]
        self.slots = sum(rooms)
        if not self.slots:
            most = max(node["CPU"] for node in able)
            raise LowgearError(f"--cpus {self.cpus:g}: no machine of the cluster has so many, {most:g} at most")
        self._work = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0)(work or carry_out_job)
        self._token = self._runs / f".shared-{uuid.uuid4().hex}"
        if remote is None:
            _write_token(self._token)

    def start(self, program: Program) -> StartedProgram:
        """Hand it to the cluster."""
        job = Job(
            program,
            folder=str(self._runs / program.name),
            attempt=uuid.uuid4().hex,
            cores=max(1, int(self.cpus)),
            storage=None if self._remote is None else self._remote.url,
            env_timeout_s=self._env_timeout_s,
        )
        told = {"version": __version__, "cwd": os.getcwd(), "token": "" if self._remote else str(self._token)}
        return _RayTask(self._work.remote(job.to_json(), told), job, self._remote)

    def close(self) -> None:
        """Leave the cluster."""
        import ray

        self._token.unlink(missing_ok=True)
        ray.shutdown()


class _RayTask:
    def __init__(self, reference: Any, job: Job, remote: Remote | None) -> None:
        self._reference, self._job, self._remote, self._fetched = reference, job, remote, 0.0

    def poll(self) -> Result | None:
        import ray

        ready, _ = ray.wait([self._reference], timeout=0)
        if not ready:
            return None
        try:
            kind, why = ray.get(self._reference)
        except ray.exceptions.TaskCancelledError:
            return Result("stopped")
        except ray.exceptions.RayTaskError as error:
            return Result("failed", str(error).strip().splitlines()[-1])
        except ray.exceptions.RayError as error:  # its worker or its machine is gone
            return Result("lost", f"its worker was lost ({type(error).__name__})")
        return Result(kind, why)

    def progress(self) -> ProgramProgress | None:
        folder = Path(self._job.folder)
        if self._remote is not None and time.monotonic() - self._fetched >= FETCH_EVERY_S:
            self._fetched = time.monotonic()
            self._remote.fetch_file(progress_file.NAME, folder)
        return progress_file.read(folder, self._job.attempt)

    def stop(self) -> None:
        import ray

        ray.cancel(self._reference)

    def kill(self) -> None:
        import ray

        with contextlib.suppress(Exception):  # a cluster that is gone
            ray.cancel(self._reference, force=True)


def carry_out_job(raw: dict[str, Any], told: dict[str, str]) -> tuple[str, str]:
    """On a worker: a job in a process of its own, from start to end; how it ended, and why."""
    job, where = Job.from_json(raw), socket.gethostname()
    if told["version"] != __version__:
        return "failed", f"{where} has Lowgear {__version__}, not {told['version']}: install the same there"
    if told["token"] and not Path(told["token"]).exists():
        runs = Path(job.folder).parent
        return "failed", f"{runs} is not the same on {where}: give --storage a directory that all share, or a URL"
    scratch = tempfile.mkdtemp(prefix="lowgear-") if job.storage else None
    if scratch is not None:
        job = replace(job, folder=str(Path(scratch) / job.program.name))
    try:
        return _wait_for(Child(job, told["cwd"] if Path(told["cwd"]).is_dir() else None))
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _wait_for(child: Child) -> tuple[str, str]:
    """A task that is cancelled is interrupted, as by Ctrl-C: its program stops at a checkpoint."""
    while True:
        try:
            result = child.poll()
            if result is not None:
                return result
            time.sleep(CHILD_POLL_S)
        except KeyboardInterrupt:
            child.stop()


def _write_token(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, b"")
    except (OSError, LowgearError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise LowgearError(f"{path.parent} cannot be written to ({said}): choose another --out or --storage") from None
