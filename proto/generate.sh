#!/bin/sh
# Generate kfd/api/v1 from the .proto files; with --check, fail when the checked-in code differs.
set -eu
cd "$(dirname "$0")/.."
out=.
[ "${1:-}" = --check ] && out=$(mktemp -d)
python -m grpc_tools.protoc -Iproto --python_out="$out" --grpc_python_out="$out" --mypy_out="quiet:$out" \
    --mypy_grpc_out="quiet:$out" proto/kfd/api/v1/*.proto
if [ "${1:-}" = --check ]; then
    touch "$out/kfd/api/v1/__init__.py"
    diff -r -x __pycache__ "$out/kfd/api/v1" kfd/api/v1 || { echo "kfd/api/v1 is stale. Type: make proto" >&2; exit 1; }
    rm -rf "$out"
fi
