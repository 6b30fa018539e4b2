"""How scripts/docs.sh makes the documentation site: pages of the tree, and the public headers.

The sources are the whole tree, so that a link that works in the tree works on the site.
"""

import os
import re

root = os.environ["WEIR_DOCS_ROOT"]
with open(os.path.join(root, "include/weir/version.h"), encoding="utf-8") as file:
    release = re.search(r'VERSION_STRING "(.+)"', file.read())[1]

project = "weir"
author = "the authors of weir"
copyright = author
version = release

extensions = ["myst_parser", "breathe"]
root_doc = "docs/site/index"
source_suffix = {".md": "markdown"}
include_patterns = ["*.md", "docs/**", "examples/README.md", "src/**/README.md", "tools/weir/README.md",
                    "python/README.md", "fortran/README.md"]

breathe_projects = {"weir": os.environ["WEIR_DOCS_XML"]}
breathe_default_project = "weir"
breathe_default_members = ("members",)
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Blocks of several languages show parts of programs. Links to files that the site leaves out are warnings
# of newer versions; tests/docs/sources/check_links.py checks all links.
suppress_warnings = ["misc.highlighting_failure", "myst.xref_missing"]

html_theme = "furo"
html_title = f"weir {release}"
html_copy_source = False
html_show_sourcelink = False


def setup(app):
    app.connect("missing-reference", name_what_is_not_a_page)


def name_what_is_not_a_page(_app, _environment, node, text):
    """Keeps the words of a link to a folder or source of the tree, which the site does not have."""
    page = os.path.dirname(os.path.join(root, node.get("refdoc", "")))
    return text if os.path.exists(os.path.join(page, node["reftarget"])) else None
