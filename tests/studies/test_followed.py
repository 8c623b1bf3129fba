"""Metrics that another process writes are passed on once each."""

import json

from lowgear.studies import followed
from lowgear.studies.followed import Followed


def line(kind, agent, steps, **more):
    return {"kind": kind, "agent": agent, "steps": steps, **more}


def write(path, *lines, mode="ab"):
    with path.open(mode) as file:
        file.write(b"".join(json.dumps(one).encode() + b"\n" for one in lines))


def follow(folder, agents=2, first=0):
    return Followed(folder / "metrics.jsonl", agents, first)


def steps(lines):
    return [(one["kind"], one["agent"], one["steps"]) for one in lines]


def test_lines_are_passed_on_as_they_come_and_half_a_line_waits(tmp_path):
    metrics, watched = tmp_path / "metrics.jsonl", follow(tmp_path)
    assert watched.lines() == []  # there is no file yet
    write(metrics, line("train", 0, 10), line("train", 1, 10))
    with metrics.open("ab") as file:
        file.write(b'{"kind": "train", "agent"')
    assert steps(watched.lines()) == [("train", 0, 10), ("train", 1, 10)]
    with metrics.open("ab") as file:
        file.write(b': 0, "steps": 20}\n')
    assert steps(watched.lines()) == [("train", 0, 20)]
    assert watched.lines() == []


def test_a_file_that_was_cut_and_written_anew_is_not_told_twice(tmp_path):
    """As by a program that was lost and goes on from its checkpoint; the speed it logs is another."""
    metrics, watched = tmp_path / "metrics.jsonl", follow(tmp_path)
    kept = [line("train", 0, 10), line("evaluation", 0, 10, score=1.5)]
    write(metrics, *kept, line("train", 0, 20, speed=1.25), line("train", 0, 30))
    assert len(watched.lines()) == 4
    write(metrics, *kept, line("train", 0, 20, speed=123456.5), line("train", 0, 30), mode="wb")
    assert watched.lines() == []
    write(metrics, line("train", 0, 40), line("evaluation", 0, 40, score=2.5))
    assert steps(watched.lines()) == [("train", 0, 40), ("evaluation", 0, 40)]
    assert watched.evaluation == [line("evaluation", 0, 40, score=2.5)]


def test_the_last_evaluation_is_known_however_often_it_is_written(tmp_path):
    metrics, watched = tmp_path / "metrics.jsonl", follow(tmp_path)
    both = [line("evaluation", 0, 10), line("evaluation", 1, 10)]
    for _ in range(2):
        write(metrics, line("train", 0, 10), *both, mode="wb")
        watched.lines()
        assert watched.evaluation == both
    write(metrics, line("evaluation", 1, 20))
    watched.lines()
    assert watched.evaluation == [line("evaluation", 1, 20)]


def test_agents_of_a_shard_have_the_numbers_of_the_whole(tmp_path):
    write(tmp_path / "metrics.jsonl", line("train", 0, 10), line("train", 1, 10))
    assert steps(follow(tmp_path, first=5).lines()) == [("train", 5, 10), ("train", 6, 10)]


def test_lines_that_are_none_of_ours_are_left_out(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('[]\n{"kind": "other", "agent": 0, "steps": 1}\n{\n{"kind": "train", "agent": 0}\n')
    write(metrics, line("train", 2, 10), line("train", -1, 10), line("train", 1, "10"), line("train", 1, 10))
    assert steps(follow(tmp_path).lines()) == [("train", 1, 10)]


def test_a_long_file_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(followed, "MOST_BYTES", 100)
    write(tmp_path / "metrics.jsonl", *(line("train", 0, number) for number in range(20)))
    watched, found = follow(tmp_path), []
    while more := watched.lines():
        assert len(more) < 4
        found += more
    assert [one["steps"] for one in found] == list(range(20))
