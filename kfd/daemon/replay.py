"""``kfd debug replay``: read a stored campaign and have its decisions made again."""

from __future__ import annotations

from pathlib import Path

from kfd.base.failure import WrongState
from kfd.core.campaign.replay import replay
from kfd.core.campaign.state import Candidate
from kfd.store.migrate import migrations
from kfd.store.read import Reader

__all__ = ["replayed"]

PAGE = 500
"""Candidates read at once."""


async def replayed(database: Path, campaign: str) -> tuple[bool, str]:
    """Whether every decision of a campaign came out as it is stored, and what to say about it.

    Reads only, so a daemon may be running. Raises CallerError for a campaign or a file that cannot be replayed.
    """
    reader = await Reader.open(database)
    try:
        version, newest = await reader.schema_version(), migrations()[-1].version
        if version != newest:
            raise WrongState(f"{database} has schema {version}, this kfd reads {newest}", mend="start the daemon once")
        # One state of the store: a campaign that goes on must not be read half before and half after an outcome.
        await reader.connection.execute("BEGIN")
        view = await reader.campaign(await reader.resolve_campaign(campaign))
        candidates: list[Candidate] = []
        after = -1
        while True:
            page = await reader.candidates(view.spec.id, after=after, limit=PAGE)
            if not page:
                break
            candidates += [one.candidate for one in page]
            after = candidates[-1].ordinal
        mutations = await reader.mutations(view.spec.id)
    finally:
        await reader.close()
    try:
        result = replay(view.spec, candidates, mutations)
    except ValueError as error:
        raise WrongState(str(error), mend="replay a campaign that was begun since") from error
    learnt = f"{result.decisions} decisions of {view.spec.id} made again, {result.told} candidates told"
    if mutations:
        learnt += f", {result.mutations} mutations of prompts due as asked"
    found = result.difference
    if found is None:
        return True, f"{learnt}: operator, parent, inspirations, hints, model and prompt of each are as stored"
    return False, (
        f"{learnt}; then {found.candidate} differs in its {found.what}: "
        f"stored {found.stored[:200]}, decided {found.decided[:200]}"
    )
