"""What a ranker does when only one thing of a passage changes: variants of a collection, and probes with them.

- variants: :mod:`.variants`, :mod:`.variant_files`
- probes: :mod:`.probing`, :mod:`.variant_figures`, :mod:`.probe_result`; what they find: :mod:`.effects`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

from .probe_result import ProbeResult
from .probing import probe
from .variants import KINDS, Varied, variants

if TYPE_CHECKING:
    from .similarity import different_terms, sampled_words, term_similarity
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["KINDS", "ProbeResult", "Varied", "different_terms", "probe", "sampled_words", "term_similarity", "variants"]
