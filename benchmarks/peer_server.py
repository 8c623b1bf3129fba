"""Processes forked from one that has imported a tool: what `peer_faults.py` runs its trials in, as imports cost most.

    python benchmarks/peer_server.py MODULE...

A line on standard input is a job, {"argv", "set", "cwd", "out", "err"}, and is answered by its process's id; or
{"wait": id}, and is answered by the exit code, negative for a signal. `argv` is what would follow `python`.
"""

import importlib
import json
import os
import runpy
import signal
import sys


def be(job):
    """Become the program that the job asks for."""
    for number, name in ((1, job["out"]), (2, job["err"])):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(job["cwd"])
    os.environ.update(job["set"])
    if job["argv"][0] == "-m":
        sys.argv = job["argv"][1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = job["argv"]
        runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit()


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    for name in sys.argv[1:]:
        importlib.import_module(name)
    print(len(os.listdir("/proc/self/task")), flush=True)  # threads: a fork keeps one
    while line := sys.stdin.readline():
        job = json.loads(line)
        if "wait" in job:
            answer = os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                be(job)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
