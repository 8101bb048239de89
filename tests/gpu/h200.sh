#!/bin/sh
# Figures of a machine with an NVIDIA device, from a checkout and nothing installed but torch, triton, pyyaml, nvcc.
#   sh tests/gpu/h200.sh [PART...]     parts as in tests/gpu/figures.py, all without one
# Prints one JSON object a line; the same lines go to $OUT/figures.jsonl when OUT names a folder.
cd "$(dirname "$0")/../.." || exit 2
export PYTHONPATH="$PWD:$PWD/worker:$PWD/client${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
export PATH="/usr/local/cuda/bin:$PATH"
python=${PYTHON:-python3}
if [ -n "$OUT" ]; then
    { "$python" -W ignore -m tests.gpu.figures "$@"; echo $? > "$OUT/code"; } | tee "$OUT/figures.jsonl"
    exit "$(cat "$OUT/code")"
fi
exec "$python" -W ignore -m tests.gpu.figures "$@"
