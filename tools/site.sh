#!/bin/sh
# site.sh - the documentation as a site, by Sphinx, in build/site; a warning is an error.  What it needs comes into build/site-venv;
# where it cannot be had, the script says so and ends with 77.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
py=$root/build/site-venv/bin/python
mkdir -p "$root/build"
[ -x "$py" ] || python3 -m venv "$root/build/site-venv"
"$py" -c 'import sphinx, myst_parser, furo, sphinx_copybutton, numpy' 2>/dev/null ||
    "$py" -m pip install --quiet --disable-pip-version-check sphinx myst-parser furo sphinx-copybutton numpy ||
    { echo "skipped: Sphinx cannot be had here (tools/site.sh)"; exit 77; }
"$py" -m sphinx -E -q -W --keep-going -b html "$root/docs" "$root/build/site"
echo "build/site/index.html"
