"""What every ranker promises, whatever its kind: the cases stand in ``ranker_factories``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.files import InputError
from ranker_factories import CASES, Case
from tiny_models import WORDS, texts

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.models.protocol import CandidateLists, Ranker

LISTS = CandidateLists(texts(3, 5), [texts(4, 18, 1), texts(1, 8, 2), texts(6, 12, 3)])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def ranker(case: Case) -> Ranker:
    return case.make(0).eval()


def scores_of(ranker: Ranker, groups: CandidateLists) -> Any:
    """[B, K] of a batch."""
    with torch.no_grad():
        scores = ranker(**ranker.encode(groups))
    assert scores.shape == groups.mask.shape
    return scores.numpy()


def alone(ranker: Ranker, groups: CandidateLists) -> Any:
    """[B, K], each pair in a batch of its own."""
    scores = np.zeros(groups.mask.shape, np.float32)
    for i, (query, row) in enumerate(zip(groups.queries, groups.passages, strict=True)):
        for j, text in enumerate(row):
            scores[i, j] = scores_of(ranker, CandidateLists([query], [[text]]))[0, 0]
    return scores


def test_scores_differ_and_are_0_where_no_passage_stands(ranker: Ranker) -> None:
    scores = scores_of(ranker, LISTS)
    assert np.isfinite(scores).all()
    mask = LISTS.mask.numpy()
    assert (scores[~mask] == 0).all()
    # Else the tests below would show nothing: their tolerance is far below.
    assert scores[mask].std() > 1e-3


def test_padding_changes_no_score(ranker: Ranker) -> None:
    expected = alone(ranker, LISTS)
    np.testing.assert_allclose(scores_of(ranker, LISTS), expected, atol=1e-5)
    # Beside a query and a passage that are far longer than all others.
    longer = CandidateLists([*LISTS.queries, *texts(1, 40, 8)], [*LISTS.passages, [" ".join(WORDS * 20), ""]])
    np.testing.assert_allclose(scores_of(ranker, longer)[:3], expected, atol=1e-5)


def test_order_of_the_batch_changes_no_score(ranker: Ranker) -> None:
    expected = scores_of(ranker, LISTS)
    turned = CandidateLists(LISTS.queries[::-1], [row[::-1] for row in LISTS.passages[::-1]])
    for row, turned_row, size in zip(expected, scores_of(ranker, turned)[::-1], (4, 1, 6), strict=True):
        np.testing.assert_allclose(turned_row[:size][::-1], row[:size], atol=1e-5)


@pytest.mark.parametrize("passages", [[["the nurse", "she is home"]] * 2, [["the nurse"], ["she is home"]]])
def test_groups_of_one_size(ranker: Ranker, passages: list[list[str]]) -> None:
    groups = CandidateLists(["nurse", "home by night"], passages)
    np.testing.assert_allclose(scores_of(ranker, groups), alone(ranker, groups), atol=1e-5)


def test_a_query_without_passages(ranker: Ranker) -> None:
    groups = CandidateLists([LISTS.queries[0], "nobody", LISTS.queries[2]], [LISTS.passages[0], [], LISTS.passages[2]])
    scores = scores_of(ranker, groups)
    np.testing.assert_allclose(scores[[0, 2]], scores_of(ranker, LISTS)[[0, 2]], atol=1e-5)
    assert (scores[1] == 0).all()


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_scoring_pairs(ranker: Ranker, batch_size: int) -> None:
    pairs = [(query, text) for query, row in zip(LISTS.queries, LISTS.passages, strict=True) for text in row]
    # Texts that come again, in other company.
    pairs += [(LISTS.queries[1], text) for text in LISTS.passages[0]] + pairs[:3] + [("night", ""), ("", "night")]
    queries, passages = zip(*pairs, strict=True)
    scores = ranker.score(queries, passages, batch_size)
    assert scores.dtype == torch.float32
    expected = [scores_of(ranker, CandidateLists([query], [[text]]))[0, 0] for query, text in pairs]
    np.testing.assert_allclose(scores.numpy(), expected, atol=1e-5)


def test_scores_are_repeated_exactly(ranker: Ranker) -> None:
    np.testing.assert_array_equal(scores_of(ranker, LISTS), scores_of(ranker, LISTS))
    ranker.train()
    trained = scores_of(ranker, LISTS)
    ranker.score(["nurse"], ["the nurse"])
    assert ranker.training
    ranker.eval()
    ranker.score(["nurse"], ["the nurse"])
    assert not ranker.training
    assert trained.shape == LISTS.mask.shape


def test_same_seed_same_weights(case: Case) -> None:
    torch.manual_seed(5)
    first = case.make(3).state_dict()
    drawn = torch.rand(1)
    torch.manual_seed(6)
    again = case.make(3).state_dict()
    other = case.make(4).state_dict()
    assert list(first) == list(again)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)
    # The caller's own random numbers go on as if nothing had been drawn.
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), drawn)


def test_saved_and_loaded(ranker: Ranker, case: Case, tmp_path: Path) -> None:
    case.make(1).save(tmp_path / "saved")
    ranker.save(tmp_path / "saved")
    loaded = type(ranker).load(tmp_path / "saved").eval()
    np.testing.assert_allclose(scores_of(loaded, LISTS), scores_of(ranker, LISTS), atol=1e-6)
    assert not [path for path in (tmp_path / "saved").rglob("*") if path.suffix in (".bin", ".pt", ".pkl")]
    # What is loaded can be saved again.
    loaded.save(tmp_path / "again")
    again = type(ranker).load(tmp_path / "again").eval()
    np.testing.assert_array_equal(scores_of(again, LISTS), scores_of(loaded, LISTS))


def test_a_damaged_folder_is_named(ranker: Ranker, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nothing"):
        type(ranker).load(tmp_path / "nothing")
    ranker.save(tmp_path / "saved")
    weights = next((tmp_path / "saved").rglob("model.safetensors"))
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="saved") as error:
        type(ranker).load(tmp_path / "saved")
    assert "\n" not in str(error.value)
    weights.unlink()
    with pytest.raises(InputError, match="saved"):
        type(ranker).load(tmp_path / "saved")


def test_a_gradient_reaches_every_parameter(case: Case) -> None:
    ranker = case.make(0).train()
    scores = ranker(**ranker.encode(LISTS))
    weights = torch.arange(scores.numel(), dtype=torch.float32).reshape(scores.shape) - 4
    (scores * weights).sum().backward()
    # All that are trained; a BERT's pooler, on which no vector depends, is not.
    trained = {name: value for name, value in ranker.named_parameters() if value.requires_grad}
    assert len(trained) > 1
    without = [name for name, value in trained.items() if value.grad is None or not value.grad.abs().sum() > 0]
    assert without == []
    assert all(bool(torch.isfinite(value.grad).all()) for value in trained.values())


def test_a_masked_passage_gets_no_gradient(case: Case) -> None:
    ranker = case.make(0).train()
    scores = ranker(**ranker.encode(LISTS))
    scores[~LISTS.mask].sum().backward()
    assert all(value.grad is None or not value.grad.any() for value in ranker.parameters())


def test_parameter_groups_hold_each_parameter_once(ranker: Ranker) -> None:
    grouped = [id(value) for values in ranker.parameter_groups().values() for value in values]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {id(value) for value in ranker.parameters()}


@pytest.mark.parametrize("query", ["zyx qwv", "", "?!"], ids=["unknown", "empty", "no-word"])
def test_nothing_to_compare(case: Case, query: str) -> None:
    # Not in training: dropout would change the scores.
    ranker = case.make(0).eval()
    groups = CandidateLists([query, "nurse"], [["the nurse", "", "  ...  ", "zyx"], ["", "zyx zyx", "a nurse"]])
    scores = ranker(**ranker.encode(groups))
    assert bool(torch.isfinite(scores).all())
    scores.sum().backward()
    for name, value in ranker.named_parameters():
        assert value.grad is None or bool(torch.isfinite(value.grad).all()), name
    np.testing.assert_allclose(scores.detach().numpy(), alone(ranker, groups), atol=1e-5)


def cut(inputs: dict[str, Any]) -> list[int]:
    """How many texts were too long, by what they are."""
    return [int(value.sum()) for name, value in sorted(inputs.items()) if name.endswith("cut")]


def test_what_is_too_long_is_cut_and_counted(case: Case, ranker: Ranker) -> None:
    # A word that stands at the end alone, so that one word more or less is seen.
    kept = " ".join([*(WORDS[i % 7] for i in range(case.passage_words - 1)), "night"])
    shorter = kept.rsplit(" ", 1)[0]
    groups = CandidateLists(["night software"], [[kept, f"{kept} software software", shorter]])
    inputs = ranker.encode(groups)
    assert sum(cut(inputs)) == 1
    scores = scores_of(ranker, groups)[0]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)
    assert abs(scores[2] - scores[0]) > 1e-5
    if case.query_words is not None:
        query = " ".join([*(WORDS[i % 7] for i in range(case.query_words - 1)), "night"])
        groups = CandidateLists([query, f"{query} software", "night"], [["by night software"]] * 3)
        assert sum(cut(ranker.encode(groups))) == 1
        scores = scores_of(ranker, groups)
        np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)
        assert abs(scores[2, 0] - scores[0, 0]) > 1e-5


def test_training_separates_what_can_be_separated(case: Case) -> None:
    # Without dropout, whose noise is larger than what 25 steps teach.
    ranker = case.make(0).eval()
    words = ["doctor", "nurse", "software", "night"]
    groups = CandidateLists(
        words,
        [[f"the {word} is home", f"he runs {other}"] for word, other in zip(words, words[1:] + words[:1], strict=True)],
    )
    inputs = ranker.encode(groups)
    optimizer = torch.optim.Adam(ranker.parameters(), lr=case.learning_rate)
    losses = []
    for _ in range(25):
        scores = ranker(**inputs)
        loss = (1 - scores[:, 0] + scores[:, 1]).relu().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_the_folder_says_what_it_holds(ranker: Ranker, tmp_path: Path) -> None:
    ranker.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names & {"evenrank.json", "config.json", "modules.json"}
    if "evenrank.json" in names:
        assert json.loads((tmp_path / "evenrank.json").read_text())["kind"] == ranker.kind


def test_what_is_read_and_which_answers_are_lost(case: Case, ranker: Ranker) -> None:
    words = [WORDS[i % len(WORDS)] for i in range(case.passage_words + 5)]
    long, short = " ".join(words), " ".join(words[:3])
    kept = " ".join(words[: case.passage_words])
    queries = [" ".join(WORDS[:2])] * 2
    assert ranker.reads_to(queries, [long, short]) == [len(kept), len(short)]
    # An answer that ends with the last word that is read is kept; one that goes on is lost.
    assert ranker.lost_spans(queries, [long, long], [len(kept), len(kept) + 1]) == 1
    assert ranker.lost_spans(queries[:1], [short], [len(short)]) == 0
