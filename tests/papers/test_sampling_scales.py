"""The sampling experiment at ``full`` and ``real``, on stand-ins: the steps, the architectures, the public runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import Run, read_qrels, read_queries, read_run, write_run
from evenrank.files.synthetic import SyntheticConfig
from evenrank.groups import Scoring, load_lexicon
from evenrank.papers import sampling_paper, sampling_setup
from evenrank.papers.checks import Options
from evenrank.papers.corpora import Lists, Source, all_texts, built_in, judged_queries, neutral_queries
from evenrank.papers.paper_page import ExperimentPage
from evenrank.papers.sampling_paper import PUBLIC_RUNS, Found, public_table, reproduced
from evenrank.papers.sampling_setup import Data
from micro_experiments import micro_sampling, table

WORDS = ("he", "she", "man", "woman", "his", "her")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    planted = SyntheticConfig(passages=400, queries=40, sentences=3, relevant=2, male_share=0.75)
    return built_in(tmp_path_factory.mktemp("source"), planted, clicks=False)


def stand_in_parts(source: Source, lists: Lists, settings: sampling_setup.Settings) -> dict[str, Any]:
    """Parts as the published ones; each name of a data set is the files of the built-in collection."""
    files = [source.queries[0]], [source.qrels[0]]
    neutral = neutral_queries(source.annotated)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling_setup, "judged_queries", lambda *_: judged_queries(*files))
        return sampling_setup.published_parts(
            {"train": "a", "valid": "b", "dev": "c"},
            "d",
            {"QS1": neutral.head(15), "QS2": neutral.head(10)},
            lists,
            settings,
        )


def test_full_parts_and_no_run_of_the_training_queries(source: Source, tmp_path: Path) -> None:
    settings = replace(micro_sampling(), sizes={"train": 30})
    parts = stand_in_parts(source, Lists(source.collection, tmp_path), settings)
    assert {name: part.count for name, part in parts.items()} == {
        "train": 30, "valid": 25, "dev": 40, "QS1": 15, "QS2": 10
    }  # fmt: skip
    tested = {*read_queries(parts["QS1"].queries)["query_id"]}
    assert not tested & {*read_queries(parts["valid"].queries)["query_id"]}
    assert not parts["train"].run
    assert all(Path(part.run).is_file() for name, part in parts.items() if name != "train")


# --- the architectures of the five checkpoints -----------------------------------------------------------------------


def checkpoint(kind: str, texts: list[str], folder: Path) -> str:
    """A checkpoint of random weights in the form of a published one, with a tokenizer of its kind."""
    import torch
    from transformers import (
        BertConfig,
        BertForMaskedLM,
        BertTokenizer,
        ElectraConfig,
        ElectraForPreTraining,
        ElectraTokenizer,
        RobertaConfig,
        RobertaForMaskedLM,
        RobertaTokenizer,
    )

    shape = {
        "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
        "max_position_embeddings": 514,
    }  # fmt: skip
    words = sorted({word.strip(".,?!").lower() for text in texts for word in text.split()})
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
    torch.manual_seed(0)
    model: Any
    tokenizer: Any
    if kind == "roberta":
        from tokenizers import ByteLevelBPETokenizer

        made = ByteLevelBPETokenizer()
        made.train_from_iterator(texts[:200], 600, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        folder.mkdir()
        made.save_model(str(folder))
        tokenizer = RobertaTokenizer.from_pretrained(folder, model_max_length=512)
        model = RobertaForMaskedLM(RobertaConfig(vocab_size=len(tokenizer), **shape))
    elif kind == "electra":
        tokenizer = ElectraTokenizer(vocab=vocabulary, model_max_length=512)
        model = ElectraForPreTraining(ElectraConfig(vocab_size=len(vocabulary), embedding_size=16, **shape))
    else:
        tokenizer = BertTokenizer(vocab=vocabulary, model_max_length=512)
        model = BertForMaskedLM(BertConfig(vocab_size=len(vocabulary), **shape))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def full_run(source: Source, tmp_path_factory: pytest.TempPathFactory) -> ExperimentPage:
    """The scale full with its own recipe, on a stand-in collection, checkpoints, lexicon and public runs."""
    home = tmp_path_factory.mktemp("full")
    texts = all_texts(source)
    made = {kind: checkpoint(kind, texts, home / kind) for kind in ("bert", "roberta", "electra")}
    small = checkpoint("bert", texts, home / "small")
    full = sampling_setup.full()
    settings = replace(
        full,
        sizes={"train": 4},
        depth=20,
        listed=8,
        validated=4,
        negatives=5,
        shares=(0.0, full.share),
        rankers=dict(zip(full.rankers, made.values(), strict=True)),
        small_rankers={"BERT-Tiny": small},
        ranker={**full.ranker, "passage_length": 64},
    )
    lists = Lists(source.collection, home / "lists")
    parts = stand_in_parts(source, lists, settings)
    lexicon = home / "wordlist_gender_representative.txt"
    lexicon.write_text("".join(f"{word},{'mf'[i % 2]}\n" for i, word in enumerate(WORDS)), encoding="utf-8")
    data = Data(source.collection, parts, lists, None, str(lexicon), public_files(parts["QS2"].run, home / "public"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling_setup, "prepare", lambda *_: data)
        return sampling_paper.run(settings, home / "run")


def public_files(run: str, folder: Path) -> tuple[str, ...]:
    """Runs by the names of the authors': BM25, and the same lists turned around, in file order."""
    folder.mkdir()
    back = read_run(run)
    turned = back.table.with_columns(-pl.col("score"))
    for name in ("BM25", *PUBLIC_RUNS, "tk"):
        write_run(back if name == "BM25" else Run.from_table(turned, name), folder / f"{name}.run")
    return tuple(str(file) for file in sorted(folder.iterdir()))


@pytest.mark.slow
def test_every_architecture_goes_through_training_and_re_ranking(full_run: ExperimentPage) -> None:
    second = table(full_run, "Table 2")
    for ranker in ("BERT-base", "DistilRoBERTa-base", "ELECTRA-base"):
        for training in ("original", "bias-aware"):
            for part in ("QS1", "QS2"):
                row = next(row for row in second.rows if row.labels[:3] == (part, ranker, training))
                assert row.measured["mrr_10"].unit == "queries"
                assert row.published
    assert {row.labels[0] for row in table(full_run, "Table 1").rows if row.measured and not row.control} == {
        "BERT-base", "DistilRoBERTa-base", "ELECTRA-base"
    }  # fmt: skip
    assert table(full_run, "Adversary").rows[1].labels == ("BERT-Tiny", "AdvBert")


@pytest.mark.slow
def test_published_words_stand_beside_published_figures_and_ours_beside_them(full_run: ExperimentPage) -> None:
    names = [one.name for one in full_run.tables]
    assert {"Table 2", "Table 2 ours", "Table 3", "Table 3 ours"} <= {*names}
    ours = table(full_run, "Table 2 ours")
    assert not any(row.published for row in ours.rows)
    first, other = (table(full_run, name).rows[0].measured["nfairr_10"].mean for name in ("Table 2", "Table 2 ours"))
    assert first != other
    assert any("wordlist_gender_representative, whitespace tokens" in note for note in full_run.notes)


# --- the authors' runs -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_public_runs_are_measured_as_they_are(full_run: ExperimentPage, source: Source) -> None:
    rows = {row.labels[0]: row for row in table(full_run, "Public runs").rows}
    assert {*rows} == {"BM25", *PUBLIC_RUNS, "tk"}
    assert rows["advbert_L2"].labels[1] == "BERT-Tiny AdvBert"
    assert rows["advbert_L2"].published["nfairr_10"] == 0.9257
    assert not rows["tk"].published
    claim = next(claim for claim in full_run.claims if claim.statement.key == "public_rows")
    assert claim.verdict.supported is False


def test_public_runs_that_give_the_printed_rows(source: Source, tmp_path: Path) -> None:
    lists = Lists(source.collection, tmp_path)
    part = lists.part("QS2", *judged_queries(source.queries, source.qrels), depth=10)
    files = public_files(part.run, tmp_path / "public")
    figures = sampling_paper.public_runs(files, source.collection, part.qrels, Scoring(load_lexicon(), "whitespace"))
    relevant = {
        (row["query_id"], row["doc_id"])
        for row in read_qrels(part.qrels).iter_rows(named=True)
        if row["relevance"] >= 1
    }
    ranks: list[float] = []
    for query, docs in read_run(part.run).table.group_by("query_id", maintain_order=True):
        turned = docs["doc_id"].to_list()[::-1][:10]
        ranks.append(max((1 / (1 + i) for i, doc in enumerate(turned) if (query[0], doc) in relevant), default=0.0))
    # Ties of the turned lists go by id; without them the order is the reverse.
    assert figures.mean("tk", "mrr_10") == pytest.approx(sum(ranks) / len(ranks), abs=0.03)
    for name, key in PUBLIC_RUNS.items():
        line = next(row for row in sampling_tables_rows() if (row["ranker"], row["training"]) == key)
        for measure in ("mrr_10", "nfairr_10", "arab_tf_10", "arab_bool_10"):
            figures.seeds[0][name][measure][:] = float(line[measure]) + 0.0004
    found = Found(public=figures)
    claim = reproduced(found)
    assert claim is not None
    assert claim.verdict.supported
    assert public_table(found).rows[0].labels[0] == "BM25"


def sampling_tables_rows() -> list[dict[str, str]]:
    from evenrank.papers.paper_page import published

    return published("sampling_table3")


# --- real text -------------------------------------------------------------------------------------------------------


def squad_file(folder: Path) -> Path:
    """Twelve articles of two passages, two questions each."""
    articles = []
    for number in range(12):
        paragraphs = []
        for part in ("first", "second"):
            word, other = f"stone{number}{part}", f"river{number}{part}"
            context = f"The {word} was found by a woman near the {other}. He said his work was done."
            answers = [{"text": word, "answer_start": context.index(word)}]
            questions = [
                {"id": f"{number}{part}{i}", "question": f"What {verb} near the {other}?", "answers": answers,
                 "is_impossible": False}
                for i, verb in enumerate(("was found", "lay"))
            ]  # fmt: skip
            paragraphs.append({"context": context, "qas": questions})
        articles.append({"title": f"article {number}", "paragraphs": paragraphs})
    path = folder / "squad.json"
    path.write_text(json.dumps({"version": "v2.0", "data": articles}), encoding="utf-8")
    return path


def test_real_text_keeps_articles_and_collections_apart(tmp_path: Path) -> None:
    grep = tmp_path / "grep"
    grep.mkdir()
    (grep / "collection.tsv").write_text("1\tThe woman leads the team well\n2\tThe man leads the team badly\n")
    (grep / "queries.tsv").write_text("7\thow to lead a team\n")
    (grep / "qrels.txt").write_text("7 0 1 1\n7 0 2 0\n")
    options = Options(squad=(str(squad_file(tmp_path)),), grepbiasir=str(grep), encoder="unused")
    real = sampling_setup.real(options)
    settings = replace(real, seeds=(100,), sizes={"train": 8, "valid": 2, "dev": 4}, depth=10, listed=10)
    data = sampling_setup.Experiment(settings, tmp_path / "run").of(100)
    assert data.parts["QS1"] == data.parts["dev"]
    listed = read_run(data.parts["QS2"].run).table["doc_id"]
    assert {*listed} == {"grep-1", "grep-2"}
    own = read_run(data.parts["QS1"].run).table["doc_id"]
    assert not any(doc.startswith("grep-") for doc in own)
    ids = {name: {*read_queries(part.queries)["query_id"]} for name, part in data.parts.items()}
    assert not ids["train"] & ids["dev"]
    assert data.encoder == "unused"
    texts = Path(data.collection).read_text(encoding="utf-8").splitlines()
    assert len(texts) == 24 + 2
