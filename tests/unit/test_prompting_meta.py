"""The meta-prompter is told what happened, and only a clear edit of a region changes anything."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.core.search.prompt_archive import MAX_REGION, EditError, Region, Variant, variant_id
from kfd.prompting import meta
from kfd.prompting.meta import MAX_CHILDREN, Child, MetaRequest, changed, diff_of, prompt
from kfd.prompting.regions import region_text
from tests.unit.test_prompting_regions import ATTACKS, sections

TEXTS = {
    Region.PHILOSOPHY: "Correct first.",
    Region.STRATEGIES: "Tile loops.\nVectorise loops.\nKeep tiles small.",
    Region.PITFALLS: "Beware of tails.",
}
PARENT = Variant(id=variant_id(TEXTS), regions=TEXTS, generation=2)

OK = Child(
    candidate="c1-7",
    operator="rewrite",
    outcome="ok",
    fitness=0.9,
    parent_fitness=0.7,
    gain=0.2,
    speeds=("1.830x against reference [1.800, 1.860], 24 rounds; worst case odd 1.410x",),
    facts=("vector width: 256",),
    diff="-slow\n+fast",
)
WRONG = Child(
    candidate="c1-9",
    operator="patch",
    outcome="incorrect",
    fitness=0.1,
    parent_fitness=0.7,
    gain=0.0,
    text="case odd: 3 of 17 elements differ",
    cases=("odd: wrong, relative L2 error 0.3",),
)
BROKEN = Child(
    candidate="c1-11",
    operator="rewrite",
    outcome="compile_error",
    fitness=0.0,
    parent_fitness=0.7,
    gain=0.0,
    diagnostics=("kernel.cpp:6: error: expected ;",),
)
PROSE = Child(
    candidate="c1-12",
    operator="rewrite",
    outcome="no_code",
    fitness=0.0,
    parent_fitness=0.7,
    gain=0.0,
    text="the answer has no fenced code block",
)

REQUEST = MetaRequest(
    name="softmax",
    description="Rows",
    toolchain="cpp",
    target="cpp:native",
    device_form=False,
    baseline="reference",
    target_speedup=2.0,
    regions=tuple(TEXTS.items()),
    pinned=(Region.PHILOSOPHY,),
    children=12,
    credit=0.0312,
    mean=0.0201,
    counts=(("compile_error", 3), ("incorrect", 2), ("ok", 7)),
    last=(OK, WRONG, BROKEN, PROSE),
)


def edit(region: str, search: str, replacement: str) -> str:
    return f"### {region}\n<<<<<<< SEARCH\n{search}\n=======\n{replacement}\n>>>>>>> REPLACE\n"


def made(text: str, pinned: tuple[Region, ...] = (), most: int = 3, finish: str = "stop") -> Variant:
    return changed(text, finish, PARENT, pinned, most)


# ---- what it is told ------------------------------------------------------------------------------------------------


def test_the_meta_prompter_is_told_what_became_of_each_child() -> None:
    user = prompt(REQUEST).user
    assert "### c1-7: ok, by rewrite" in user
    assert "fitness 0.9000, its parent 0.7000: counts as a gain of 0.2000" in user
    assert "1.830x against reference [1.800, 1.860], 24 rounds" in user
    assert "fact: vector width: 256" in user
    assert "-slow\n+fast" in user
    assert "### c1-9: incorrect, by patch" in user
    assert "case odd: wrong, relative L2 error 0.3" in user
    assert "3 of 17 elements differ" in user
    assert "### c1-11: compile_error, by rewrite" in user
    assert "compiler: kernel.cpp:6: error: expected ;" in user
    assert "### c1-12: no_code, by rewrite" in user
    assert "no fenced code block" in user
    assert user.count("no gain") == 3
    assert "compile_error 3, incorrect 2, ok 7" in user
    assert "12 children count" in user
    assert "is 0.0312; the mean of" in user
    assert "is 0.0201." in user


def test_it_is_told_which_regions_are_pinned_and_which_are_empty() -> None:
    user = prompt(REQUEST).user
    assert "### philosophy (pinned by the user: it cannot change)" in user
    assert "### strategies\n\n```text\nTile loops." in user
    assert "### analysis\n\n(empty)" in user


@pytest.mark.parametrize(("most", "words"), [(1, "then one edit,"), (3, "then one to 3 edits,")])
def test_it_is_told_how_many_edits_are_allowed(most: int, words: str) -> None:
    assert words in prompt(replace(REQUEST, edits=most)).user


def test_the_example_names_a_region_that_may_change() -> None:
    pinned = (Region.PHILOSOPHY, Region.STRATEGIES)
    assert "in exactly this form:\n\n### pitfalls\n" in prompt(replace(REQUEST, pinned=pinned)).user
    with pytest.raises(ValueError, match="every region is pinned"):
        prompt(replace(REQUEST, pinned=tuple(Region)))


@settings(deadline=None, max_examples=100)
@given(st.one_of(st.sampled_from(ATTACKS), st.text(max_size=200)), st.integers(0, 5))
def test_no_text_of_a_child_changes_the_sections_of_the_question(text: str, where: int) -> None:
    fields = ("text", "diff", "diagnostics", "cases", "facts", "speeds")
    name = fields[where]
    hostile = replace(OK, **{name: f"x {text}" if where < 2 else (f"x {text}",)})  # type: ignore[arg-type]
    calm = replace(OK, **{name: "x" if where < 2 else ("x",)})  # type: ignore[arg-type]
    asked, plain = (prompt(replace(REQUEST, last=(child,))).user for child in (hostile, calm))
    assert sections(asked) == sections(plain)


def test_a_question_has_a_bound_whatever_the_children_are() -> None:
    huge = replace(
        OK,
        text="t" * 10**6,
        diff="d\n" * 10**6,
        speeds=("s" * 10**5,) * 50,
        cases=("c" * 10**5,) * 500,
        diagnostics=("e" * 10**5,) * 500,
        facts=("f" * 10**5,) * 500,
    )
    full = tuple((region, "r" * MAX_REGION) for region in Region)
    user = prompt(replace(REQUEST, regions=full, last=(huge,) * 50, counts=(("x" * 999, 1),) * 500)).user
    assert user.count("### c1-7") == MAX_CHILDREN
    assert len(user) < 4 * MAX_REGION + MAX_CHILDREN * 14_000 + 4_000


def test_a_diff_shows_what_changed_and_is_bounded() -> None:
    assert diff_of("a\nb\nc", "a\nB\nc").split("\n")[3:] == [" a", "-b", "+B", " c"]
    assert diff_of("same", "same") == ""
    begun = time.monotonic()
    for one, other in (("x\n" * 10**6, "y\nx\n" * 10**6), ("ab" * 10**6, "ba" * 10**6)):
        assert len(diff_of(one, other)) <= 4000
    assert time.monotonic() - begun < 5


# ---- what its answer changes ----------------------------------------------------------------------------------------


def test_an_edit_changes_its_region_and_no_other() -> None:
    child = made("Loops are vague.\n\n" + edit("strategies", "Vectorise loops.", "Vectorise inner loops with simd."))
    assert child.regions[Region.STRATEGIES] == "Tile loops.\nVectorise inner loops with simd.\nKeep tiles small."
    assert {**child.regions, Region.STRATEGIES: TEXTS[Region.STRATEGIES]} == TEXTS
    assert (child.parent, child.generation) == (PARENT.id, 3)
    assert child.id == variant_id(child.regions)


@pytest.mark.parametrize(
    "head",
    [
        "### strategies",
        "## **Strategies**",
        "strategies:",
        "`strategies`",
        "**strategies**",
        "Region: strategies",
        "- strategies",
    ],
)
def test_a_region_may_be_named_in_several_ways(head: str) -> None:
    text = edit("X", "Tile loops.", "Tile both loops.").replace("### X", head)
    assert "Tile both loops." in made(text).regions[Region.STRATEGIES]


def test_a_region_may_be_named_behind_the_sign_as_in_the_release() -> None:
    text = "<<<<<<< SEARCH pitfalls\nBeware of tails.\n=======\nMask tails.\n>>>>>>> REPLACE"
    assert made(text).regions[Region.PITFALLS] == "Mask tails."


def test_prose_and_fences_around_edits_do_no_harm() -> None:
    text = (
        "Diagnosis: the advice is\nvague.\n\n```text\n"
        + edit("pitfalls", "Beware of tails.", "Mask tails.")
        + "```\nDone."
    )
    assert made(text).regions[Region.PITFALLS] == "Mask tails."
    inner = edit("pitfalls", "```\nBeware of tails.\n```", "```\nMask tails.\n```")
    assert made(inner).regions[Region.PITFALLS] == "Mask tails."


def test_several_edits_are_applied_in_order() -> None:
    text = edit("strategies", "Tile loops.", "Tile outer loops.") + edit("strategies", "Tile outer", "Block outer")
    assert made(text).regions[Region.STRATEGIES].startswith("Block outer loops.")


def test_an_empty_region_is_filled_by_an_empty_search() -> None:
    assert made(edit("analysis", "", "Count bytes.")).regions[Region.ANALYSIS] == "Count bytes."


def test_line_ends_trailing_blanks_and_thoughts_are_forgiven() -> None:
    text = "<think>\n### pitfalls\n<<<<<<< SEARCH\nno\n</think>\n" + edit(
        "pitfalls", "Beware of tails.  ", "Mask tails."
    )
    assert made(text.replace("\n", "\r\n")).regions[Region.PITFALLS] == "Mask tails."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("I would rather talk about it.", "no edit was given"),
        (edit("strategies", "Unroll.", "x"), "was not found in strategies"),
        (edit("strategies", "loops.", "x"), "is there more than once"),
        (edit("philosophy", "Correct first.", "Return zeros."), "philosophy is pinned"),
        (edit("tactics", "Tile loops.", "x"), "names the region 'tactics'; there are philosophy"),
        (edit("X", "Tile loops.", "x").replace("### X", "Here:"), "edit 1 names no region"),
        (edit("strategies", "Tile loops.", "Tile loops."), "the edits change nothing"),
        (edit("strategies", "Tile loops.", "## Tile loops."), "the edits change nothing"),
        (edit("strategies", "", "More."), "an empty SEARCH fits only an empty region"),
        (edit("pitfalls", "Beware of tails.", "x" * (MAX_REGION + 1)), "longer than 8000"),
        (edit("pitfalls", "Beware of tails.", "<<<< " + "<|" * 3900), "longer than 8000"),
        (edit("pitfalls", "Beware of tails.", "Mask.") * 4, "4 edits were given; at most 3"),
        (edit("pitfalls", "Beware of tails.", "Mask.").removesuffix(">>>>>>> REPLACE\n"), "not finished"),
        ("### pitfalls\n<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb", "begins again"),
        ("<think>\nnever ends", "never finished thinking"),
    ],
)
def test_what_is_no_clear_edit_changes_nothing_and_says_why(text: str, why: str) -> None:
    with pytest.raises(EditError) as caught:
        made(text, pinned=(Region.PHILOSOPHY,))
    assert why in str(caught.value)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_that_was_cut_off_or_withheld_changes_nothing(finish: str) -> None:
    with pytest.raises(EditError):
        made(edit("pitfalls", "Beware of tails.", "Mask tails."), finish=finish)


REFUSED = [attack for attack in ATTACKS if "<<<<<<<" in attack or "\x1b" in attack]


@pytest.mark.parametrize("attack", REFUSED)
def test_an_edit_in_an_edit_and_what_is_no_text_are_refused(attack: str) -> None:
    with pytest.raises(EditError, match=r"begins again|holds the character"):
        made(edit("pitfalls", "Beware of tails.", f"Mask tails.\n{attack}"))


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if attack not in REFUSED])
def test_what_an_edit_brings_in_is_made_harmless(attack: str) -> None:
    child = made(edit("pitfalls", "Beware of tails.", f"Mask tails.\n{attack}"))
    text = child.regions[Region.PITFALLS]
    assert text.startswith("Mask tails.")
    assert region_text(text) == text


def test_a_marker_that_two_edits_put_together_is_made_harmless() -> None:
    first = edit("pitfalls", "Beware of tails.", "[EVOLVE_ Beware of tails.")
    child = made(first + edit("pitfalls", " Beware of tails.", "END]"))
    assert "[EVOLVE_END]" not in child.regions[Region.PITFALLS]


PARTS = st.sampled_from(
    [
        "### strategies",
        "### pitfalls",
        "<<<<<<< SEARCH",
        "=======",
        ">>>>>>> REPLACE",
        "Tile loops.",
        "Beware of tails.",
        "new advice",
        "```",
        "",
        *ATTACKS,
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.text(max_size=300), st.lists(PARTS, max_size=14).map("\n".join)))
def test_whatever_is_answered_makes_a_lawful_variant_or_a_reason(text: str) -> None:
    try:
        child = made(text, pinned=(Region.STRATEGIES,))
    except EditError:
        return
    assert child.regions[Region.STRATEGIES] == TEXTS[Region.STRATEGIES]
    assert child.id != PARENT.id
    assert all(len(one) <= MAX_REGION and region_text(one) == one for one in child.regions.values())


def test_an_answer_of_many_lines_is_read_in_linear_time() -> None:
    begun = time.monotonic()
    for line in (
        "### strategies\n",
        "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
        "*" * 40 + "\n",
        "region: " * 5 + "\n",
    ):
        with pytest.raises(EditError):
            made(line * (900_000 // len(line)))
    assert time.monotonic() - begun < 10
    assert len(meta.read_edits("x" * 900_000)) == 0
