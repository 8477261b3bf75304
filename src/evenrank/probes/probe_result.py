"""What a probe found, as JSON; in sentences and as a page elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenrank.io import Provenance
from evenrank.io.errors import UnknownNameError, quoted
from evenrank.reports.result import Result

from .replaced_runs import RunFigure
from .variant_figures import VariantFigures

if TYPE_CHECKING:
    from evenrank.reports.page import Page


@dataclass(frozen=True, slots=True, repr=False)
class ProbeResult(Result):
    """What :func:`evenrank.probe` returns; ``result["swap"]`` has the figures of a variant.

    ``name``: the ranker's; ``listed``: the run or the judgements whose ``pairs`` of so many ``queries`` and
    ``passages`` were probed; ``still``: queries left out as their scores do not vary. ``original``: the figures of the
    list as the ranker orders it, without nDCG@10 where there are no judgements.
    """

    name: str
    listed: str
    pairs: int
    queries: int
    passages: int
    still: int
    original: Mapping[str, RunFigure]
    variants: tuple[VariantFigures, ...]
    settings: Mapping[str, object]
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, name: str) -> VariantFigures:
        """The figures of a variant. Raises UnknownNameError if there is none of this name."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        known = ", ".join(variant.name for variant in self.variants)
        raise UnknownNameError(f"no variant {quoted(name)} (the variants are {known})")

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "settings": self.settings,
            "name": self.name,
            "list": self.listed,
            "summary": list(self.summary()),
            "pairs": self.pairs,
            "queries": self.queries,
            "passages": self.passages,
            "still": self.still,
            "original": {measure: found.to_dict() for measure, found in self.original.items()},
            "variants": {variant.name: variant.to_dict() for variant in self.variants},
            "notes": list(self.notes),
        }

    def summary(self) -> tuple[str, ...]:
        """The findings, in sentences."""
        from .probe_sentences import summary

        return summary(self)

    def table(self) -> str:
        """The figures for a terminal, without the examples' texts."""
        from .probe_page import probe_page

        return probe_page(self, texts=False).text()

    def page(self) -> Page:
        """The figures as a page."""
        from .probe_page import probe_page

        return probe_page(self)
