"""Keeps jsonschema's IRI grammar out of start-up.

jsonschema imports ``rfc3987_syntax`` for the formats ``iri`` and
``iri-reference``; building that grammar takes over a second, whether a schema
uses them or not. A stand-in loads it at the first IRI instead.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Final

_NAME: Final = "rfc3987_syntax"


def defer_iri_grammar() -> None:
    """Put the stand-in in place, unless the grammar is loaded already."""
    if _NAME not in sys.modules:
        stand_in = ModuleType(_NAME, "Loads the real module at the first call.")
        vars(stand_in)["is_valid_syntax"] = _is_valid_syntax
        sys.modules[_NAME] = stand_in


def _is_valid_syntax(term: str, text: str) -> bool:
    if getattr(sys.modules.get(_NAME), "is_valid_syntax", None) is _is_valid_syntax:
        del sys.modules[_NAME]
    return bool(importlib.import_module(_NAME).is_valid_syntax(term, text))
