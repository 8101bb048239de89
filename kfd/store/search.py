"""How a campaign's search stands, read from its candidates' rows: for people, running or ended alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kfd.base.ids import CampaignId, candidate_id
from kfd.core.campaign.state import Asked
from kfd.core.views import SearchView, Share
from kfd.store import rows

__all__ = ["RECENT", "search_view"]

RECENT = 40
"""Questions that count as recent: enough to see a share move, few enough to see it soon."""

_ASKED = "candidate WHERE campaign = ? AND operator NOT IN ('initial', 'tune', 'migrate') AND outcome <> 'no_recording'"
_SHARES = (
    ("operator", "operator"),
    ("model", "coalesce(nullif(model, ''), asked_model)"),
    ("prompt", "variant"),
)

Query = Callable[[str, Sequence[Any]], Awaitable[list[tuple[Any, ...]]]]


async def search_view(query: Query, campaign: CampaignId) -> SearchView:
    """The view. ``query`` runs one statement that only reads; questions without an answer are not counted."""
    newest = await query(
        f"SELECT ordinal, reaction, hints, parent_cell FROM {_ASKED} ORDER BY ordinal DESC LIMIT ?", (campaign, RECENT)
    )
    since = newest[-1][0] if newest else 0
    shares: list[Share] = []
    for kind, column in _SHARES:
        found = await query(
            f"SELECT {column} AS name, count(*), sum(ordinal >= ?), sum(kept) FROM {_ASKED} "
            "GROUP BY name ORDER BY count(*) DESC, name LIMIT 32",
            (since, campaign),
        )
        shares += [Share(kind=kind, name=row[0], asked=row[1], recent=row[2], elites=row[3]) for row in found if row[0]]
    counts = await query(
        f"SELECT coalesce(sum(hints <> ''), 0), coalesce(sum(reaction <> ''), 0) FROM {_ASKED}", (campaign,)
    )
    hinted = await query(
        f"SELECT hints, parent_cell FROM {_ASKED} AND hints <> '' ORDER BY ordinal DESC LIMIT 1", (campaign,)
    )
    points = await query(
        "SELECT count(*), count(DISTINCT parent) FROM candidate INDEXED BY candidate_tuning "
        "WHERE campaign = ? AND (operator = 'tune' OR space IS NOT NULL) AND operator = 'tune'",
        (campaign,),
    )
    swept = await query(
        "SELECT parent FROM candidate INDEXED BY candidate_tuning WHERE campaign = ? "
        "AND (operator = 'tune' OR space IS NOT NULL) AND operator = 'tune' ORDER BY ordinal DESC LIMIT 1",
        (campaign,),
    )
    words: tuple[str, ...] = ()
    if hinted:
        hints, cell = rows.hints_from_text(hinted[0][0]), rows.cell_from_text(hinted[0][1])
        words = Asked(hints=hints, parent_cell=cell).words
    return SearchView(
        shares=tuple(shares),
        recent=len(newest),
        hinted=counts[0][0],
        hints=words,
        reaction=newest[0][1] if newest else "",
        reacting=counts[0][1],
        templates=points[0][1],
        points=points[0][0],
        swept=candidate_id(campaign, swept[0][0]) if swept else None,
    )
