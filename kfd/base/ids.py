"""Names of things. Ids are derived where possible, so that creating a thing twice creates it once.

========  =======================  =========================================
thing     form                     derived from
========  =======================  =========================================
campaign  ``c7f3k2``               random token, drawn once per submission
candidate ``c7f3k2-17``            campaign and ordinal
job       ``c7f3k2-17.build``      candidate and purpose
========  =======================  =========================================
"""

from __future__ import annotations

from typing import NewType

__all__ = [
    "CampaignId",
    "CandidateId",
    "JobId",
    "SessionId",
    "SlotName",
    "WorkerName",
    "campaign_id",
    "campaign_of",
    "candidate_id",
    "candidate_of",
    "job_id",
    "ordinal_of",
]

CampaignId = NewType("CampaignId", str)
CandidateId = NewType("CandidateId", str)
JobId = NewType("JobId", str)
WorkerName = NewType("WorkerName", str)
SessionId = NewType("SessionId", str)
SlotName = NewType("SlotName", str)

# No vowels and no look-alikes: an id is never a word and survives being read aloud.
_ALPHABET = "0123456789bcdfghjkmnpqrstvwxz"


def campaign_id(token: bytes) -> CampaignId:
    """Campaign id from at least eight random bytes."""
    if len(token) < 8:
        raise ValueError("a campaign id needs at least 8 random bytes")
    number = int.from_bytes(token[:8], "big")
    letters = []
    for _ in range(7):
        number, index = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return CampaignId("c" + "".join(letters))


def candidate_id(campaign: CampaignId, ordinal: int) -> CandidateId:
    """Candidate id from its campaign and its place in the order of asking (0 = initial kernel)."""
    if ordinal < 0:
        raise ValueError("ordinals start at 0")
    return CandidateId(f"{campaign}-{ordinal}")


def campaign_of(candidate: CandidateId) -> CampaignId:
    """Campaign that a candidate belongs to."""
    return CampaignId(candidate.rpartition("-")[0])


def ordinal_of(candidate: CandidateId) -> int:
    """Place of a candidate in its campaign's order of asking."""
    return int(candidate.rpartition("-")[2])


def job_id(candidate: CandidateId, purpose: str) -> JobId:
    """Job id from its candidate and purpose (``build``, ``run``, ``verify``)."""
    return JobId(f"{candidate}.{purpose}")


def candidate_of(job: JobId) -> CandidateId:
    """Candidate that a job works on."""
    return CandidateId(job.rpartition(".")[0])
