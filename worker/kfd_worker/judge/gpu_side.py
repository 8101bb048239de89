"""A run box with an NVIDIA device, as the judge sees it: our own program, whose statuses say whose fault it is."""

from __future__ import annotations

from kfd.base.work import IncidentCode, VerdictCode
from kfd_worker.judge.faults import CandidateFault, DeviceFault
from kfd_worker.judge.gpu_clock import fault_code
from kfd_worker.judge.side import Side

__all__ = ["GpuSide"]


class GpuSide(Side):
    """The judge's end of a box in which ``harness/cuda_child.py`` runs."""

    def _failed(self, status: int, said: str) -> Exception:
        code = fault_code(status)
        if isinstance(code, VerdictCode):
            return CandidateFault(code, said)
        return DeviceFault(IncidentCode(code), said)
