"""Settings of the documentation, which `sphinx-build -W docs site` builds."""

from __future__ import annotations

import re
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any

from numpydoc.xref import DEFAULT_LINKS

import daskcoreset

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import _draw  # noqa: E402 - it lies beside this file

project = "daskcoreset"
author = "daskcoreset developers"
copyright = f"2026, {author}"  # noqa: A001 - the name that Sphinx reads
version = release = daskcoreset.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
# The first one is the form of the generated pages of the reference.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# A name in single backticks is a link where the reference knows it.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
templates_path = ["_templates"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Notebooks are executed by the build, in the folder they lie in.
nb_execution_mode = "auto"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
INVENTORIES = (HERE / "inventories.txt").read_text()


def _inventories() -> dict[str, tuple[str, str]]:
    """Write the inventories of other projects, for links are the same without a network."""
    mapping: dict[str, tuple[str, str]] = {}
    entries: dict[str, list[str]] = {}
    for line in INVENTORIES.splitlines():
        match line.split():
            case [project, url] if url.startswith("https:"):
                mapping[project] = url, str(HERE / "_inventories" / f"{project}.inv")
                written = entries[project] = []
            case [role, name, page] if not line.startswith("#"):
                written.append(f"{name} {role} 1 {page} -\n")
    (HERE / "_inventories").mkdir(exist_ok=True)
    for project, (_, path) in mapping.items():
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n# zlib\n"
        Path(path).write_bytes(head.encode() + zlib.compress("".join(entries[project]).encode()))
    return mapping


intersphinx_mapping = _inventories()

# Types of parameters that are links; other words are not.
_LINKED = {
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "RandomState": "numpy.random.RandomState",
    "csr_array": "scipy.sparse.csr_array",
    "DataFrame": "pandas.DataFrame",
    "DataArray": "xarray.DataArray",
    "Dataset": "xarray.Dataset",
    **{name: f"daskcoreset.{name}" for name in dir(daskcoreset) if name[0].isupper()},
}
numpydoc_xref_aliases = {
    **{name: name for name in DEFAULT_LINKS},
    **_LINKED,
    **{
        name: f":py:obj:`{name}`"
        for name in re.findall(r"^py:class (\S+)", INVENTORIES, re.MULTILINE)
    },
    "array-like": ":term:`array-like <numpy:array_like>`",
}

html_theme = "pydata_sphinx_theme"
html_title = "daskcoreset"
html_static_path = ["_static"]
html_css_files = ["daskcoreset.css"]
html_show_sourcelink = False
# Pages without neighbours have no navigation at their side.
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "start", "choose")}
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}


def _bases(_app: Any, _name: str, obj: Any, _options: Any, bases: list[Any]) -> None:
    """Leave out private bases: show the public ones behind them."""
    public = [base for base in obj.__mro__[1:-1] if _is_public(base)]
    bases[:] = [
        one for one in public if not any(issubclass(b, one) for b in public if b is not one)
    ]
    bases[:] = bases or [object]


def _is_public(base: type) -> bool:
    name = base.__name__
    return (
        base.__module__ == "builtins"
        or f"py:class {base.__module__}.{name} " in INVENTORIES
        or name in dir(daskcoreset)
        or name in dir(daskcoreset.errors)
    )


def _close_blocks(_app: Any, _docname: str, source: list[str]) -> None:
    """Take off the empty line at the end of examples, which their tests need."""
    source[0] = re.sub(r"\n\n(```)$", r"\n\1", source[0], flags=re.MULTILINE)


def _skip(_app: Any, _what: str, name: str, *_: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds for metadata routing."""
    return True if re.fullmatch(r"(set_\w+_request|get_metadata_routing)", name) else None


def setup(app: Any) -> None:
    """Draw the figures, take in the notebooks, connect the hooks."""
    _draw.write(HERE / "_figures")
    app.add_directive("drawing", _draw.Drawing)
    for copied in (HERE / "notebooks").glob("*.ipynb"):
        copied.unlink()
    for notebook in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        copy = HERE / "notebooks" / notebook.name
        # Links to pages are written for the folder of the repository.
        text = notebook.read_text(encoding="utf-8").replace("](../docs/", "](../")
        copy.write_text(text, encoding="utf-8")
        shutil.copystat(notebook, copy)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-bases", _bases)
    app.connect("source-read", _close_blocks)
