"""conf.py - the documentation as a site, built by Sphinx: tools/site.sh writes build/site, every warning is an error."""
import os
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
os.environ.setdefault("STRETTO_LIBRARY", os.path.join(ROOT, "build", "release"))

project = "Stretto"
author = "the authors of Stretto"
copyright = "the authors of Stretto, Apache-2.0"  # noqa: A001  (Sphinx names it)
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["img"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "Stretto"
html_show_sphinx = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = ["pyspark"]
copybutton_prompt_text = "$ "
# Pages are read on GitHub, too, where links lead to files of the repository beside the documentation.
suppress_warnings = ["myst.xref_missing"]


def setup(app):
    """The lists of plug-ins (.def) are shown as they are."""
    from pygments.lexers.special import TextLexer
    app.add_lexer("def", TextLexer)
