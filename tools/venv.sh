#!/bin/sh
# venv.sh - Python packages that tests, documentation and benchmarks need, in ignored folders build/NAME-venv.  Versions are fixed, so
# that a test means the same next year.
# usage: . tools/venv.sh; venv NAME "modules, to, import" package...       sets py, the interpreter; fails where packages cannot be had
root=${root:-$(cd "$(dirname "$0")/.." && pwd)}
venv() {
    name=$1; modules=$2; shift 2
    py=$root/build/$name-venv/bin/python
    mkdir -p "$root/build"
    [ -x "$py" ] || python3 -m venv "$root/build/$name-venv"
    "$py" -c "import $modules" 2>/dev/null || "$py" -m pip install --quiet --disable-pip-version-check "$@"
}
