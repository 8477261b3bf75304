"""Cached gradients against plain ones: values, random numbers, the size of graphs."""

from __future__ import annotations

from typing import Any

import pytest

from tiny_models import texts, tiny_bert

torch = pytest.importorskip("torch", reason="needs the extra [neural]")
pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")

from evenrank.models.encoders import CatRanker, DotRanker
from evenrank.models.protocol import CandidateLists
from evenrank.training.trainer import cached_backward

LISTS = CandidateLists(texts(5, 6), [texts(count, 30, count) for count in (7, 3, 9, 1, 6)])
SETTINGS: dict[str, dict[str, Any]] = {
    "shared": {},
    "separate": {"shared": False, "projection": 7},
    "cosine": {"similarity": "cosine", "pooling": "mean"},
}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("models") / "tiny", layers=2))


def loss_of(scores: Any) -> Any:
    """A loss in which every score meets every other: a listwise term, and one across the batch."""
    mask = LISTS.mask
    list_wise = -scores.div(3).masked_fill(~mask, -torch.inf).log_softmax(1)[:, 0].mean()
    return list_wise + scores[mask].tanh().var()


def gradients(ranker: Any) -> dict[str, Any]:
    found = {name: weight.grad.clone() for name, weight in ranker.named_parameters() if weight.grad is not None}
    ranker.zero_grad()
    return found


def plain(ranker: Any, inputs: Any) -> tuple[float, dict[str, Any]]:
    loss = loss_of(ranker(**inputs))
    loss.backward()
    return loss.item(), gradients(ranker)


def same(found: dict[str, Any], expected: dict[str, Any], tolerance: float = 1e-5) -> None:
    assert found.keys() == expected.keys()
    assert max(value.abs().max() for value in expected.values()) > 0.01
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("chunk", [1, 4])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_equal_to_the_plain_gradient(bert: str, settings: dict[str, Any], chunk: int) -> None:
    ranker = DotRanker.from_pretrained(bert, **settings)
    inputs = ranker.encode(LISTS)
    loss, expected = plain(ranker, inputs)
    found = cached_backward(ranker, inputs, loss_of, chunk=chunk)
    assert not found.requires_grad
    assert found.item() == pytest.approx(loss, abs=1e-5)
    same(gradients(ranker), expected)


def test_gradients_with_dropout(bert: str) -> None:
    """With dropout on, against one graph over the very same chunks and draws."""
    from evenrank.training import trainer as cached

    ranker = DotRanker.from_pretrained(bert, projection=6).train()
    inputs = ranker.encode(LISTS)
    pieces = cached._pieces(inputs, 4)
    torch.manual_seed(5)
    vectors = [ranker(**cached._texts(inputs, piece)) for piece in pieces]
    loss_of(ranker.scores(*(cached._in_order(vectors, pieces, side) for side in (0, 1)), inputs["mask"])).backward()
    after, expected = torch.get_rng_state(), gradients(ranker)
    ranker.eval()
    without = plain(ranker, inputs)[1]
    ranker.train()
    torch.manual_seed(5)
    cached_backward(ranker, inputs, loss_of, chunk=4)
    # The second pass repeats the dropout of the first, and costs no draws.
    assert torch.equal(torch.get_rng_state(), after)
    found = gradients(ranker)
    same(found, expected)
    assert any((found[name] - without[name]).abs().max() > 1e-3 for name in found)


def test_no_more_than_a_chunk_is_in_a_graph(bert: str) -> None:
    ranker = DotRanker.from_pretrained(bert)
    rows: list[int] = []

    def count(_: Any, __: Any, out: Any) -> None:
        if out["sentence_embedding"].requires_grad:
            rows.append(len(out["sentence_embedding"]))

    ranker.model.register_forward_hook(count)
    cached_backward(ranker, ranker.encode(LISTS), loss_of, chunk=4)
    assert (max(rows), sum(rows)) == (4, 5 + 26)


def test_the_gradient_of_the_loss_itself(bert: str) -> None:
    ranker = DotRanker.from_pretrained(bert)
    weight = torch.tensor(0.3, requires_grad=True)
    cached_backward(ranker, ranker.encode(LISTS), lambda scores: weight * loss_of(scores), chunk=4)
    assert weight.grad is not None
    assert weight.grad != 0
    gradients(ranker)
    assert cached_backward(ranker, ranker.encode(LISTS), lambda scores: scores.new_zeros(()), chunk=4) == 0
    assert all(not value.any() for value in gradients(ranker).values())


def test_what_is_refused(bert: str) -> None:
    ranker = DotRanker.from_pretrained(bert)
    with pytest.raises(ValueError, match=r"^chunk: expected 1 or more, found 0$"):
        cached_backward(ranker, {}, loss_of, chunk=0)
    with pytest.raises(TypeError, match=r"^expected a DotRanker, found CatRanker: its gradients cannot be cached$"):
        cached_backward(CatRanker.from_pretrained(bert), {}, loss_of)


def test_on_a_device(bert: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    ranker = DotRanker.from_pretrained(bert).to("cuda")
    inputs = {name: value.to("cuda") for name, value in ranker.encode(LISTS).items()}
    mask = LISTS.mask
    on_cpu = lambda scores: loss_of(scores.cpu())  # noqa: E731
    assert mask.device.type == "cpu"
    on_cpu(ranker(**inputs)).backward()
    expected = gradients(ranker)
    cached_backward(ranker, inputs, on_cpu, chunk=4)
    same(gradients(ranker), expected, 1e-4)
    seen: list[Any] = []
    ranker.model.register_forward_hook(lambda _, __, out: seen.append(out["sentence_embedding"].detach().clone()))
    cached_backward(ranker.train(), inputs, on_cpu, chunk=4)
    half = len(seen) // 2
    assert all(torch.equal(first, second) for first, second in zip(seen[:half], seen[half:], strict=True))
