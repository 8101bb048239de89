"""What a model claims of its algorithm: read from its prose alone, and weaker than any evidence in the source."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.core.events import DraftArrived
from kfd.daemon.tuning import migrant, point
from kfd.prompting.claims import WORDS, claimed_algorithm, with_claim
from kfd.prompting.reading import drafted
from kfd.prompting.render import prompt
from tests.unit.test_prompting_render import SPEC, kernel
from tests.unit.test_prompting_tokens import full
from tests.unit.test_tuning_points import BODY, request_of

PLAIN = "y[0] = x[0];\n"


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        ("It is faster.\nAlgorithm: fused\n```cpp\nint x;\n```\n", 1),
        ("Algorithm: direct", 0),
        ("**Algorithm**: `reformulated`, by an online sum", 2),
        ("- algorithm: Reduced\r\n", 3),
        ("Algorithm: direct\nNo: better.\nAlgorithm: fused", 1),
        ("```cpp\nAlgorithm: reduced\n```\n", None),
        ("```cpp\n// nothing\n```\nAlgorithm: fused", 1),
        ("```cpp\nAlgorithm: reduced", None),
        ("The algorithm: reduced it is", None),
        ("Algorithm: quantum", None),
        ("Algorithm: fusedly", None),
        ("// Algorithm: reduced", None),
        ("", None),
    ],
)
def test_a_claim_is_a_line_of_prose(answer: str, level: int | None) -> None:
    assert claimed_algorithm(answer) == level


@given(st.text(max_size=400))
def test_no_answer_is_a_fall(answer: str) -> None:
    assert claimed_algorithm(answer) in (None, 0, 1, 2, 3)


def test_a_claim_counts_on_one_axis_and_only_where_the_source_shows_nothing() -> None:
    assert with_claim((2, 0, 1), 3) == (2, 3, 1)
    assert with_claim((2, 1, 1), 3) == (2, 1, 1)
    assert with_claim((2, 0, 1), None) == (2, 0, 1)


def test_the_prompt_asks_for_the_words_that_are_read() -> None:
    asked = prompt(full()).user
    assert all(f"`Algorithm: {word}`" in asked for word in WORDS)


def test_points_and_migrants_keep_what_their_author_claimed() -> None:
    assert drafted(kernel(PLAIN), "cpp").cell[1] == 0
    assert drafted(kernel(PLAIN), "cpp", algorithm=2).cell[1] == 2
    template = kernel(BODY)
    made = point(replace(request_of({"TILE": 16}), algorithm=2), template.text, SPEC)
    assert isinstance(made, DraftArrived)
    assert made.drafted.cell[1] == 2
    moved = migrant(replace(request_of({}), algorithm=3), kernel(PLAIN).text, SPEC)
    assert isinstance(moved, DraftArrived)
    assert moved.drafted.cell[1] == 3
