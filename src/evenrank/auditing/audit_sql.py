"""The query that turns a log of rankings in a warehouse into the sums that :func:`evenrank.audit_sums` audits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from ir_measures import Measure

from evenrank import options as opt
from evenrank._version import __version__
from evenrank.files.arguments import checked
from evenrank.files.convert import strings
from evenrank.files.errors import EvenrankError, arg, quoted
from evenrank.files.types import EQUAL, Array
from evenrank.groups import LexiconLike, load_lexicon
from evenrank.groups.sql import DIALECTS, Dialect, sql_number
from evenrank.groups.table import REST, parse_poles
from evenrank.measures import MeasuresLike, Share, parse_measures
from evenrank.measures.neutrality import FaiRR
from evenrank.measures.rank_bias import ARaB, RaB
from evenrank.stats.clusters import ZERO

from .inputs import LEAN

DEEPEST = 1000
"""The largest cutoff: the query has a row for each rank."""
FIGURES = ("value", "random", "beyond")
"""Of each measure: a view's value, its expectation over random orders of the candidates, and the difference."""
RANK_WEIGHTS = ("weight", "factor", "constant", "total", "squares")
STATISTICS = ("sum", "nonzero", "least", "most")
"""Of each of these: the sum over a query's views, how many are not 0, and the smallest and the largest of these."""


@checked
def audit_sql(
    dialect: Annotated[Literal["duckdb", "bigquery", "spark", "postgres"], opt.Option("The database.")],
    *,
    measures: MeasuresLike | None = None,
    lexicon: LexiconLike | None = None,
    group_column: Sequence[str] | str | None = None,
    poles: str | None = None,
) -> str:
    """Write the query that turns a log of rankings into sums by query, which :func:`evenrank.audit_sums` audits.

    Its first lines name the tables, to be changed to your own: ``rankings``, a row for each document of a view, and
    ``scores``, a row a document as :func:`evenrank.score` and :func:`evenrank.lexicon_sql` make them, or ``labels``. A
    view is a ``query_id``, ``query`` the words that were searched for; the ranks of a view are 1, 2, 3 …, which is
    checked down to the largest cutoff.

    Args:
        dialect: The database. Tests run DuckDB's query; the others get the same with their quotes and types.
        measures: ARaB, RaB, Share, and of words FaiRR. By default ARaB@10 where there are poles, and the shares of the
            groups that labels are compared by.
        lexicon: The lexicon that documents were scored with.
        group_column: Of ``labels``, the column of groups.
        poles: The two groups of signed measures, the positive one first; of labels, ``rest`` is none.

    Returns:
        One SELECT, of a row a query.

    Raises:
        EvenrankError: For a measure that is no sum over ranks of a number that the tables have.
    """
    sql = DIALECTS[dialect]
    columns = strings(group_column)
    if len(columns) > 1:
        raise EvenrankError(f"{arg.group_column}: expected one column of groups, found {len(columns)}")
    column = columns[0] if columns else None
    documents = _Documents.of(sql, lexicon, column, poles)
    default = [LEAN] * (documents.poles is not None)
    if documents.poles is None or column is not None:
        default += [f"Share(group={group!r})@10" for group in documents.groups]
    if measures is None and not default:
        raise _no_poles()
    chosen = parse_measures(default if measures is None else measures)
    values = [documents.value(measure) for measure in chosen]
    weights = [_rank_weights(measure) for measure in chosen]
    depth = max(map(len, weights))
    groups = documents.named(chosen)
    settings = {"evenrank": __version__, "measures": list(map(str, chosen)), **documents.settings, "groups": groups}
    # Of labels, how many rows of the log are of each group: one that is written otherwise has none.
    named = enumerate(groups if column is not None else (), start=1)
    is_of = {f"rows_of_{j}": documents.is_of(group) for j, group in named}
    counts = ", ".join(["n", "unknown", "repeated", "copied", *is_of])

    def each(template: str) -> str:
        columns = zip(values, weights, strict=True)
        return ",\n  ".join(
            template.format(k=k, value=value, cutoff=len(table)) for k, (value, table) in enumerate(columns, start=1)
        )

    return f"""-- For evenrank audit --sums. Change the names of tables and columns in these lines to your own.
WITH ranked AS (SELECT query_id, query, doc_id, rank FROM rankings),
documents AS (SELECT doc_id, {each("CAST({value} AS " + sql.double + ") AS gain_{k}")}{
        "".join(f",{chr(10)}  CASE WHEN {condition} THEN 1 END AS {name}" for name, condition in is_of.items())
    },
  count(*) OVER (PARTITION BY doc_id) AS copies
FROM {"scores" if column is None else "labels"}),
weights AS (
{_rows(weights, sql)}
), views AS (
SELECT coalesce(nullif({sql.as_text("ranked.query")}, ''), {sql.as_text("query_id")}) AS query, count(*) AS n,
  sum(CASE WHEN {" OR ".join(f"gain_{k} IS NULL" for k in range(1, len(chosen) + 1))} THEN 1 ELSE 0 END) AS unknown,
  CASE WHEN count(*) > count(DISTINCT ranked.doc_id) THEN 1 ELSE 0 END AS repeated,
  CASE WHEN max(copies) > 1 THEN 1 ELSE 0 END AS copied,
  {"".join(f"count({name}) AS {name}, " for name in is_of)}min(ranked.rank) AS first_rank, sum(mark) AS marked,
  {each(_OF_VIEW)}
FROM ranked
LEFT JOIN documents ON documents.doc_id = ranked.doc_id
LEFT JOIN weights ON weights.rank = ranked.rank
GROUP BY query_id, ranked.query
), orders AS (
SELECT query, {counts}, CASE WHEN first_rank = 1 AND marked = marks THEN 0 ELSE 1 END AS unranked,
  {each(_OF_ORDER)}
FROM views JOIN weights ON weights.rank = least(views.n, {depth})
), figures AS (
SELECT query, {counts}, unranked, {each(_FIGURES)}
FROM orders
)
SELECT query, count(*) AS views, sum(n) AS documents, sum(unknown) AS unknown, sum(unranked) AS unranked,
  sum(repeated) AS repeated, sum(copied) AS copied{"".join(f", sum({name}) AS {name}" for name in is_of)},
  {sql.text(json.dumps(settings))} AS settings,
  {each(_SUMS)}
FROM figures
GROUP BY query"""


# --- measures --------------------------------------------------------------------------------------------------------

# Of each view: what its documents count in the k-th measure, in all and down to the cutoff, weighted by rank and not.
_OF_VIEW = """sum(gain_{k}) AS gains_{k}, var_pop(gain_{k}) AS variance_{k},
  sum(CASE WHEN ranked.rank <= {cutoff} THEN weight_{k} * gain_{k} END) AS weighted_{k},
  sum(CASE WHEN ranked.rank <= {cutoff} THEN gain_{k} END) AS unweighted_{k}"""
# The value, its expectation over random orders, and what the variance over these is made of.
_OF_ORDER = """factor_{k} * weighted_{k} + constant_{k} * unweighted_{k} AS value_{k},
  total_{k} * gains_{k} / n AS random_{k},
  squares_{k} - total_{k} * total_{k} / n AS spread_{k}, squares_{k},
  gains_{k} * gains_{k} / n / n AS mean_square_{k}, variance_{k}"""
# The standard deviation over random orders. What is left of equal weights, or of equal documents, is rounding, whose
# root would not be.
_FIGURES = f"""value_{{k}}, random_{{k}}, value_{{k}} - random_{{k}} AS beyond_{{k}},
  CASE WHEN spread_{{k}} > {ZERO} * squares_{{k}} AND variance_{{k}} > {ZERO} * mean_square_{{k}}
    THEN sqrt(spread_{{k}} * variance_{{k}} * n / (n - 1)) ELSE 0e0 END AS sd_{{k}}"""
_SUMS = ",\n  ".join(
    f"sum({x}) AS {x}_sum, sum({differs} 1 ELSE 0 END) AS {x}_nonzero,\n"
    f"  min({differs} {x} END) AS {x}_least, max({differs} {x} END) AS {x}_most"
    for x, differs in ((f"{figure}_{{k}}", f"CASE WHEN abs({figure}_{{k}}) > {ZERO} THEN") for figure in FIGURES)
)
_SUMS += ",\n  sum(sd_{k}) AS sd_{k}_sum"


def _rank_weights(measure: Measure) -> Array:
    """The columns ``RANK_WEIGHTS`` by rank, and by length of a list, from 1 to the cutoff [k, 5].

    The weight of a rank where a list fills all; of lists of a length the factor and the constant for which
    factor · weight + constant are their weights, the total of these and that of their squares. Raises EvenrankError for
    too many ranks.
    """
    cutoff: int = measure["cutoff"]
    if cutoff > DEEPEST:
        raise EvenrankError(f"{arg.measures}: {measure}: expected a cutoff of {DEEPEST} at most")
    weights = measure.weights(np.arange(1, cutoff + 1), cutoff)
    full, first, last = weights[-1], weights[:, 0], np.diag(weights)
    spread = full[0] - full
    factor = np.where(spread < EQUAL, first / full[0], (first - last) / np.maximum(spread, EQUAL))
    sums = weights.sum(axis=1), (weights**2).sum(axis=1)
    return np.stack([full, factor, first - factor * full[0], *sums], axis=1)


def _rows(weights: Sequence[Array], sql: Dialect) -> str:
    """The table of weights; beyond a measure's cutoff those of the cutoff.

    ``mark`` is a random number of each rank, ``marks`` their sum down to it: a list of that length has each rank once
    whose marks have this sum. The first row gives the columns their names and types.
    """
    depth = max(map(len, weights))
    marks = np.random.default_rng(0).integers(1 << 42, size=depth)
    rows = []
    for row, (mark, total) in enumerate(zip(marks, np.cumsum(marks), strict=True)):
        values = [
            (f"{name}_{k}", sql_number(float(value)))
            for k, table in enumerate(weights, start=1)
            for name, value in zip(RANK_WEIGHTS, table[min(row, len(table) - 1)], strict=True)
        ]
        if row == 0:
            named = (f"CAST({value} AS {sql.double}) AS {name}" for name, value in values)
            rows.append(f"SELECT 1 AS rank, {mark} AS mark, {total} AS marks, {', '.join(named)}")
        else:
            rows.append(f"SELECT {row + 1}, {mark}, {total}, {', '.join(value for _, value in values)}")
    return " UNION ALL\n".join(rows)


# --- documents -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Documents:
    """The documents' groups: words counted in a column for each, or labels in one ``column``."""

    sql: Dialect
    groups: tuple[str, ...]
    poles: tuple[str, str] | None
    column: str | None
    settings: dict[str, object]

    @classmethod
    def of(cls, sql: Dialect, lexicon: LexiconLike | None, column: str | None, poles: str | None) -> _Documents:
        if column is None:
            words = load_lexicon(lexicon, poles=poles)
            groups, pair, about = words.groups, words.poles, {"lexicon": words.name}
        else:
            groups = tuple(part.strip() for part in (poles or "").split(",") if part.strip())
            if REST in groups:
                raise _no_rest()
            pair, about = None if poles is None else parse_poles(poles, groups), {"labels": column}
        return cls(sql, groups, pair, column, {**about, "poles": pair})

    def named(self, measures: Sequence[Measure]) -> tuple[str, ...]:
        """The groups, with those that measures alone name."""
        named = list(self.groups)
        for measure in measures:
            kind = type(measure)
            if kind is type(Share):
                named.append(measure["group"])
            elif kind in (type(RaB), type(ARaB)):
                named += measure.poles or ()
        return tuple(group for group in dict.fromkeys(named) if group != REST)

    def is_of(self, group: str) -> str:
        """The condition that a document's label is a group."""
        return f"{self._label} = {self.sql.text(group)}"

    def value(self, measure: Measure) -> str:
        """What a document counts in a measure. Raises EvenrankError for a measure of anything else."""
        kind = type(measure)
        if kind is type(Share):
            return self._weight(measure["group"])
        if kind in (type(RaB), type(ARaB)):
            poles = measure.poles or self.poles
            if poles is None:
                raise _no_poles()
            if self.column is not None and REST in poles:
                raise _no_rest()
            others = [group for group in self.groups if group != poles[0]] if poles[1] == REST else [poles[1]]
            magnitude = str(measure.params.get("magnitude") or ("tf" if self.column is None else "count"))
            second = " + ".join(self._magnitude(magnitude, group) for group in others)
            return f"{self._magnitude(magnitude, poles[0])} - ({second}) / {len(others)}"
        if kind is type(FaiRR) and self.column is None:
            return f"CAST(neutrality AS {self.sql.double})"
        raise EvenrankError(
            f"{arg.measures}: {measure} cannot be made of sums: expected ARaB, RaB, Share or, of words, FaiRR"
        )

    def _magnitude(self, kind: str, group: str) -> str:
        count = self._count(group)
        if kind == "bool":
            return f"CASE WHEN {count} > 0 THEN 1e0 WHEN {count} <= 0 THEN 0e0 END"
        if kind == "count":
            return count
        if self.column is not None:
            raise EvenrankError(f"magnitude {kind}: labels have no words to take the logarithm of")
        return f"ln(1 + {count})" if kind == "tf" else self._number(f"magnitude_{kind}_{group}")

    def _weight(self, group: str) -> str:
        if self.column is not None:
            return self._count(group)
        total = " + ".join(map(self._count, self.groups))
        return f"CASE WHEN {total} > 1 THEN {self._count(group)} / ({total}) WHEN {total} <= 1 THEN 0e0 END"

    def _count(self, group: str) -> str:
        if self.column is not None:
            return f"CASE WHEN {self.is_of(group)} THEN 1e0 WHEN {self._label} IS NOT NULL THEN 0e0 END"
        if group not in self.groups:
            raise EvenrankError(f"{arg.measures}: no group {quoted(group)}: the groups are {', '.join(self.groups)}")
        return self._number(f"count_{group}")

    @property
    def _label(self) -> str:
        """The label of a document; NULL of one without."""
        return f"nullif({self.sql.as_text(self.sql.name(self.column or ''))}, '')"

    def _number(self, column: str) -> str:
        return f"CAST({self.sql.name(column)} AS {self.sql.double})"


def _no_poles() -> EvenrankError:
    return EvenrankError(f"which groups? {arg('poles', 'A,B')}")


def _no_rest() -> EvenrankError:
    return EvenrankError(f"{arg.poles}: rest stands for all other groups, which are not known here")
