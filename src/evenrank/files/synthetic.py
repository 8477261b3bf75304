"""The built-in collection, with a known bias planted in it: ``generate(SyntheticConfig(...))``."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank import options as opt
from evenrank._command import arg

from . import EvenrankError, atomic_path, write_text
from .arguments import check_range, checked
from .outputs import make_folder

SPLITS = ("train", "valid", "test")
FILES = ("collection.tsv", "queries.tsv", *(f"queries.{split}.tsv" for split in SPLITS))
"""Files that :func:`write_collection` writes or removes, apart from the judgements."""


def write_collection(
    folder: str | os.PathLike[str], collection: pl.DataFrame, queries: pl.DataFrame, **judgements: pl.DataFrame
) -> Path:
    """Writes collection.tsv, queries.tsv, queries.SPLIT.tsv for splits with queries, and judgements as NAME.txt (TREC).

    ``collection``: ``doc_id``, ``text``; ``queries``: ``query_id``, ``text``, ``split``; judgements: ``query_id``,
    ``doc_id``, ``relevance``. Texts must not contain tabs or line ends. Each file is written whole or not at all.
    Creates the folder if needed and returns it. Raises InputError if it cannot be written.
    """
    target = make_folder(folder)
    write_lines(collection, target / "collection.tsv", "\t")
    texts = queries.select("query_id", "text")
    write_lines(texts, target / "queries.tsv", "\t")
    for split in SPLITS:
        of_split, path = texts.filter(queries["split"] == split), target / f"queries.{split}.tsv"
        if of_split.height:
            write_lines(of_split, path, "\t")
        else:
            path.unlink(missing_ok=True)
    for name, table in judgements.items():
        lines = table.select("query_id", pl.lit("0").alias("iteration"), "doc_id", "relevance")
        write_lines(lines, target / f"{name}.txt", " ")
    return target


def write_lines(table: pl.DataFrame, path: Path, separator: str) -> None:
    """Writes a table as lines without a header, whole or not at all; values must not contain the separator."""
    with atomic_path(path) as part:
        table.write_csv(part, include_header=False, separator=separator, quote_style="never")


Ints = npt.NDArray[np.int64]

GROUPS = ("m", "f", "n")
"""The groups in the order of the arrays of :class:`Templates`; ``n`` is neutral wording."""


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence: alternating literals and slots, literals at even indexes."""

    pieces: tuple[str, ...]
    answer: str = ""
    """What fills the answer slot: "place", "person", "year", "number" or the name of a list of answers."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the collection: its noun, kind and words."""

    noun: str
    kind: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Templates:
    """All templates, and their indexes by use, for K kinds with A attributes each."""

    all: tuple[Template, ...]
    ask: Ints
    """[K, A, 3]: questions."""
    tell: Ints
    """[K, A, 3]: facts, which contain the answer."""
    tease: Ints
    """[K, A, 2]: sentences with a question's words but without an answer."""
    fillers: Ints
    """[K, F]: sentences about the entity or the topic."""
    voices: Ints
    """[V, 3]: sentences about people, in the wording of each group of GROUPS."""
    people_ask: Ints
    """[P, 3, 2]: questions about a person of either group, for P facts."""
    people_tell: Ints
    """[P, 3, 2]: their facts."""
    people_words: Ints
    """[P, 3]: gendered words of a fact."""
    voice_words: Ints
    """[V]: gendered words in the male and in the female wording of a voice."""
    kinds: tuple[str, ...]
    """The names of the K kinds."""
    topics: tuple[Topic, ...]
    """The kinds take turns, so that the first n cover them evenly."""
    answers: dict[str, tuple[str, ...]]
    helpers: tuple[str, ...]
    syllables: dict[str, tuple[str, ...]]
    male_words: frozenset[str]
    female_words: frozenset[str]


@cache
def templates() -> Templates:
    """The templates, read once."""
    data = tomllib.loads(resources.files(__package__).joinpath("sentences.toml").read_text(encoding="utf-8"))
    common, kinds, people = data["common"], list(data["kinds"].values()), data["people"]
    wording: dict[str, list[str]] = data["wording"]
    every: list[Template] = []

    def add(text: str, answer: str = "", group: int | None = None) -> int:
        """The number of a template, in the wording of a group if there is one."""
        if group is not None:
            for slot, forms in wording.items():
                text = text.replace(f"{{{slot}}}", forms[group])
        every.append(Template(_pieces(text), answer))
        return len(every) - 1

    def of_kinds(use: str) -> Ints:
        return np.array([[[add(text, a["answer"]) for text in a[use]] for a in kind["attributes"]] for kind in kinds])

    def of_people(use: str) -> Ints:
        return np.array([[[add(text, p["answer"], group) for group in range(2)] for text in p[use]] for p in people])

    def gendered(texts: Sequence[str]) -> list[int]:
        return [sum(slot in wording for slot in _pieces(text)[1::2]) for text in texts]

    return Templates(
        voices=np.array([[add(text, group=group) for group in range(3)] for text in common["voices"]]),
        voice_words=np.array(gendered(common["voices"])),
        ask=of_kinds("ask"),
        tell=of_kinds("tell"),
        tease=of_kinds("tease"),
        people_ask=of_people("ask"),
        people_tell=of_people("tell"),
        people_words=np.array([gendered(person["tell"]) for person in people]),
        fillers=np.array([[add(text) for text in common["fillers"] + kind["fillers"]] for kind in kinds]),
        kinds=tuple(data["kinds"]),
        topics=tuple(
            Topic(topic["noun"], number, tuple(topic["words"]))
            for turn in zip(*(kind["topics"] for kind in kinds), strict=True)
            for number, topic in enumerate(turn)
        ),
        answers={name: tuple(words) for name, words in data["answers"].items()},
        helpers=tuple(common["helpers"]),
        syllables={name: tuple(parts) for name, parts in data["syllables"].items()},
        male_words=frozenset(forms[0] for forms in wording.values()),
        female_words=frozenset(forms[1] for forms in wording.values()),
        all=tuple(every),
    )


def _pieces(text: str) -> tuple[str, ...]:
    pieces: list[str] = []
    for literal, slot, _, _ in Formatter().parse(text):
        pieces.append(literal)
        if slot is not None:
            pieces.append(slot)
    return tuple(pieces)


MALE_WORDS = templates().male_words
"""The male words of the collection, in lower case."""
FEMALE_WORDS = templates().female_words
"""The female words of the collection, in lower case."""


_POOLS = ("given", "family", "maker", "place")


@dataclass(frozen=True, slots=True)
class Names:
    """Pools of distinct names. Entities have a given and a family name, answers a given and a maker's name."""

    given: pl.Series
    family: pl.Series
    maker: pl.Series
    place: pl.Series


def make_names(rng: np.random.Generator, entities: int) -> Names:
    """Pools that grow with the number of entities like the vocabulary of natural text (to the power 0.6)."""
    size = int(entities**0.6) + 12
    taken = {word for words in templates().answers.values() for word in words}
    taken |= templates().male_words | templates().female_words
    syllables = templates().syllables
    pools = {}
    for what in _POOLS:
        parts = itertools.product(syllables["onset"], syllables["vowel"], syllables["middle"], syllables[what])
        every = [name for name in map("".join, parts) if name.lower() not in taken]
        chosen = rng.permutation(len(every))[:size]
        pools[what] = pl.Series(what, [every[i] for i in chosen.tolist()])
    return Names(**pools)


Position = Literal["uniform", "early", "late"]

PER_ENTITY = 8
"""Passages per entity (the last entity of a collection may have fewer)."""
ATTRIBUTES = 5
"""Attributes that can be asked about per entity; one of the five is never asked about."""

_MEANS = {"uniform": 0.5, "early": 0.2, "late": 0.8}


@dataclass(frozen=True, slots=True)
class Stratum:
    """The number of passages of a stratum, and of those with male and with female wording."""

    size: int
    male: int
    female: int


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticConfig:
    """The size of a built-in collection and the bias planted in it.

    Shares (0 to 1) are quotas, not probabilities: they are met exactly, up to rounding to whole passages.
    A passage has male, female or neutral wording, never a mix; the wording is independent of the entity.
    If shares of relevant or clicked passages are given, the remaining passages make up the balance, so that the shares
    of all passages are met too. Raises EvenrankError for values out of range and for shares that contradict each other.
    """

    passages: Annotated[int, opt.Range(200, 1_000_000)] = 5_000
    """Passages in the collection, 200 to 1,000,000."""
    seed: Annotated[int, opt.Range(0, 2**63 - 1)] = 0
    """Whole number from 0; the same settings and seed give the same bytes."""
    queries: int | None = None
    """Questions, from 10 to about ``passages / (2 * relevant)``. None: a tenth of the passages, at most 20,000."""
    relevant: Annotated[int, opt.Range(1, PER_ENTITY)] = 2
    """Passages that answer a question, 1 to 8; one of them is clicked."""
    sentences: Annotated[int, opt.Range(3, 12)] = 5
    """Sentences in a passage (of about 11 words), 3 to 12."""
    gender_rate: Annotated[float, opt.SHARE] = 0.5
    """Share of all passages with gendered wording (two to nine gendered words; two to five below 5 sentences)."""
    male_share: Annotated[float, opt.SHARE] = 0.5
    """Share of the gendered passages whose wording is male."""
    relevance_gender_rate: Annotated[float | None, opt.SHARE] = None
    """Share of the relevant passages with gendered wording. None: ``gender_rate``."""
    relevance_male_share: Annotated[float | None, opt.SHARE] = None
    """Share of the gendered relevant passages whose wording is male. None: ``male_share``."""
    click_male_share: Annotated[float | None, opt.SHARE] = None
    """Share of the gendered clicked passages whose wording is male. None: ``relevance_male_share``.

    With ``relevant=1`` every relevant passage is clicked, so the two must agree.
    """
    train_click_male_share: Annotated[float | None, opt.SHARE] = None
    """The same for the questions of the train split alone: those of the others keep ``click_male_share``, unskewed if
    it is None. Every relevant passage with gendered wording then has a twin in the other wording (see ``paired``)."""
    group_query_rate: Annotated[float, opt.SHARE] = 0.0
    """Share of the questions that group words decide: half of them ask about a man ("the brother of the chronicler
    of …"), half about a woman. As many passages tell the same fact, with another answer, of the other: they are not
    relevant, and with group words masked nothing tells the two apart. Where it is not 0, passages are ``paired``."""
    answer_position: Position | float = "uniform"
    """Position of the fact in its passage, as the share of sentences before it: "uniform", "early" (mean 0.2), "late"
    (mean 0.8), or the mean, from 0.1 to 0.9, of a Beta distribution that falls from the nearer end. A fact fills a
    whole sentence, so with few sentences the mean is met less closely (0.02 off with five, 0.04 with three)."""
    relevance_answer_position: Position | float | None = None
    """The same for relevant passages only. None: ``answer_position``, which always applies to the others."""
    decoy_rate: Annotated[float, opt.SHARE] = 0.3
    """Share of the passages with a decoy: a sentence that repeats the words of a question about the same entity (never
    the question that the passage answers) without answering it."""
    decoy_position: Position | float = "uniform"
    """Position of the decoy among the sentences other than the fact, as ``answer_position``."""
    kinds: tuple[str, ...] = ()
    """The kinds of things that the passages are about (``craft``, ``building``, ``instrument``, ``event``, …): those of
    ``sentences.toml``; empty: all. Collections of different kinds share neither topics nor questions."""

    def __post_init__(self) -> None:
        check_range("queries", self.queries, opt.Range(10, self.most_queries))
        for name in ("answer_position", "relevance_answer_position", "decoy_position"):
            value = getattr(self, name)
            if isinstance(value, float | int) and not 0.1 <= value <= 0.9:
                expected = "uniform, early, late or a number from 0.1 to 0.9"
                raise EvenrankError(f"{arg(name)}: expected {expected}, found {value!r}")
        # JSON has lists.
        object.__setattr__(self, "kinds", tuple(self.kinds))
        names = templates().kinds
        unknown = [kind for kind in self.kinds if kind not in names]
        if unknown or len(set(self.kinds)) < len(self.kinds):
            raise EvenrankError(f"`kinds`: expected some of {', '.join(names)}, each once, found {self.kinds!r}")
        if self.paired:
            self._check_paired()
        else:
            self.strata()

    @property
    def paired(self) -> bool:
        """Whether wordings are planted by question: the relevant passages of one that group words do not decide are
        half male and half female (``relevance_gender_rate`` of these questions) or all neutral, so that its click can
        be either. ``click_male_share`` counts the clicks of these questions; those that group words decide are even.
        """
        return self.group_query_rate > 0 or self.train_click_male_share is not None

    @property
    def groups(self) -> int:
        """Questions that can be asked about one entity; one of its attributes is never asked about."""
        return min(ATTRIBUTES - 1, PER_ENTITY // self.relevant)

    @property
    def most_queries(self) -> int:
        """The largest number of questions that the collection can answer."""
        # A question that group words decide takes the passages of two.
        rounds = self.groups // 2 if self.group_query_rate > 0 else self.groups
        return self.passages // PER_ENTITY * rounds

    @property
    def query_count(self) -> int:
        """The number of questions."""
        return min(self.passages // 10, 20_000, self.most_queries) if self.queries is None else self.queries

    def mean_position(self, *, relevant: bool) -> float:
        """The planted mean position of the fact, 0 to 1, in the relevant or in the other passages."""
        value = self.relevance_answer_position if relevant else None
        value = self.answer_position if value is None else value
        return _mean_of(value)

    @property
    def decoy_mean(self) -> float:
        """The planted mean position of the decoys, 0 to 1."""
        return _mean_of(self.decoy_position)

    @property
    def group_query_count(self) -> int:
        """The number of questions that group words decide."""
        return round(self.query_count * self.group_query_rate)

    @property
    def gendered_query_count(self) -> int:
        """If ``paired``: of the other questions, how many have gendered relevant passages."""
        rate = _default(self.relevance_gender_rate, self.gender_rate)
        return round((self.query_count - self.group_query_count) * rate)

    def click_share(self, split: str) -> float:
        """If ``paired``: the planted share of male clicks among the gendered ones of a split."""
        share = _default(self.click_male_share, 0.5)
        return _default(self.train_click_male_share, share) if split == "train" else share

    def others(self) -> Stratum:
        """If ``paired``: the quotas of the passages that are neither relevant nor told of the other group."""
        decided, gendered = self.group_query_count * self.relevant, self.gendered_query_count * self.relevant
        size = self.passages - self.query_count * self.relevant - decided
        total = round(self.passages * self.gender_rate)
        male = round(total * self.male_share) - gendered // 2 - decided
        both = _within(total - gendered - 2 * decided, size, "with gendered wording", "passages that are not relevant")
        part = _within(male, both, "with male wording", "gendered passages that are not relevant")
        return Stratum(size, part, both - part)

    def _check_paired(self) -> None:
        # With questions that group words decide, an entity tells of two attributes.
        most = PER_ENTITY // 2 if self.group_query_rate > 0 else PER_ENTITY
        if self.relevant % 2 or self.relevant > most or self.relevance_male_share not in (None, 0.5):
            raise EvenrankError(
                "the planted amounts contradict each other: train_click_male_share and group_query_rate need relevant"
                f" passages in both wordings: `relevant` has to be even and at most {most}, and `relevance_male_share`"
                f" 0.5, found {self.relevant} and {self.relevance_male_share}"
            )
        self.others()

    def strata(self) -> tuple[Stratum, Stratum, Stratum]:
        """The quotas of the clicked, the other relevant and the remaining passages."""
        rate = _default(self.relevance_gender_rate, self.gender_rate)
        share = _default(self.relevance_male_share, self.male_share)
        clicked = self.query_count
        sizes = [clicked, clicked * self.relevant, self.passages]
        gendered = [
            round(clicked * rate),
            round(clicked * self.relevant * rate),
            round(self.passages * self.gender_rate),
        ]
        shares = [_default(self.click_male_share, share), share, self.male_share]
        male = [round(count * part) for count, part in zip(gendered, shares, strict=True)]
        strata = [Stratum(sizes[0], male[0], gendered[0] - male[0])]
        for i, what in ((1, "relevant passages that are not clicked"), (2, "passages that are not relevant")):
            size = sizes[i] - sizes[i - 1]
            both = _within(gendered[i] - gendered[i - 1], size, "with gendered wording", what)
            part = _within(male[i] - male[i - 1], both, "with male wording", f"gendered {what}")
            strata.append(Stratum(size, part, both - part))
        return strata[0], strata[1], strata[2]


def _mean_of(position: Position | float) -> float:
    return _MEANS[position] if isinstance(position, str) else float(position)


def _default(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _within(count: int, available: int, wording: str, what: str) -> int:
    """``count`` clipped to 0 … ``available``; one passage outside is rounding, more is a contradiction."""
    if not -1 <= count <= available + 1:
        raise EvenrankError(
            f"the planted amounts contradict each other: they need {count} {wording} among the {available} {what}"
            " (relevance_gender_rate, relevance_male_share or click_male_share is too far from the amount it refines)"
        )
    return max(0, min(count, available))


NEITHER = 2
"""The index of neutral wording in GROUPS, and of a question that group words do not decide."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What group words decide, of Q questions and N passages."""

    decided: Ints
    """[Q] the group that the question asks about; ``NEITHER``: not decided."""
    person: Ints
    """[Q] the number of the fact about a person that such a question asks for."""
    counterpart: Ints
    """[N] the question whose fact the passage tells of the other group, -1 if none."""

    @classmethod
    def none(cls, config: SyntheticConfig) -> Pairs:
        """Without such questions."""
        nobody = np.full(config.query_count, NEITHER)
        return cls(nobody, np.zeros_like(nobody), np.full(config.passages, -1))


def make_pairs(
    config: SyntheticConfig, entity: Ints, turn: Ints, query: Ints, place: Ints, asked: Ints, split: Ints
) -> tuple[Pairs, Ints, npt.NDArray[np.bool_]]:
    """The questions that group words decide, the wording [N] of every passage, and which are clicked [N].

    Of each passage [N], numbered entity by entity: its ``entity``, the ``turn`` of its attribute in the entity's order,
    the ``query`` that it answers (-1: none) and its ``place`` among those with its attribute. Of each question
    ``asked`` [Q, 2], its entity and turn, and ``split`` [Q]. Every quota is met in each split, to within a question.
    """
    rng = np.random.default_rng([config.seed, 3])
    count = config.query_count
    order = rng.permutation(count)
    order = order[np.argsort(split[order], kind="stable")]
    chosen = _spread(order, config.group_query_count)
    decided = np.full(count, NEITHER)
    decided[chosen] = np.arange(len(chosen)) % 2
    rest = order[decided[order] == NEITHER]
    gendered = _spread(rest, config.gendered_query_count)

    # The clicked passage of a question: the first of its passages is male, the second female.
    second = np.zeros(count, dtype=np.int64)
    for number, name in enumerate(SPLIT_SHARES):
        of_split = gendered[split[gendered] == number]
        male = round(len(of_split) * config.click_share(name))
        second[rng.permutation(of_split)[male:]] = 1

    relevant = query >= 0
    worded = np.zeros(count, dtype=bool)
    worded[gendered] = True
    group = np.full(config.passages, NEITHER)
    group[relevant] = np.where(worded[query[relevant]], place[relevant] % 2, decided[query[relevant]])
    clicked = relevant & (place == second[query])

    # The passages of the last attributes of its entity tell of the other group.
    table = np.full((int(entity.max()) + 1, config.groups + 1), -1)
    table[asked[chosen, 0], config.groups - 1 - asked[chosen, 1]] = chosen
    counterpart = table[entity, np.minimum(turn, config.groups)]
    has_counterpart = counterpart >= 0
    group[has_counterpart] = 1 - decided[counterpart[has_counterpart]]

    others = config.others()
    rows = rng.permutation(np.flatnonzero(~relevant & ~has_counterpart))
    group[rows[: others.male]] = 0
    group[rows[others.male : others.male + others.female]] = 1
    person = rng.integers(len(templates().people_ask), size=count)
    return Pairs(decided, person, counterpart), group, clicked


def _spread(order: Ints, count: int) -> Ints:
    """``count`` of the rows, evenly spaced."""
    steps = np.arange(len(order) + 1) * count // max(len(order), 1)
    return order[steps[1:] > steps[:-1]]


SPLIT_SHARES = {"train": 0.7, "valid": 0.1, "test": 0.2}
"""Shares of the entities asked about; all questions about an entity are in one split."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The content of N passages about E entities, with A attributes each, and of Q questions.

    Passages are numbered in the order of the collection.
    """

    config: SyntheticConfig
    names: Names
    topic: Ints
    """[E] topic of the entity."""
    name: Ints
    """[E, 2] its given and family name, as indexes into the pools."""
    value: Ints
    """[E, A] random numbers that select the answer for each attribute."""
    entity: Ints
    """[N] the entity that the passage is about."""
    attribute: Ints
    """[N] the attribute that its fact states."""
    query: Ints
    """[N] the question that it answers, -1 if none."""
    clicked: npt.NDArray[np.bool_]
    """[N] whether it is the one clicked passage of its question."""
    group: Ints
    """[N] its wording, as an index into GROUPS."""
    sentence: Ints
    """[N] number of the sentence that states the fact, from 0."""
    asked: Ints
    """[Q, 2] entity and attribute of each question."""
    split: Ints
    """[Q] split of each question, as an index into SPLIT_SHARES."""
    pairs: Pairs
    """What group words decide."""


def make_plan(config: SyntheticConfig) -> Plan:
    """Draws everything except the wording of single sentences."""
    rng = np.random.default_rng([config.seed, 0])
    kinds = templates()
    entities = -(-config.passages // PER_ENTITY)
    names = make_names(rng, entities)
    wanted = {kinds.kinds.index(kind) for kind in config.kinds or kinds.kinds}
    allowed = np.flatnonzero([topic.kind in wanted for topic in kinds.topics])
    topics = min(len(allowed), max(4, entities // 8))
    pairs = rng.permutation(len(names.given) * len(names.family))[:entities]
    attributes = rng.permuted(np.tile(np.arange(ATTRIBUTES), (entities, 1)), axis=1)

    # Passages in blocks of one entity: groups of `relevant` passages on one attribute, the rest on the unasked one.
    entity, place_in_block = np.divmod(np.arange(config.passages), PER_ENTITY)
    turn = np.minimum(place_in_block // config.relevant, config.groups)
    turn[entity >= config.passages // PER_ENTITY] = config.groups
    turn[turn == config.groups] = ATTRIBUTES - 1
    attribute = attributes[entity, turn]

    # Question i is about the i-th entity of a random order; a second round uses another attribute.
    full_entities = config.passages // PER_ENTITY
    order = rng.permutation(full_entities)
    round_, place_in_order = np.divmod(np.arange(config.query_count), full_entities)
    query_of = np.full((entities, ATTRIBUTES), -1)
    query_of[order[place_in_order], round_] = np.arange(config.query_count)
    query = query_of[entity, turn]
    facts = np.stack([order[place_in_order], attributes[order[place_in_order], round_]], axis=1)
    clicked = (query >= 0) & (place_in_block % config.relevant == 0)

    group = None if config.paired else _wordings(rng, config, query >= 0, clicked)
    sentence = _fact_sentences(rng, config, query >= 0)
    split = _splits(rng, min(full_entities, config.query_count))[place_in_order]
    planted = Pairs.none(config)
    if group is None:
        turns, place = np.stack([order[place_in_order], round_], axis=1), place_in_block % config.relevant
        planted, group, clicked = make_pairs(config, entity, turn, query, place, turns, split)
    shuffled = rng.permutation(config.passages)
    planted = replace(planted, counterpart=planted.counterpart[shuffled])
    plan = Plan(
        config=config,
        names=names,
        topic=allowed[rng.permutation(entities) % topics],
        name=np.stack(np.divmod(pairs, len(names.family)), axis=1),
        value=rng.integers(0, 2**40, (entities, ATTRIBUTES)),
        entity=entity[shuffled],
        attribute=attribute[shuffled],
        query=query[shuffled],
        clicked=clicked[shuffled],
        group=group[shuffled],
        sentence=sentence[shuffled],
        asked=facts,
        split=split,
        pairs=planted,
    )
    rows = np.flatnonzero(plan.pairs.counterpart >= 0)
    own = plan.asked[plan.pairs.counterpart[rows]]
    # The next value, so that the answer is another one.
    plan.value[plan.entity[rows], plan.attribute[rows]] = plan.value[own[:, 0], own[:, 1]] + 1
    return plan


def _wordings(
    rng: np.random.Generator, config: SyntheticConfig, relevant: npt.NDArray[np.bool_], clicked: npt.NDArray[np.bool_]
) -> Ints:
    """[N] groups that meet the quotas of each stratum."""
    group = np.full(len(relevant), 2)
    members = (clicked, relevant & ~clicked, ~relevant)
    for stratum, member in zip(config.strata(), members, strict=True):
        rows = rng.permutation(np.flatnonzero(member))
        group[rows[: stratum.male]] = 0
        group[rows[stratum.male : stratum.male + stratum.female]] = 1
    return group


def _fact_sentences(rng: np.random.Generator, config: SyntheticConfig, relevant: npt.NDArray[np.bool_]) -> Ints:
    """[N] sentence numbers, from evenly spaced quantiles, so that the distribution is met closely at any size."""
    sentence = np.zeros(len(relevant), dtype=np.int64)
    for which in (True, False):
        rows = np.flatnonzero(relevant == which)
        mean = config.mean_position(relevant=which)
        quantile = (rng.permutation(len(rows)) + 0.5) / max(len(rows), 1)
        sentence[rows] = np.floor(beta_place(quantile, mean) * config.sentences)
    return np.minimum(sentence, config.sentences - 1)


def beta_place(quantile: npt.NDArray[np.float64], mean: float) -> npt.NDArray[np.float64]:
    """Places in 0 … 1 from quantiles, of the Beta distribution that has this mean and falls from the nearer end."""
    near = min(mean, 1 - mean)
    place = 1 - (1 - quantile) ** (near / (1 - near))  # Beta(1, (1 - near) / near)
    return np.asarray(place if mean <= 0.5 else 1 - place)


def _splits(rng: np.random.Generator, entities: int) -> Ints:
    """[entities asked about] splits, in random order; each split has at least one."""
    ends = np.cumsum(list(SPLIT_SHARES.values()))
    number = np.searchsorted(ends, (np.arange(entities) + 0.5) / entities)
    return rng.permutation(np.minimum(number, len(SPLIT_SHARES) - 1))


_YEARS = pl.Series("year", [str(year) for year in range(1602, 1990)])
_NUMBERS = pl.Series("number", [str(number) for number in range(12, 97)])


@dataclass(frozen=True, slots=True)
class Sentences:
    """n sentences, in the order requested."""

    text: pl.Series
    answer: pl.Series
    """The answer in the sentence, null if it has none."""
    answer_start: Ints
    """[n] characters before the answer, 0 if the sentence has none."""


class Writer:
    """Fills in the templates for the entities of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        topics = templates().topics
        self.nouns = pl.Series([topic.noun for topic in topics])
        self.words = pl.Series([word for topic in topics for word in topic.words])
        self.words_each = len(topics[0].words)
        self.helpers = pl.Series(templates().helpers)
        self.lists = {name: pl.Series(words) for name, words in templates().answers.items()}
        self.lists |= {"year": _YEARS, "number": _NUMBERS, "place": plan.names.place}

    def write(self, template: Ints, entity: Ints, attribute: Ints, rng: np.random.Generator) -> Sentences:
        """One sentence per row of the three arrays [n]; ``attribute`` is that of the passage."""
        chance = rng.integers(0, 2**30, (4, len(template)))
        order = np.argsort(template, kind="stable")
        present, starts = np.unique(template[order], return_index=True)
        texts: list[pl.Series] = []
        answers: list[pl.Series] = []
        answer_start = np.zeros(len(template), dtype=np.int64)
        for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
            filled = self._fill(templates().all[number], entity[rows], attribute[rows], chance[:, rows])
            texts.append(filled.text)
            answers.append(filled.answer)
            answer_start[rows] = filled.answer_start
        back = pl.Series(np.argsort(order, kind="stable"))
        return Sentences(pl.concat(texts).gather(back), pl.concat(answers).gather(back), answer_start)

    def _fill(self, template: Template, entity: Ints, attribute: Ints, chance: Ints) -> Sentences:
        slots: dict[str, Callable[[], pl.Series]] = {
            "name": lambda: self.names_of(entity),
            "noun": lambda: self.nouns_of(entity),
            "other": lambda: self.names_of(self._other(entity, chance[0])),
            "other_noun": lambda: self.nouns_of(self._other(entity, chance[0])),
            "place": lambda: self._place(entity, attribute, chance[1]),
            "helper": lambda: _take(self.helpers, chance[2]),
            "word": lambda: self._word(entity, chance[3]),
            "detail": lambda: self._word(entity, chance[3] + 1 + chance[2] % (self.words_each - 1)),
            "answer": lambda: self._answer(template.answer, entity, attribute),
        }
        answer = pl.Series([None], dtype=pl.String).new_from_index(0, len(entity))
        start: npt.NDArray[np.int64] = np.zeros(len(entity), dtype=np.int64)
        parts: list[pl.Expr] = []
        before = start.copy()
        for i, piece in enumerate(template.pieces):
            if i % 2 == 0:
                parts.append(pl.lit(piece))
                before = before + len(piece)
                continue
            column = slots[piece]()
            if piece == "answer":
                answer, start = column, before
            parts.append(pl.lit(column))
            before = before + column.str.len_bytes().cast(pl.Int64).to_numpy()
        text = pl.select(pl.concat_str(parts).alias("text"))["text"]
        return Sentences(text, answer.alias("answer"), start)

    def names_of(self, entity: Ints) -> pl.Series:
        names = self.plan.names
        given, family = self.plan.name[entity].T
        return _take(names.given, given) + " " + _take(names.family, family)

    def nouns_of(self, entity: Ints) -> pl.Series:
        return _take(self.nouns, self.plan.topic[entity])

    def _other(self, entity: Ints, chance: Ints) -> Ints:
        count = len(self.plan.topic)
        return np.asarray((entity + 1 + chance % (count - 1)) % count)

    def _place(self, entity: Ints, attribute: Ints, chance: Ints) -> pl.Series:
        """A town other than the answer, in case the answer is a town."""
        count = len(self.plan.names.place)
        answer = self.plan.value[entity, attribute] % count
        return _take(self.plan.names.place, answer + 1 + chance % (count - 1))

    def _word(self, entity: Ints, chance: Ints) -> pl.Series:
        return _take(self.words, self.plan.topic[entity] * self.words_each + chance % self.words_each)

    def _answer(self, what: str, entity: Ints, attribute: Ints) -> pl.Series:
        value = self.plan.value[entity, attribute]
        if what != "person":
            return _take(self.lists[what], value)
        names = self.plan.names
        return _take(names.given, value) + " " + _take(names.maker, value // len(names.given))


def _take(values: pl.Series, number: Ints) -> pl.Series:
    """``values`` at each number, modulo their length."""
    return values.gather(pl.Series(number % len(values)))


_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class SyntheticCollection:
    """A built-in collection. Ids are strings of whole numbers from "0"; spans count characters from 0, end excluded.

    config: the size of the collection and the bias planted in it.
    collection: ``doc_id``, ``text``.
    queries: ``query_id``, ``text``, ``split`` ("train" 70%, "valid" 10%, "test" 20%; an entity is in one split),
        ``group`` ("m" or "f" where group words decide the question, else "n").
    qrels: ``query_id``, ``doc_id``, ``relevance`` (1), every passage that answers the question.
    clicks: the same for the one clicked passage of each question; clicks depend on the wording as planted.
    answers: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end``: one row per row of ``qrels``.
    truth: one row per passage, in the order of ``collection``: see :func:`batches`.
    """

    config: SyntheticConfig
    collection: pl.DataFrame
    queries: pl.DataFrame
    qrels: pl.DataFrame
    clicks: pl.DataFrame
    answers: pl.DataFrame
    truth: pl.DataFrame

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the collection into ``folder``, created if needed, and returns the folder.

        Files: collection.tsv; queries.tsv and queries.train.tsv, .valid.tsv, .test.tsv; qrels.txt and clicks.txt
        (TREC); answers.json (SQuAD, with the ``doc_id`` of each paragraph and the ``query_id`` of each question);
        truth.parquet; planted.json (``config``). Each file is written whole or not at all.
        """
        target = write_collection(folder, self.collection, self.queries, qrels=self.qrels, clicks=self.clicks)
        write_text(target / "answers.json", json.dumps(self._squad(), ensure_ascii=False))
        with atomic_path(target / "truth.parquet") as part:
            self.truth.write_parquet(part)
        write_text(target / "planted.json", json.dumps(self._planted(), indent=1))
        return target

    def _planted(self) -> dict[str, object]:
        """The settings; those that came later only where they are used, so that older collections keep their bytes."""
        later = {"train_click_male_share": None, "group_query_rate": 0.0, "decoy_position": "uniform", "kinds": ()}
        return {k: v for k, v in asdict(self.config).items() if k not in later or v != later[k]}

    def _squad(self) -> dict[str, object]:
        rows = (
            self.answers.join(self.queries.rename({"text": "question"}), on="query_id", maintain_order="left")
            .join(self.collection, on="doc_id", maintain_order="left")
            .join(self.truth.select("doc_id", "entity"), on="doc_id", maintain_order="left")
        )
        articles: dict[str, list[dict[str, object]]] = {}
        for row in rows.iter_rows(named=True):
            question = {
                "id": f"{row['query_id']}_{row['doc_id']}",
                "query_id": row["query_id"],
                "question": row["question"],
                "answers": [{"text": row["answer"], "answer_start": row["answer_start"]}],
                "is_impossible": False,
            }
            paragraph = {"doc_id": row["doc_id"], "context": row["text"], "qas": [question]}
            articles.setdefault(row["entity"], []).append(paragraph)
        return {"version": "v2.0", "data": [{"title": k, "paragraphs": v} for k, v in articles.items()]}


@checked
def generate(config: SyntheticConfig) -> SyntheticCollection:
    """Generates the collection in memory (about 1 KB per passage). The same ``config`` gives the same bytes."""
    plan = make_plan(config)
    table = pl.concat(list(_batches(plan)), rechunk=False)
    judged = table.filter(pl.col("query_id").is_not_null()).sort(pl.col("query_id").cast(pl.Int64), maintain_order=True)
    qrels = judged.select("query_id", "doc_id", pl.lit(1, dtype=pl.Int64).alias("relevance"))
    return SyntheticCollection(
        config=config,
        collection=table.select("doc_id", "text"),
        queries=_queries(plan),
        qrels=qrels,
        clicks=qrels.filter(judged["clicked"]),
        answers=judged.select("query_id", "doc_id", "answer", "answer_start", "answer_end"),
        truth=table.drop("text"),
    )


def batches(config: SyntheticConfig) -> Iterator[pl.DataFrame]:
    """The passages of :func:`generate` in batches, in constant memory.

    Columns: ``doc_id``, ``text``; ``query_id`` (the question that the passage answers, null if none), ``clicked``;
    ``entity`` (its name), ``topic`` (its noun); ``group`` ("m", "f", or "n" for neutral wording), ``count_m``,
    ``count_f`` (gendered words); ``answer``, ``answer_start``, ``answer_end`` (characters), ``answer_sentence`` (from
    0), ``answer_token``, ``tokens`` (words; the text has no hyphens or apostrophes, so that all tokenisers agree),
    ``answer_place`` = answer_token / tokens; ``decoy`` (whether a sentence repeats a question's words);
    with questions that group words decide, ``counterpart`` (the one whose fact the passage tells of the other group).
    """
    yield from _batches(make_plan(config))


def _batches(plan: Plan) -> Iterator[pl.DataFrame]:
    writer = Writer(plan)
    for number, start in enumerate(range(0, plan.config.passages, _BATCH)):
        rng = np.random.default_rng([plan.config.seed, 1, number])
        yield _batch(plan, writer, np.arange(start, min(start + _BATCH, plan.config.passages)), rng)


def _batch(plan: Plan, writer: Writer, rows: Ints, rng: np.random.Generator) -> pl.DataFrame:
    """The passages numbered ``rows`` [n]."""
    entity, attribute, group, fact = plan.entity[rows], plan.attribute[rows], plan.group[rows], plan.sentence[rows]
    template, words, decoy = _choose(plan, rows, rng)
    sentences, size = template.shape
    written = writer.write(template.ravel(), np.tile(entity, sentences), np.tile(attribute, sentences), rng)
    length = written.text.str.len_bytes().cast(pl.Int64).to_numpy().reshape(sentences, size) + 1
    begin = (np.cumsum(length, axis=0) - length)[fact, np.arange(size)]
    answer = written.answer.gather(pl.Series(fact * size + np.arange(size)))
    answer_start = begin + written.answer_start.reshape(sentences, size)[fact, np.arange(size)]
    text = pl.select(pl.concat_str([written.text[i * size : (i + 1) * size] for i in range(sentences)], separator=" "))
    query = pl.Series(plan.query[rows])
    other = {}
    if plan.config.group_query_rate > 0:
        counterpart = pl.Series(plan.pairs.counterpart[rows])
        other = {"counterpart": pl.select(pl.when(counterpart >= 0).then(counterpart)).to_series().cast(pl.String)}
    return (
        pl.DataFrame(
            {
                "doc_id": pl.Series(rows).cast(pl.String),
                "text": text.to_series(),
                "query_id": pl.select(pl.when(query >= 0).then(query)).to_series().cast(pl.String),
                "clicked": plan.clicked[rows],
                "entity": writer.names_of(entity),
                "topic": writer.nouns_of(entity),
                "group": pl.Series(GROUPS).gather(pl.Series(group)),
                "count_m": np.where(group == 0, words, 0),
                "count_f": np.where(group == 1, words, 0),
                "answer": answer,
                "answer_start": answer_start,
                "answer_end": answer_start + answer.str.len_bytes().cast(pl.Int64).to_numpy(),
                "answer_sentence": fact,
                "decoy": decoy,
                **other,
            }
        )
        .with_columns(
            answer_token=pl.col("text")
            .str.head(pl.col("answer_start"))
            .str.count_matches(" ", literal=True)
            .cast(pl.Int64),
            tokens=pl.col("text").str.count_matches(" ", literal=True).cast(pl.Int64) + 1,
        )
        .with_columns(answer_place=pl.col("answer_token") / pl.col("tokens"))
    )


def _choose(plan: Plan, rows: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """The templates [S, n] of passages of S sentences, their gendered words [n] and whether they have a decoy [n]."""
    known, sentences, size = templates(), plan.config.sentences, len(rows)
    attribute, group, fact = plan.attribute[rows], plan.group[rows], plan.sentence[rows]
    kind = np.array([topic.kind for topic in known.topics])[plan.topic[plan.entity[rows]]]
    others = np.empty((sentences - 1, size), dtype=np.int64)

    # One sentence mentions people, or two if there is room; the second is neutral half of the time.
    first = rng.integers(len(known.voices), size=size)
    others[0] = known.voices[first, group]
    words = known.voice_words[first]
    used = 1
    if sentences >= 5:
        second = (first + rng.integers(1, len(known.voices), size=size)) % len(known.voices)
        speaks = rng.random(size) < 0.5
        others[1] = known.voices[second, np.where(speaks, group, 2)]
        words = words + np.where(speaks, known.voice_words[second], 0)
        used = 2

    wanted = sentences - 1 - used
    drawn = np.argsort(rng.random((known.fillers.shape[1], size)), axis=0)[:wanted]
    others[used:] = known.fillers[kind, drawn]
    decoy = rng.random(size) < plan.config.decoy_rate
    about = (attribute + rng.integers(1, ATTRIBUTES, size=size)) % ATTRIBUTES
    teaser = known.tease[kind, about, rng.integers(known.tease.shape[2], size=size)]
    others[-1] = np.where(decoy, teaser, others[-1])

    keys = rng.random(others.shape)
    if plan.config.decoy_position != "uniform":
        keys[-1] = np.where(decoy, beta_place(keys[-1], plan.config.decoy_mean), keys[-1])
    others = np.take_along_axis(others, np.argsort(keys, axis=0), axis=0)
    place = np.arange(sentences)[:, None]
    around = np.take_along_axis(others, np.clip(place - (place > fact), 0, sentences - 2), axis=0)
    variant = rng.integers(known.tell.shape[2], size=size)
    fact_template = known.tell[kind, attribute, variant]
    about_person, person = _people(plan, rows)
    words = words + np.where(about_person, known.people_words[person, variant], 0)
    people_template = known.people_tell[person, variant, np.minimum(group, 1)]
    fact_template = np.where(about_person, people_template, fact_template)
    return np.where(place == fact, fact_template, around), words, decoy


def _people(plan: Plan, rows: Ints) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Whether the fact of each passage [n] is about a person of its group, and the number of that fact."""
    query, counterpart = plan.query[rows], plan.pairs.counterpart[rows]
    question = np.where(query >= 0, query, counterpart)
    about = (question >= 0) & (plan.pairs.decided[question] != NEITHER)
    return about, np.where(about, plan.pairs.person[question], 0)


def _queries(plan: Plan) -> pl.DataFrame:
    rng = np.random.default_rng([plan.config.seed, 2])
    entity, attribute = plan.asked.T
    kind = np.array([topic.kind for topic in templates().topics])[plan.topic[entity]]
    ask, decided = templates().ask, plan.pairs.decided
    variant = rng.integers(ask.shape[2], size=len(entity))
    about_person = templates().people_ask[plan.pairs.person, variant, np.minimum(decided, 1)]
    template = np.where(decided == NEITHER, ask[kind, attribute, variant], about_person)
    return pl.DataFrame(
        {
            "query_id": pl.Series(np.arange(len(entity))).cast(pl.String),
            "text": Writer(plan).write(template, entity, attribute, rng).text,
            "split": pl.Series(list(SPLIT_SHARES)).gather(pl.Series(plan.split)),
            "group": pl.Series(GROUPS).gather(pl.Series(decided)),
        }
    )
