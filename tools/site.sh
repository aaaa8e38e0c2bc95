#!/bin/sh
# site.sh - the documentation as a site, by Sphinx, in build/site; a warning is an error.  Where Sphinx cannot be had, the script says
# so and ends with 77.
set -eu
. "$(dirname "$0")/venv.sh"
venv site "sphinx, myst_parser, furo, sphinx_copybutton, numpy" sphinx==9.0.4 myst-parser==5.2.0 furo==2025.12.19 \
    sphinx-copybutton==0.5.2 numpy==2.4.6 || { echo "skipped: Sphinx cannot be had here (tools/site.sh)"; exit 77; }
"$py" -m sphinx -E -q -W --keep-going -b html "$root/docs" "$root/build/site"
echo "build/site/index.html"
