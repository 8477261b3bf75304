"""What a ranker does when only one thing of a passage changes: variants of a collection, and probes with them.

- variants: :mod:`.variants`, :mod:`.variant_files`
- probes: :mod:`.probing`, :mod:`.variant_figures`, :mod:`.probe_result`; what they find: :mod:`.effects`
"""

from .probe_result import ProbeResult
from .probing import probe
from .variants import KINDS, Varied, variants

__all__ = ["KINDS", "ProbeResult", "Varied", "probe", "variants"]
