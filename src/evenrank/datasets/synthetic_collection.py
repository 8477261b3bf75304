"""The built-in collection: texts, questions, judgements, and the ground truth of the planted bias."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from evenrank.io import atomic_path, write_text

from .collection_folder import write_collection
from .synthetic_config import ATTRIBUTES, SyntheticConfig
from .synthetic_pairs import NEITHER
from .synthetic_plan import SPLITS, Ints, Plan, beta_place, make_plan
from .synthetic_templates import GROUPS, templates
from .synthetic_text import Writer

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
        told = pl.Series(plan.pairs.counterpart[rows])
        other = {"counterpart": pl.select(pl.when(told >= 0).then(told)).to_series().cast(pl.String)}
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
    told = known.people_tell[person, variant, np.minimum(group, 1)]
    fact_template = np.where(about_person, told, fact_template)
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
            "split": pl.Series(list(SPLITS)).gather(pl.Series(plan.split)),
            "group": pl.Series(GROUPS).gather(pl.Series(decided)),
        }
    )
