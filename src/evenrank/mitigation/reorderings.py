"""A fairer order of ranked lists, without training: neutral, FA*IR, DetConstSort and shift."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from evenrank import options as opt
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, arg, quoted
from evenrank.files.types import Array

from ._reordering import MTable, adjusted_table, fair_order, fair_unmet, falling, shares_unmet, sorted_order


@dataclass(frozen=True, slots=True)
class GroupedLists:
    """The first documents of Q ranked lists, N in all, laid end to end in rank order, with what they say of groups.

    Attributes:
        offsets: Where each list starts, and the end [Q + 1] (int64).
        scores: Relevance from 0 to 1, falling within each list [N] (float64): the run's scores, min–max scaled over
            the whole list of the query.
        signed: The signed magnitude of each document [N] (float64): above 0 towards the first pole, below 0 towards
            the second; 0 where no poles are known.
        neutrality: From 0 to 1 [N] (float64).
        group: The number of each document's group [N] (int64), that with the largest weight; −1 for none or several.
        groups: The names of the groups [G].
        targets: The share of each group that a fair list has, and last that of documents without a group
            [Q, G + 1] (float64); the rows sum to 1.
    """

    offsets: Array
    scores: Array
    signed: Array
    neutrality: Array
    group: Array
    groups: tuple[str, ...]
    targets: Array

    @property
    def lengths(self) -> Array:
        """Documents per list [Q]."""
        return np.diff(self.offsets)


class Reordering(Protocol):
    """A method that puts the documents of lists into another order.

    ``name``: as users write it; ``source``: where it was published.
    """

    name: ClassVar[str]
    source: ClassVar[str]

    @checked
    def order(self, lists: GroupedLists, strength: Annotated[float, opt.SHARE]) -> Array:
        """The places [N] (int64) in ``lists`` of the documents in their new order, list by list.

        ``strength``: from 0, which leaves every list as it is, to 1, as far as the method goes. The same input gives
        the same order; documents that the method has no reason to part stay in the order of the run.
        """
        ...


M = TypeVar("M", bound=Reordering)


def reordered(method: Reordering, lists: GroupedLists, strength: float) -> Array:
    """The order of a method [N]. Raises EvenrankError unless it has every place of each list once."""
    order = np.asarray(method.order(lists, strength))
    places = np.arange(len(lists.scores))
    is_permutation = order.dtype.kind == "i" and order.shape == places.shape and bool((np.sort(order) == places).all())
    number = np.repeat(np.arange(len(lists.lengths)), lists.lengths)
    if not (is_permutation and (number[order] == number).all()):
        raise EvenrankError(f"{method.name}: its order has to have every place of each list once, list by list")
    return order


class Neutral:
    """
    Neutral: documents by relevance and neutrality together. Our design.

    By falling (1 − strength) × relevance + strength × neutrality; equal ones in the run's order.

    Greedy: at rank i, the next document is the one that adds most to Σ δ_i ((1 − λ) s + λ n), with relevance s from 0
    to 1, neutrality n, δ_i = 1/log2(1 + i) and λ = the strength. All that are left share the same δ_i, so the greedy
    order is by falling (1 − λ) s + λ n; and since δ falls, no order has a larger sum (rearrangement inequality): it is
    a sort, and the best order. λ = 0 is the run; λ = 1 is neutral-first: by falling neutrality, equal documents in the
    run's order. In between, no order has both more discounted relevance, by the run's own scores, and more FaiRR
    [RKS21].

    When it misleads: neutral is not balanced. Documents about either group move down alike, also in a list that has as
    many of one as of the other, and where the question is about a group, its answers do. Relevance is the run's own
    score, min–max scaled over the list: an outlier at its top makes all others nearly equal, and a small λ reorders
    them.

    Worked example: relevance 1, .8, 0 and neutrality 0, 1, .5. At λ = .5 the sums are .5, .9 and .25.

    >>> import numpy as np
    >>> from evenrank.mitigation.reorderings import GroupedLists
    >>> lists = GroupedLists(
    ...     offsets=np.array([0, 3]), scores=np.array([1, 0.8, 0]), signed=np.array([2.0, 0, -1]),
    ...     neutrality=np.array([0, 1, 0.5]), group=np.array([0, -1, 1]), groups=("female", "male"),
    ...     targets=np.array([[0.5, 0.5, 0]]),
    ... )
    >>> [Neutral().order(lists, strength).tolist() for strength in (0, 0.5, 1)]
    [[0, 1, 2], [1, 0, 2], [1, 2, 0]]
    """

    name: ClassVar[str] = "neutral"
    source: ClassVar[str] = "our design"

    @checked
    def order(self, lists: GroupedLists, strength: Annotated[float, opt.SHARE]) -> Array:
        """The places [N] of the documents in their new order, list by list."""
        value = (1 - strength) * lists.scores + strength * lists.neutrality
        return falling(lists.offsets, value)


Per = Literal["group", "magnitude"]


class Shift:
    """
    Shift: one number is added to the score of every document of a group, the same in all lists, and the lists are
    sorted again: score + strength · offset of the group; documents without a group keep their score. With
    ``per="magnitude"``, the number is added per unit of signed magnitude. What a trained mitigation does beyond it is
    what training is worth.

    Adds strength × an offset to the scores: ``offsets`` [G], one per group, or [1], per unit of signed magnitude.

    Raises EvenrankError for offsets that are not finite numbers, as many as the lists have groups (with
    ``per="magnitude"``: one).

    The offsets point against the lean of tuning lists (:func:`lean_offsets`): each group's is the mean over the lists
    of its target share minus its share of the exposure Σ 1/log2(1 + rank) [SJ18, section 3], scaled so that the largest
    is 1: the whole range of the scores, which are scaled to 0 to 1 in each list.

    The sorted list has the largest Σ (score + strength · offset)/log2(1 + rank) of all orders. So no orders of the
    lists with as much Σ offset/log2(1 + rank), summed over the lists, have a higher Σ score/log2(1 + rank): at the
    least strength that meets a requirement on the mean exposure, no other method meets what it reaches with less loss.

    When it misleads: it is the best for the mean over lists alone; a list with a far better document of the other group
    is not changed, and few lists are as their own target says. It shifts what is measured: a group that is found by its
    words gains, and so do documents in which a word stands for another thing. Scores are scaled per list: a list of
    nearly equal documents is reordered as readily as one with a clear winner.

    Worked example: m has 0.7653 of the exposure, f 0.2347, and half each is the target: the offsets are −1 and 1. At
    strength 0.2, the document of f has 0.6, the second of m 0.5; at strength 0.5, f comes first.

    >>> import numpy as np
    >>> from evenrank.mitigation.reorderings import Shift, lean_offsets
    >>> from evenrank.mitigation.reorderings import GroupedLists
    >>> lists = GroupedLists(
    ...     offsets=np.array([0, 3]), scores=np.array([1, 0.7, 0.4]), signed=np.array([1.0, 1, -1]),
    ...     neutrality=np.zeros(3), group=np.array([0, 0, 1]), groups=("m", "f"), targets=np.array([[0.5, 0.5, 0]]),
    ... )
    >>> lean_offsets(lists).tolist(), lean_offsets(lists, per="magnitude").tolist()
    ([-1.0, 1.0], [-1.0])
    >>> shift = Shift(lean_offsets(lists))
    >>> [shift.order(lists, strength).tolist() for strength in (0, 0.2, 0.5)]
    [[0, 1, 2], [0, 2, 1], [2, 0, 1]]
    """

    name: ClassVar[str] = "shift"
    source: ClassVar[str] = "our design"

    @checked
    def __init__(self, offsets: object, per: Per = "group") -> None:
        try:
            self.offsets = np.asarray(offsets, dtype=np.float64)
        except (TypeError, ValueError):
            self.offsets = np.array(np.nan)
        if self.offsets.ndim != 1 or not np.isfinite(self.offsets).all():
            raise EvenrankError("`offsets`: expected a number for each group")
        self.per = per

    @checked
    def order(self, lists: GroupedLists, strength: Annotated[float, opt.SHARE]) -> Array:
        """The places [N] of the documents in their new order, list by list; equal sums stay in the run's order."""
        expected = 1 if self.per == "magnitude" else len(lists.groups)
        if len(self.offsets) != expected:
            raise EvenrankError(f"`offsets`: expected {expected}, found {len(self.offsets)}")
        # The last group, number −1, is that of documents without one.
        per_group = self.per == "group"
        added = np.append(self.offsets, 0.0)[lists.group] if per_group else self.offsets[0] * lists.signed
        return falling(lists.offsets, lists.scores + strength * added)


@checked
def lean_offsets(lists: GroupedLists, per: Per = "group") -> Array:
    """The offsets against the lean of lists: [G], the largest of them ± 1; with ``per="magnitude"`` a single one [1].

    A group's offset is in proportion to its target share minus its share of the exposure, in the mean over lists.
    The one per unit of magnitude has the sign against the mean discounted signed magnitude, and moves the document
    with the largest magnitude by 1. All are 0 without a lean, or a list.
    """
    # A list of which nothing is shown says nothing.
    lengths = lists.lengths[lists.lengths > 0]
    list_of = np.repeat(np.arange(len(lengths)), lengths)
    ranks = np.arange(len(lists.scores)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    exposure = 1 / np.log2(2.0 + ranks)
    exposure /= np.bincount(list_of, exposure, len(lengths))[list_of] * max(len(lengths), 1)
    if per == "magnitude":
        largest = np.abs(lists.signed).max(initial=0)
        return np.array([-np.sign(np.round(exposure @ lists.signed, 12)) / (largest or 1)]) + 0.0
    groups = len(lists.groups)
    shares = np.bincount(np.where(lists.group < 0, groups, lists.group), exposure, groups + 1)
    targets = lists.targets[lists.lengths > 0].sum(0) / max(len(lengths), 1)
    missing = np.round(targets - shares, 12)[:groups]
    offsets: Array = missing / (np.abs(missing).max(initial=0) or 1) + 0.0
    return offsets


@checked
def m_table(
    k: Annotated[int, opt.COUNT], p: Annotated[float, opt.SHARE], alpha: Annotated[float, opt.SIGNIFICANCE] = 0.1
) -> MTable:
    """The table of FA*IR for lists of ``k`` documents and a proportion ``p`` [Zehlike et al. 2017, section 4].

    Equal to that of fairsearchcore's ``Fair(k, p, alpha).create_adjusted_mtable()``. Raises EvenrankError for settings
    out of range (p from 0 to 1, α from 0.001 to 0.5).
    """
    return adjusted_table(float(p), k, float(alpha))


class Fair:
    """
    FA*IR: every prefix of a list has at least as many documents of one group, the protected one, as chance would give
    it [Zehlike et al. 2017]. A prefix of k documents of which each were protected with probability p, independently of
    the others, has X ~ Binomial(k, p) of them. It is fair if it has at least m(k), the least number with P(X ≤ m(k)) ≥
    α_c [Zehlike et al. 2017, section 3, ranked group fairness]. A list is tested at each of its prefixes; α_c is the
    corrected significance, with which a list drawn like this fails at some prefix with probability α. The table m(1),
    m(2), … is that of the authors' package fairsearchcore, whose bisection ends at a table that fails with a
    probability next to α, and leaves the last prefix out of it.

    FA*IR for the group numbered ``protected``, tested at significance ``alpha`` in the first ``top`` ranks.

    Raises EvenrankError for a number below 0, and α or ``top`` out of range.

    The algorithm is a merge [section 4]: protected and other documents keep the run's order among themselves; at each
    rank comes whichever stands first in the run, unless the prefix would have fewer than m(k) protected documents: then
    the next protected one, as long as there are any. No other list that meets the table has more relevance in any of
    its prefixes, hence none a higher Σ score/log2(1 + rank).

    Here, p is strength × the query's target share of the protected group. α is 0.1. The table is that of the first
    ``top`` ranks, which are chosen from the whole list (FA*IR chooses k of n); by default all ranks are promised, and a
    list of n documents gets the table of n. Below them, the run's order goes on.

    When it misleads: the table tolerates what chance can do: with p = 0.5 and α = 0.1, the first 5 of 100 documents may
    lack the protected group. For shares without that allowance take DetConstSort. Only one group is protected; a target
    for another one is not seen. The corrected table can ask one document less at a larger p, where bisection ends on
    the other side of α. Where a list has too few protected documents, they all stand at the top and the table is not
    met (:meth:`Fair.unmet` counts the prefixes); where it has no others, nothing changes.

    Worked example: the table of 8 documents at p = 0.5 asks for one protected document from the fourth on, and two from
    the seventh. Of a list that ends with its three protected documents, the first of them comes fourth.

    >>> import numpy as np
    >>> from evenrank.mitigation.reorderings import Fair, m_table
    >>> from evenrank.mitigation.reorderings import GroupedLists
    >>> round(m_table(20, 0.25).alpha, 6), round(m_table(20, 0.25).fail_probability, 5)
    (0.078125, 0.10515)
    >>> m_table(8, 0.5).minimum.tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    >>> lists = GroupedLists(
    ...     offsets=np.array([0, 8]), scores=np.linspace(1, 0, 8), signed=np.zeros(8), neutrality=np.zeros(8),
    ...     group=np.array([0, 0, 0, 0, 0, 1, 1, 1]), groups=("m", "f"), targets=np.array([[0.5, 0.5, 0]]),
    ... )
    >>> Fair(protected=1).order(lists, strength=1).tolist()
    [0, 1, 2, 5, 3, 4, 6, 7]
    """

    name: ClassVar[str] = "fair"
    source: ClassVar[str] = "Zehlike et al. 2017"

    @checked
    def __init__(
        self,
        protected: int,
        alpha: Annotated[float, opt.SIGNIFICANCE] = 0.1,
        top: Annotated[int | None, opt.COUNT] = None,
    ) -> None:
        if protected < 0:
            raise EvenrankError(f"{arg.protected}: expected the number of a group, found {protected}")
        self.protected = protected
        self.alpha = alpha
        self.top = top

    @checked
    def order(self, lists: GroupedLists, strength: Annotated[float, opt.SHARE]) -> Array:
        """The places [N] of the documents in their new order, list by list; p = strength × target share."""
        return fair_order(lists.offsets, lists.group == self.protected, *self._required(lists, strength))

    def unmet(self, lists: GroupedLists, order: Array, strength: float) -> Array:
        """In each list [Q], the prefixes of a new order that have fewer protected documents than required (int64)."""
        return fair_unmet(lists.offsets, lists.group == self.protected, *self._required(lists, strength), order)

    def _required(self, lists: GroupedLists, strength: float) -> tuple[Array, Array, Array]:
        """Tables end to end, where each starts [U + 1], and which is that of each list [Q]."""
        if self.protected >= len(lists.groups):
            raise EvenrankError(f"{arg.protected}: expected 0 to {len(lists.groups) - 1}, found {self.protected}")
        shares = np.clip(strength * lists.targets[:, self.protected], 0, 1)
        promised = lists.lengths if self.top is None else np.minimum(lists.lengths, self.top)
        pairs, table = np.unique(np.column_stack([promised, shares]), axis=0, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(pairs[:, 0])]).astype(np.int64)
        tables = [adjusted_table(share, int(size), float(self.alpha)).minimum for size, share in pairs.tolist()]
        return np.concatenate([*tables, np.empty(0, np.int64)]), starts, table.reshape(-1)


class DetConstSort:
    """
    DetConstSort: every prefix of k documents has at least ⌊strength · p_a · k⌋ of each group a, p_a its target share
    [GEY19, algorithm 3, where strength is 1]. Document c of a group is due at the first prefix that needs c. Documents
    are taken as they fall due, the best first, and each moves up past worse documents, as long as none of them gets
    beyond its own due rank. What no prefix needs follows in the run's order, and moves up likewise. With ``top``, only
    prefixes of the first ``top`` ranks need something, and their documents are chosen from the whole list. Where
    every group has enough documents, no prefix misses its minimum, for any number of groups; :meth:`unmet` counts those
    that miss it because a group ran out.

    Ranks are counted from 1 here. Published code compares the due rank with an index from 0, which lets a document slip
    one rank too far.

    The order is near the best that meets the same minimums, not always the best. Against all orders of 1,500 random
    lists of 2 to 8 documents, at strengths .25, .5, .75, .9 and 1, it is the best in 98 % of the cases, and loses .11 %
    of the best Σ score/log2(1 + rank) in the mean, 39 % at most: a document that may not wait any longer also stops
    better ones that could pass it.

    When it misleads: there is no maximum below strength 1, where minimums add up to the whole list: a group may have
    more than its share. If the targets leave nothing to documents without a group, all others come before them, however
    poor. The minimum of a small group is 0 in short prefixes: for k below 1/p_a it is not protected at all.

    Worked example: shares of one half. At strength 1, the first document of f is due second, the next fourth. At
    strength 0.5, the first is due fourth, where it is in the list anyway.

    >>> import numpy as np
    >>> from evenrank.mitigation.reorderings import DetConstSort
    >>> from evenrank.mitigation.reorderings import GroupedLists
    >>> lists = GroupedLists(
    ...     offsets=np.array([0, 6]), scores=np.linspace(1, 0, 6), signed=np.zeros(6), neutrality=np.zeros(6),
    ...     group=np.array([0, 0, 0, 1, 1, 1]), groups=("m", "f"), targets=np.array([[0.5, 0.5, 0]]),
    ... )
    >>> [DetConstSort().order(lists, strength).tolist() for strength in (0.5, 1)]
    [[0, 1, 2, 3, 4, 5], [0, 3, 1, 4, 2, 5]]
    """

    name: ClassVar[str] = "detconstsort"
    source: ClassVar[str] = "Geyik et al. 2019, algorithm 3"

    @checked
    def __init__(self, top: Annotated[int | None, opt.COUNT] = None) -> None:
        self.top = top

    @checked
    def order(self, lists: GroupedLists, strength: Annotated[float, opt.SHARE]) -> Array:
        """The places [N] of the documents in their new order, list by list."""
        return sorted_order(lists.offsets, _groups(lists), _least(lists, strength), self._promised)

    def unmet(self, lists: GroupedLists, order: Array, strength: float) -> Array:
        """In each list [Q], the prefixes of a new order with fewer documents of a group than required (int64)."""
        return shares_unmet(lists.offsets, _groups(lists), _least(lists, strength), self._promised, order)

    @property
    def _promised(self) -> int:
        return opt.LARGEST if self.top is None else self.top


def _groups(lists: GroupedLists) -> Array:
    """The group of each document [N], those without one in a group of their own, the last."""
    last = len(lists.groups)
    group: Array = np.where((lists.group >= 0) & (lists.group < last), lists.group, last)
    return group


def _least(lists: GroupedLists, strength: float) -> Array:
    """The minimum share of each group in each list [Q, G + 1]."""
    least: Array = np.ascontiguousarray(np.clip(strength * lists.targets, 0, 1))
    return least


METHODS: dict[str, type[Reordering]] = {}
"""The classes by name; :func:`make_method` finds what they are to be given."""


@checked
def add_reordering(method: type[M]) -> type[M]:
    """Makes a method known by its name, to :func:`evenrank.rebalance` and its transformer, and returns it.

    ``method``: a class as :class:`Reordering` describes it, made without arguments; of ``protected``, ``alpha``,
    ``per`` and ``top`` it is given those that its ``__init__`` names. Raises EvenrankError for a name that another
    method has.
    """
    if method.name in METHODS:
        raise EvenrankError(f"there is a method named {method.name} already")
    METHODS[method.name] = method
    return method


for _method in (Neutral, Fair, DetConstSort, Shift):
    add_reordering(_method)


def method_named(name: str) -> type[Reordering]:
    """The class of a method. Raises EvenrankError for a name that no method has."""
    if name not in METHODS:
        raise EvenrankError(f"{arg.method}: expected {', '.join(METHODS)}, found {quoted(name)}")
    return METHODS[name]


def make_method(name: str, lists: GroupedLists, **options: object) -> Reordering:
    """A method by its name, with what it needs from ``lists``, those of the tuning queries.

    ``options`` go to the method. For fair, ``protected`` may be a group's name, and is by default the group with the
    least exposure against its target in ``lists``; for shift, ``offsets`` are by default :func:`lean_offsets` of them.
    Raises EvenrankError for an unknown method, option or group.
    """
    method: Callable[..., Reordering] = method_named(name)
    allowed = tuple(inspect.signature(method).parameters)
    for option in options:
        if option not in allowed:
            has = f"only {', '.join(f'{arg(a)}' for a in allowed)}" if allowed else "none"
            raise EvenrankError(f"{name} has no option {quoted(option)}, {has}")
    if name == "fair":
        options["protected"] = _protected(options.get("protected"), lists)
    if name == "shift" and options.get("offsets") is None:
        options["offsets"] = lean_offsets(lists, options.get("per", "group"))  # type: ignore[arg-type]  # it checks
    return method(**options)


def _protected(given: object, lists: GroupedLists) -> int:
    """The number of the protected group."""
    if not lists.groups:
        raise EvenrankError("fair needs groups of documents")
    if given is None:
        return int(np.argmax(lean_offsets(lists)))
    numbers = dict(zip(lists.groups, range(len(lists.groups)), strict=True))
    number = numbers.get(given, given) if isinstance(given, str) else given
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(lists.groups):
        raise EvenrankError(f"{arg.protected}: expected {' or '.join(lists.groups)}, found {quoted(given)}")
    return int(number)
