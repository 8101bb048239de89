"""Renderers are pure: snapshots, and no stranger's text that moves a terminal."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import json
import re

import pytest
from google.protobuf.message import Message

from kfd.api.v1 import admin_pb2, common_pb2, control_pb2
from kfd_client import render
from kfd_client.exits import Exit
from kfd_client.follow import outcome
from kfd_client.jsonout import json_line, to_json

SECOND = 1_000_000_000


def speed(baseline: str = "reference", value: float = 1.834) -> control_pb2.Speed:
    return control_pb2.Speed(
        baseline=baseline,
        value=value,
        low=value - 0.03,
        high=value + 0.03,
        rounds=24,
        worst_case="odd",
        worst_value=1.41,
    )


def campaign(**fields: object) -> control_pb2.Campaign:
    base: dict[str, object] = {
        "id": "c7f3k2x",
        "name": "softmax-3",
        "state": "running",
        "target": "cpp:native",
        "generator": "openai",
        "budget_candidates": 24,
        "budget_ns": 8 * 3600 * SECOND,
        "active_ns": 130 * SECOND,
        "candidates_by_outcome": [
            control_pb2.Count(key="compile_error", value=2),
            control_pb2.Count(key="ok", value=7),
            control_pb2.Count(key="building", value=1),
            control_pb2.Count(key="discarded:no_op", value=1),
        ],
        "best": "c7f3k2x-9",
        "initial": "c7f3k2x-0",
        "best_speeds": [speed("initial", 3.2), speed()],
        "baseline": "reference",
        "cells": 4,
        "incidents": 1,
        "input_tokens": 1200,
        "output_tokens": 3400,
    }
    return control_pb2.Campaign(**{**base, **fields})  # type: ignore[arg-type]


def test_a_speed_names_baseline_interval_count_and_worst_case() -> None:
    assert render.speed_text(speed()) == "1.83x vs reference [1.80, 1.86], 24 rounds, worst case odd 1.41x"


def test_the_progress_line() -> None:
    assert render.progress_line(campaign(), 200) == (
        "running  9/24  best 1.83x vs reference [1.80, 1.86], 24 rounds  "
        "ok 7  compile_error 2  building 1  discarded:no_op 1  1 incident"
    )


@pytest.mark.parametrize("width", [10, 40, 80])
def test_the_progress_line_never_wraps(width: int) -> None:
    assert len(render.progress_line(campaign(), width)) < width


def test_the_screen_of_a_campaign() -> None:
    assert render.campaign_screen(campaign(waiting_for=["a worker for cpp:native"])) == (
        "softmax-3 (c7f3k2x)  running\n"
        "target   cpp:native, answers from openai\n"
        "best     c7f3k2x-9\n"
        "         3.20x vs initial [3.17, 3.23], 24 rounds, worst case odd 1.41x\n"
        "         1.83x vs reference [1.80, 1.86], 24 rounds, worst case odd 1.41x\n"
        "done     9 of 24 candidates and the initial kernel, 4 cells\n"
        "         ok 7  compile_error 2  building 1  discarded:no_op 1\n"
        "spent    2 m 10 s of 8 h 00 m, 1200 tokens in, 3400 out\n"
        "lost     1 incident, none charged to a candidate\n"
        "waits    a worker for cpp:native\n"
        "next     kfd-client logs c7f3k2x -f      kfd-client best c7f3k2x\n"
    )


def test_the_screen_shows_how_the_search_stands() -> None:
    search = control_pb2.Search(
        asked=[
            control_pb2.Share(kind="operator", name="rewrite", asked=50, recent=30, elites=4),
            control_pb2.Share(kind="operator", name="patch", asked=10, recent=10),
            control_pb2.Share(kind="model", name="small", asked=45, recent=38),
            control_pb2.Share(kind="model", name="large", asked=15, recent=2),
            control_pb2.Share(kind="prompt", name="a1b2c3", asked=60, recent=40),
        ],
        recent=40,
        hinted=12,
        hints=["Fuse the steps.", "Use tiles."],
        reaction="switch_operators",
        reacting=9,
        templates=1,
        points=14,
        swept="c7f3k2x-31",
        roofline=0.417,
    )
    shown = render.campaign_screen(campaign(search=search)).splitlines()
    assert shown[8:15] == [
        "asked    rewrite 50 (30 of the newest 40), patch 10 (10 of the newest 40)",
        "models   small 45 (38 of the newest 40), large 15 (2 of the newest 40)",
        "hints    in 12 questions; the newest: Fuse the steps. Use tiles.",
        "sweeps   14 points of 1 template, now c7f3k2x-31",
        "plateau  now switch_operators; 9 questions asked during one",
        "roof     the best reaches 42% of a plain copy's speed",
        "lost     1 incident, none charged to a candidate",
    ]


def test_the_ending_of_a_campaign_says_what_recordings_are() -> None:
    ended = campaign(state="finished", reason="budget spent", generator="recorded", final_speeds=[speed(value=1.79)])
    assert render.ending(ended) == (
        "softmax-3 (c7f3k2x) finished: budget spent\n"
        "answers  were recordings in the task, not a model's\n"
        "best     c7f3k2x-9\n"
        "         3.20x vs initial [3.17, 3.23], 24 rounds, worst case odd 1.41x\n"
        "         1.83x vs reference [1.80, 1.86], 24 rounds, worst case odd 1.41x\n"
        "         measured afresh at the end:\n"
        "         1.79x vs reference [1.76, 1.82], 24 rounds, worst case odd 1.41x\n"
        "counts   ok 7  compile_error 2  building 1  discarded:no_op 1\n"
        "next     kfd-client best c7f3k2x --source -o FILE\n"
    )


def test_the_list_of_campaigns() -> None:
    listed = render.campaign_table(
        [campaign(), campaign(id="c1", name="x", state="failed", reason="no worker", best_speeds=[])]
    )
    assert listed == (
        "ID       NAME       STATE    BEST                VS               DONE  ACTIVE    NOTE\n"
        "c7f3k2x  softmax-3  running  1.83x [1.80, 1.86]  reference, n=24  9/24  2 m 10 s  -\n"
        "c1       x          failed   -                   -                9/24  2 m 10 s  no worker\n"
    )
    assert render.campaign_table([]) == "no campaigns\n"


def test_the_screen_of_a_candidate() -> None:
    response = control_pb2.GetCandidateResponse(
        candidate=control_pb2.Candidate(
            id="c7-9", outcome="incorrect", text="case odd differs", operator="patch", parents=["c7-4"], model="m", generation=3,
            cell="1,2,0", cases=[control_pb2.CaseView(name="odd", relative_l2=0.31, worst=4.2, detail="3 of 17")],
            diagnostics=[control_pb2.DiagnosticView(file="kernel.cpp", line=4, column=2, severity="warning", text="unused")],
            worker="w1", attempts=2, log_tail="one\ntwo\n",
        )
    )  # fmt: skip
    assert render.candidate_screen(response) == (
        "c7-9  incorrect: case odd differs\n"
        "made     by patch from c7-4, generation 3, m\n"
        "cell     memory, algorithm, parallelism = 1,2,0\n"
        "case     odd FAILED: relative L2 0.31, worst element 4.2 of its bound, 3 of 17\n"
        "compiler kernel.cpp:4:2: warning: unused\n"
        "worker   w1, 2 attempts\n"
        "tokens   no tokens counted\n"
        "log      (its last lines)\n"
        "  | one\n"
        "  | two\n"
    )


def test_a_candidate_says_why_the_search_asked_for_it() -> None:
    one = control_pb2.Candidate(
        id="c7-9",
        outcome="ok",
        operator="rewrite",
        parents=["c7-4"],
        generation=3,
        strategy="curiosity",
        asked_model="large",
        variant="ab12",
        hints=["Fuse the steps."],
        reaction="widen_exploration",
    )
    lines = render.candidate_screen(control_pb2.GetCandidateResponse(candidate=one)).splitlines()
    assert lines[2:4] == [
        "search   parent by curiosity, asked of large, prompt ab12, plateau: widen_exploration",
        "hint     Fuse the steps.",
    ]


def test_the_table_of_workers() -> None:
    slot = admin_pb2.SlotView(
        slot="run0", kind="run", device="cpu0", state="running", job="c7-9.run", since_ns=41 * SECOND, stage="check"
    )
    response = admin_pb2.ListWorkersResponse(
        workers=[
            admin_pb2.WorkerView(worker="lab1", state="up", last_seen_ns=SECOND, slots=[slot], jobs_settled=12),
            admin_pb2.WorkerView(worker="old", state="down", reason="silent", last_seen_ns=540 * SECOND),
        ],
        queued_builds=1,
        oldest_queued_ns=2 * SECOND,
    )
    assert render.worker_table(response) == (
        "WORKER  SLOT  KIND  DEVICE  STATE    RUNNING              SEEN      JOBS  WHY\n"
        "lab1    run0  run   cpu0    running  c7-9.run check 41 s  1 s       12    -\n"
        "old     -     -     -       down     -                    9 m 00 s  0     silent\n"
        "queued   1 build, 0 runs, the oldest for 2 s\n"
    )


def test_simulated_numbers_are_never_shown_as_measurements() -> None:
    simulated = campaign(simulated=True)
    for text in (
        render.campaign_screen(simulated),
        render.progress_line(simulated, 200),
        render.campaign_table([simulated]),
    ):
        assert "simulated" in text


EVIL = "a\x1b[2J\x1b]0;owned\x07b\rc\x9b31m\u202ed\x00\u200be\nf" + "x" * 5000


def poison(message: Message) -> Message:
    """Every text of a message, however deep, replaced by a hostile one; numbers by odd ones."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            target = getattr(message, field.name)
            poison(target.add() if field.is_repeated else target)
        elif field.type == field.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name).append(EVIL)
            else:
                setattr(message, field.name, EVIL)
        elif field.type == field.TYPE_DOUBLE:
            setattr(message, field.name, float("nan"))
    return message


def shown(message: Message) -> str:
    if isinstance(message, control_pb2.Campaign):
        texts = (render.campaign_screen(message), render.ending(message), render.campaign_table([message]))
        return "".join(texts) + render.progress_line(message, 100)
    if isinstance(message, control_pb2.GetCandidateResponse):
        return render.candidate_screen(message)
    if isinstance(message, admin_pb2.ListWorkersResponse):
        return render.worker_table(message)
    assert isinstance(message, control_pb2.Event)
    return render.event_line(message)


@pytest.mark.parametrize(
    "kind", [control_pb2.Campaign, control_pb2.GetCandidateResponse, admin_pb2.ListWorkersResponse, control_pb2.Event]
)
def test_no_text_of_a_stranger_reaches_the_terminal_unescaped(kind: type[Message]) -> None:
    message = poison(kind())
    text = shown(message)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]", text)
    assert "ab" in text
    assert len(text) < 60_000
    line = json_line(message)
    assert line.isascii()
    assert line.isprintable()
    json.loads(line, parse_constant=pytest.fail)


def test_json_has_every_field_under_its_name_with_numbers_as_numbers() -> None:
    plain = to_json(campaign(task=common_pb2.Digest(hash="ab", size=2**40)))
    assert set(plain) == {field.name for field in control_pb2.Campaign.DESCRIPTOR.fields}
    assert plain["budget_ns"] == 8 * 3600 * SECOND
    assert plain["task"] == {"hash": "ab", "size": 2**40}
    assert plain["best_speeds"][1]["value"] == 1.834
    assert to_json(control_pb2.Event(seq=3, body='{"a": [1]}'))["body"] == {"a": [1]}
    assert to_json(campaign())["task"] is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state": "running"}, Exit.RUNNING),
        ({"state": "paused"}, Exit.RUNNING),
        ({"state": "cancelled"}, Exit.FAILED),
        ({"state": "failed"}, Exit.FAILED),
        ({"state": "failed", "incidents_unresolved": 2}, Exit.INCIDENT),
        ({"state": "finished"}, Exit.DONE),
        ({"state": "finished", "best": ""}, Exit.NOTHING_BETTER),
        ({"state": "finished", "best": "c7f3k2x-0"}, Exit.NOTHING_BETTER),
        ({"state": "finished", "best_speeds": [speed(value=1.02)]}, Exit.NOTHING_BETTER),
        ({"state": "finished", "best_speeds": [speed("initial", 3.0), speed(value=0.9)]}, Exit.NOTHING_BETTER),
        ({"state": "finished", "final_speeds": [speed(value=0.9)]}, Exit.NOTHING_BETTER),
        ({"state": "finished", "best_speeds": [speed(value=float("nan"))]}, Exit.NOTHING_BETTER),
    ],
    ids=range(12),
)
def test_the_exit_code_says_how_a_campaign_stands(fields: dict[str, object], code: Exit) -> None:
    assert outcome(campaign(**fields)) is code
