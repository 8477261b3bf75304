"""What every ranker promises, whatever its kind; and what breaks the contracts of rankers and loss terms is named."""

from __future__ import annotations

from typing import Any

import pytest

from ranker_factories import CASES, Case, vectors
from tiny_models import WORDS

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.mitigation.ibbr import FunctionTerm
from evenrank.models.word_rankers import KNRMRanker, WordConfig
from evenrank.testing import check_ranker, check_term


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_kind_keeps_to_the_contract(case: Case) -> None:
    check_ranker(case.make, WORDS)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_how_far_a_passage_is_read(case: Case) -> None:
    ranker = case.make(0).eval()
    words = [WORDS[i % len(WORDS)] for i in range(case.passage_words + 5)]
    long, short = " ".join(words), " ".join(words[:3])
    kept = " ".join(words[: case.passage_words])
    queries = [" ".join(WORDS[:2])] * 2
    assert ranker.reads_to(queries, [long, short]) == [len(kept), len(short)]


# --- what breaks them ------------------------------------------------------------------------------------------------


def gap(scores: Any, relevance: Any, sides: Any, mask: Any) -> Any:
    return (scores.masked_fill(~mask, -1e9).softmax(dim=1) * sides).sum().square()


@pytest.mark.parametrize(
    ("function", "broken"),
    [
        (lambda s, r, g, m: (s * g).sum(dim=1), "not one number"),
        (lambda s, r, g, m: s[m & (g > 0)].sum() / (m & (g > 0)).sum(), "is nan"),
        (lambda s, r, g, m: s.square().mean(), "gradient reaches padding|padding changes"),
        (lambda s, r, g, m: gap(s, r, g, m) + g.sum(), "padding changes"),
        (lambda s, r, g, m: s.masked_fill(~m, 0)[0].sum(), "order of the queries"),
        (lambda s, r, g, m: s[:, 0].square().sum(), "order of the passages"),
        (lambda s, r, g, m: gap(s, r, g, m).detach(), "no batch has a gradient"),
        (lambda s, r, g, m: 1 / s.masked_fill(~m, 0).square().sum(), "inf|not finite"),
    ],
)
def test_terms(function: Any, broken: str) -> None:
    with pytest.raises(AssertionError, match=broken):
        check_term(function)


def test_terms_that_keep_to_it() -> None:
    check_term(gap)
    check_term(FunctionTerm(lambda s, r, g, m, v: (s.masked_fill(~m, 0) * v).sum().square(), values=True))


class Broken(KNRMRanker):
    """A ranker with one promise broken, by its name."""

    broken = ""

    def forward(self, **inputs: Any) -> Any:
        scores = super().forward(**inputs)
        if self.broken == "batch":
            scores = (scores - scores.mean()) * inputs["mask"]
        if self.broken == "padding":
            scores = scores + 1
        if self.broken == "detached":
            scores = scores.detach() + 0 * sum(value.sum() for value in self.parameters() if value.requires_grad)
        return scores

    def score(self, *given: Any, **more: Any) -> Any:
        scores = super().score(*given, **more)
        return scores.double() if self.broken == "dtype" else scores

    def reads_to(self, queries: Any, passages: Any) -> list[int]:
        read = super().reads_to(queries, passages)
        return [
            min(each + 40 * (self.broken == "length"), len(text)) for each, text in zip(read, passages, strict=True)
        ]

    def parameter_groups(self) -> Any:
        return {"all": []} if self.broken == "groups" else super().parameter_groups()

    def save(self, folder: Any) -> None:
        super().save(folder)
        if self.broken == "pickle":
            (folder / "weights.bin").write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("batch", "depends on the others|order of the batch|padding"),
        ("padding", "padding are not 0"),
        ("detached", "no gradient reaches"),
        ("dtype", "float32"),
        ("length", "last word that reads_to"),
        ("groups", "every parameter once"),
        ("pickle", "unpickled"),
        ("seed", "another seed"),
    ],
)
def test_rankers(name: str, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "broken", name)

    def make(seed: int) -> Broken:
        of = 0 if name == "seed" else seed
        return Broken.from_vectors(vectors(), WordConfig(query_length=6, passage_length=20), of)

    with pytest.raises(AssertionError, match=broken):
        check_ranker(make, WORDS)
