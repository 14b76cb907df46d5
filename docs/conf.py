"""Sphinx settings of both languages; ``scripts/docs`` builds the site. The code is in ``scripts/docs_site``."""

import os
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

language = os.environ.get("SITE_LANGUAGE", "en")
project = "hanlattice"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "docs_site.extension"]
exclude_patterns = ["zh"] if language == "en" else []
templates_path = ["_templates"]
html_static_path = ["_static"]

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "hanlattice"
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
