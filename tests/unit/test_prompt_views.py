"""Prompt variants on the wire and on a terminal: bounded, found by their names, and harmless."""

from __future__ import annotations

import asyncio

import pytest

from kfd.api.v1 import control_pb2
from kfd.base.failure import NotFound
from kfd.base.ids import CampaignId
from kfd.core.campaign.mutation import Ended, Mutation, MutationState, first_variant
from kfd.core.search.prompt_archive import MAX_REGION, PromptPolicy, Region, variant_id
from kfd.core.search.proposals import SearchPolicy
from kfd.core.views import PromptView
from kfd.rpc import prompts
from kfd.testing.simulation import sim_spec
from kfd_client.render_prompts import prompt_screen, prompt_table, prompt_text

FIRST = tuple((region, f"first {region.value}") for region in Region)
SPEC = sim_spec(regions=FIRST, search=SearchPolicy(prompts=PromptPolicy(pinned=(Region.ANALYSIS,))))
CHANGED = ((Region.PHILOSOPHY, "first philosophy"), (Region.STRATEGIES, "tile\nfirst strategies"), FIRST[2], FIRST[3])
ACCEPTED = Mutation(
    nth=1,
    parent=first_variant(SPEC).id,
    asked_at=5,
    state=MutationState.ACCEPTED,
    variant=variant_id(dict(CHANGED)),
    generation=1,
    regions=CHANGED,
    model="meta",
    input_tokens=30,
    output_tokens=4,
    ended=Ended(at=6, before=9, nth=1),
)
REJECTED = Mutation(
    nth=2,
    parent=first_variant(SPEC).id,
    asked_at=10,
    state=MutationState.REJECTED,
    reason="no \x1b[2J edit",
    ended=Ended(at=11, before=14, nth=2),
)
VIEWS = [
    PromptView(
        mutation=None, variant=first_variant(SPEC).id, regions=FIRST, children=7, gain=0.7, credit=0.1, held=True
    ),
    PromptView(
        mutation=ACCEPTED, variant=ACCEPTED.variant, regions=CHANGED, children=3, gain=0.9, credit=0.2, held=False
    ),
    PromptView(mutation=REJECTED, variant="", regions=()),
]


class Texts:
    """Texts of mutations, as long as they can be."""

    async def mutation_text(self, campaign: CampaignId, nth: int, kind: str) -> str | None:
        return f"{kind} of {nth}\ud800" + "é" * (1 << 20) if nth == 1 else None


def one(wanted: str) -> control_pb2.PromptVariant:
    response = asyncio.run(prompts.one(Texts(), SPEC, VIEWS, wanted))  # type: ignore[arg-type]
    assert response.ByteSize() < 4 << 20
    (found,) = response.prompts
    return found


def test_a_page_holds_no_texts_and_says_whether_more_follows() -> None:
    first = prompts.page(SPEC, VIEWS, 0, 2)
    assert [two.state for two in first.prompts] == ["first", "accepted"]
    assert first.more
    assert not any(two.regions or two.question for two in first.prompts)
    rest = prompts.page(SPEC, VIEWS, 2, 2)
    assert [(two.state, two.variant, two.parent) for two in rest.prompts] == [
        ("rejected", "", first.prompts[0].variant)
    ]
    assert not rest.more


@pytest.mark.parametrize("wanted", [ACCEPTED.variant, ACCEPTED.variant[:5], "p1", f"{SPEC.id}-p1"])
def test_a_variant_is_found_by_its_names_and_comes_with_its_parent(wanted: str) -> None:
    found = one(wanted)
    assert (found.variant, found.generation, found.credit, found.held) == (ACCEPTED.variant, 1, 0.2, False)
    strategies = found.regions[1]
    assert (strategies.text, strategies.parent_text) == ("tile\nfirst strategies", "first strategies")
    assert [region.name for region in found.regions if region.pinned] == ["analysis"]
    assert found.question.startswith("prompt of 1?")
    assert (found.input_tokens, found.output_tokens, found.asked_at) == (30, 4, 5)


def test_the_first_variant_differs_from_nothing() -> None:
    found = one(first_variant(SPEC).id)
    assert all(region.text == region.parent_text for region in found.regions)


def test_a_mutation_that_made_nothing_can_be_looked_at() -> None:
    found = one("p2")
    assert (found.state, len(found.regions), found.answer) == ("rejected", 0, "")


@pytest.mark.parametrize("wanted", ["zzz", "p3", "c-p1"])
def test_what_is_not_there_is_named(wanted: str) -> None:
    with pytest.raises(NotFound, match="has no prompt"):
        one(wanted)


def test_an_ambiguous_prefix_is_refused() -> None:
    twins = [VIEWS[0], PromptView(mutation=ACCEPTED, variant=first_variant(SPEC).id[:4] + "x", regions=CHANGED)]
    with pytest.raises(NotFound, match="several"):
        asyncio.run(prompts.one(Texts(), SPEC, twins, first_variant(SPEC).id[:3]))  # type: ignore[arg-type]


def test_the_largest_variant_fits_a_message() -> None:
    full = tuple((region, "é" * MAX_REGION) for region in Region)
    views = [PromptView(mutation=ACCEPTED, variant=ACCEPTED.variant, regions=full)]
    assert asyncio.run(prompts.one(Texts(), SPEC, views, "p1")).ByteSize() < 4 << 20  # type: ignore[arg-type]


def test_the_table_tells_state_credit_and_why_not_without_control_characters() -> None:
    text = prompt_table(prompts.page(SPEC, VIEWS, 0, 9).prompts)
    lines = text.splitlines()
    assert len(lines) == 4
    assert lines[1].split()[:4] == ["first", first_variant(SPEC).id, "-", "0"]
    assert "in use" in lines[1]
    assert "dropped since" in lines[2]
    assert "0.2000" in lines[2]
    assert "rejected" in lines[3]
    assert "no edit" in " ".join(lines[3].split())
    assert "\x1b" not in text


def test_one_is_shown_as_what_changed_in_its_parent() -> None:
    text = prompt_screen(one("p1"))
    assert "\nphilosophy, as its parent\n" in text
    assert "\nstrategies\n  +tile\n   first strategies\n" in text
    assert "\nanalysis, pinned, as its parent" in text
    assert "from " + first_variant(SPEC).id + " by meta, after 5 outcomes" in text
    assert "tile" not in prompt_screen(one(first_variant(SPEC).id))
    assert "\n  first analysis\n" in prompt_screen(one(first_variant(SPEC).id))


def test_lines_that_look_like_a_diffs_head_are_shown() -> None:
    region = control_pb2.PromptRegion(name="pitfalls", text="++ one", parent_text="-- two")
    text = prompt_screen(control_pb2.PromptVariant(variant="v", parent="p", regions=[region]))
    assert "  --- two\n  +++ one\n" in text


def test_all_that_a_variant_says_can_be_printed() -> None:
    assert prompt_text(one("p1")).startswith("philosophy:\n\nfirst philosophy\n\nstrategies:\n\ntile\n")
