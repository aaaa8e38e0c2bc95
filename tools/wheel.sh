#!/bin/sh
# wheel.sh [FOLDER] - builds the wheel of bindings/python and bundles the libraries that it needs: FOLDER (build/wheel).
# auditwheel chooses the manylinux tag by the symbols of libc that are used: build on an old system to serve old ones.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/build/wheel}
py=$("$root/tools/python_venv.sh" | tail -1)
rm -rf "$out/raw"
mkdir -p "$out/raw"
PATH="$(dirname "$py"):$PATH" "$py" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$out/raw" \
    "$root/bindings/python"
rm -f "$out"/*.whl
PATH="$(dirname "$py"):$PATH" "$py" -m auditwheel repair --strip -w "$out" "$out"/raw/*.whl >"$out/audit.log" 2>&1 || { cat "$out/audit.log"; exit 1; }
ls -l "$out"/*.whl
