"""What a ranker does when only one thing of a passage changes: variants of a collection, and probes with them.

- variants: :mod:`.variants` (kinds: :mod:`.variant_kinds`), :mod:`.varied`
- probes: :mod:`.probing`, :mod:`.probe_result` (with :mod:`.probe_sentences` and :mod:`.probe_page`), :mod:`.effects`,
  :mod:`.rank_shifts`
"""

from .effects import Effect, effect
from .probe_result import ProbeResult
from .probing import probe
from .variant_kinds import KINDS
from .variants import variants
from .varied import Varied

__all__ = ["KINDS", "Effect", "ProbeResult", "Varied", "effect", "probe", "variants"]
