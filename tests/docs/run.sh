#!/bin/sh
# run.sh PROGRAM PAGE - snippets.py in the interpreter of tools/python_venv.sh, where there is one.
here=$(cd "$(dirname "$0")" && pwd)
py=$here/../../build/python-venv/bin/python
[ -x "$py" ] || py=python3
exec "$py" "$here/snippets.py" "$@"
