"""Results as an interpreter and a notebook show them, and names that are asked for in brackets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank
from evenrank.files.errors import UnknownNameError
from evenrank.probes.similarity import SimilarityResult, term_similarity
from evenrank.search.embeddings import Vectors, evaluate_bias, gender_en, hard_debias
from page_parts import cells

TEXTS = {f"d{number}": "she and her" if number % 2 else "he said he" for number in range(40)}
RUNS = {
    "<b>plain": {f"q{q}": {f"d{d}": 40.0 - (d * (q + 3)) % 41 for d in range(40)} for q in range(30)},
    "other\x1b[2J": {f"q{q}": {f"d{d}": float(d) for d in range(40)} for q in range(30)},
}
QRELS = {f"q{q}": {f"d{q}": 1} for q in range(30)}


@pytest.fixture(scope="module")
def audited() -> evenrank.AuditResult:
    return evenrank.audit(RUNS, collection=TEXTS, qrels=QRELS, baseline="<b>plain", measures="nDCG@10 ARaB@10")


def test_an_audit_in_the_interpreter_is_its_screen(audited: evenrank.AuditResult) -> None:
    assert repr(audited) == str(audited) == audited.table()
    assert max(map(len, repr(audited).splitlines())) <= 80
    assert "\x1b" not in repr(audited)
    without = evenrank.audit(RUNS["<b>plain"], collection=TEXTS)
    assert repr(without).startswith("Effectiveness is unknown: there are no qrels.")
    assert without._repr_html_().startswith("<div><p><b>Effectiveness is unknown: there are no qrels.")


def test_figures_in_a_line(audited: evenrank.AuditResult) -> None:
    run, figure = audited["<b>plain"], audited["<b>plain"]["nDCG@10"]
    interval = "[{:.4f}, {:.4f}]".format(*figure.ci95 or ())
    assert repr(figure) == f"MetricValue(nDCG@10: {figure.mean:.4f} {interval}, 30 queries)"
    other: Any = audited["other\x1b[2J", "ARaB@10"]
    compared = other.vs_baseline
    counts = f"{compared.better}/{compared.equal}/{compared.worse} better/equal/worse"
    assert repr(compared).startswith(f"RunComparison({compared.difference:+.4f}, {counts}, Holm p ")
    assert repr(compared).endswith(", 30 queries)")
    assert repr(other).endswith(f", 30 queries, {compared.difference:+.4f} vs baseline)")
    bias = run["ARaB@10"].mean
    assert repr(run) == f"RunAudit(<b>plain: 30 queries, nDCG@10 {figure.mean:.4f}, ARaB@10 {bias:.4f})"


def test_an_audit_is_a_collection_of_runs_with_names_in_brackets(audited: evenrank.AuditResult) -> None:
    assert list(audited) == ["<b>plain", "other\x1b[2J", "random", "neutral-first", "relevance-first"]
    assert len(audited) == 5
    assert [name in audited for name in ("random", "nope", 5)] == [True, False, False]
    assert [audited[name].name for name in audited] == list(audited)
    assert audited["random"].reference
    assert audited["<b>plain", "ARaB@10"] is audited["<b>plain"].measures["ARaB@10"]
    assert audited["<b>plain"]["ARaB(magnitude='tf')@10"] is audited["<b>plain"].measures["ARaB@10"]
    with pytest.raises(UnknownNameError) as caught:
        audited["nope"]
    runs = "<b>plain, other\\x1b[2J, random, neutral-first, relevance-first"
    assert str(caught.value) == f"no run 'nope' (the runs are {runs})"
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, evenrank.EvenrankError)
    for measure in ("P@3", "nothing", ""):
        with pytest.raises(KeyError) as caught_measure:
            audited["random", measure]
        assert str(caught_measure.value) == f"no measure {measure!r} (the measures are nDCG@10, ARaB@10)"


def test_other_objects_in_a_line(tmp_path: Path) -> None:
    answers = [{"id": "q", "question": "?", "answers": [{"text": "two", "answer_start": 4}]}]
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "one two", "qas": answers}]}]}
    (tmp_path / "<s>.json").write_text(json.dumps(squad))
    located = evenrank.position_answers(tmp_path / "<s>.json")
    assert repr(located).startswith("AnswersResult(name='<s>.json', matches=1, queries=1, passages=1, ")
    assert "mean=0.5" in repr(located)
    assert "&lt;s&gt;.json" in located._repr_html_()
    assert cells(located._repr_html_())[1][:2] == ["mean relative position", "0.5000"]
    words, n = ("he", "she", "man", "woman", "nurse", "boss"), np.arange(8)
    vectors = Vectors(words, np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32))
    assert repr(vectors) == "Vectors(6 words, 4 dimensions)"
    done = hard_debias(vectors, [("he", "she"), ("man", "woman")], [("he", "she")], ())
    assert repr(done).startswith("Debiased(Vectors(6 words, 4 dimensions))\nbias subspace: 1 of 1 components")
    pairs = replace(gender_en(), definitional=(("he", "she"), ("man", "woman")), equalize=())
    left = evaluate_bias(vectors, done.vectors, pairs)
    assert repr(left).startswith("BiasEvaluation(recovery ")
    assert len(repr(left)) < 100
    lexicon = evenrank.load_lexicon("gender-en")
    f, m = (sum(of == group for _, of in lexicon.words) for group in "fm")
    assert repr(lexicon) == f"Lexicon(gender-en: words {f} f, {m} m)"
    options = {"min_pairs": 1, "min_terms": 1, "cap": 10, "seed": 0}
    similarity = term_similarity(np.ones((8, 2), np.float32), n % 2, n // 2 % 2, n // 4, **options)
    found = SimilarityResult("model", "words", similarity, {**options, "passages": 8})
    assert repr(found).startswith("SimilarityResult(name='model', vectors='words', ")
    assert max(len(repr(found)), len(repr(located))) <= 400
