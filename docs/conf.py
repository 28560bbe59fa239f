"""The site: Sphinx with MyST. Pages with cells are run; the reference is made of docstrings by api_pages.py."""

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import api_pages  # noqa: E402
import notebooks  # noqa: E402

import riesz  # noqa: E402

project, author, version = "riesz", "the riesz developers", riesz.__version__
extensions = ["myst_nb", "sphinx.ext.githubpages"]
exclude_patterns = ["_build", "decisions/template.md"]
html_theme = "furo"
html_title = f"riesz {version}"
html_static_path = []
html_favicon = "../src/riesz/command/page/icon.svg"
html_show_sourcelink = True
html_show_copyright = False
html_copy_source = True
nb_execution_mode = "force"  # every cell, at every build
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_links_external_new_tab = False
suppress_warnings = ["mystnb.unknown_mime_type", "misc.highlighting_failure"]
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "src"), str(HERE.parent / "examples")])
api_pages.write(HERE / "api")
notebooks.write()

# Kernels say at each start that they are on this machine's own network.
profile = HERE / "_build" / "ipython" / "profile_default"
profile.mkdir(parents=True, exist_ok=True)
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
os.environ["IPYTHONDIR"] = str(profile.parent)
logging.getLogger("traitlets").setLevel(logging.WARNING)


def _source_links(app, docname, source):
    """What would be read as a link to a page and is none; the notebook of a page with cells."""
    more = notebooks.offered(docname) if notebooks.has_cells(source[0]) else ""
    source[0] = api_pages.with_links_inside(source[0]) + more


def setup(app):
    """What pages need before they are read."""
    app.connect("source-read", _source_links)
