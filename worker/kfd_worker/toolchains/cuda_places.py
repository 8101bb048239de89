"""Where parts of NVIDIA's toolkit lie that are not on a PATH."""

from __future__ import annotations

import glob
import os
import sysconfig

__all__ = ["find_nvrtc", "triton_tool"]


def find_nvrtc() -> str:
    """libnvrtc of the toolkit or of a Python package; empty when there is none."""
    patterns = ["/usr/local/cuda/lib64/libnvrtc.so*", "/usr/lib/x86_64-linux-gnu/libnvrtc.so*"]
    packages = sysconfig.get_paths()["purelib"]
    patterns += [f"{packages}/nvidia/{part}/lib/libnvrtc.so*" for part in ("cuda_nvrtc", "cu13", "cu12")]
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    return os.path.realpath(found[0]) if found else ""


def triton_tool(name: str) -> str:
    """A program that Triton's package brings along; empty when there is none."""
    path = f"{sysconfig.get_paths()['purelib']}/triton/backends/nvidia/bin/{name}"
    return path if os.access(path, os.X_OK) else ""
