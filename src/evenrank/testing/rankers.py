"""The contract of rankers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from evenrank.files import InputError
from evenrank.files.types import Array
from evenrank.models.protocol import CandidateLists, Ranker

_NEAR = 1e-5


def check_ranker(make: Callable[[int], Ranker], words: Sequence[str]) -> None:
    """Checks that a kind of ranker keeps what ranking and training rely on.

    - A pair's score depends on that pair alone: neither padding, nor other passages, nor their order, nor the size of
      the batch changes it; it is 0 where ``mask`` is False, finite for texts without a known word, and the same again.
    - ``score`` gives the scores of pairs in float32, and leaves the ranker in the mode in which it was.
    - The same seed gives the same weights, another seed others, and the caller's random numbers go on as if none had
      been drawn.
    - A gradient reaches every parameter that is trained, none comes from masked passages, and
      ``parameter_groups`` holds each parameter once. Twenty-five steps lower a loss.
    - ``save`` and ``load`` change no score and write nothing pickled; a folder without its weights, or with half of
      them, is an InputError that names it.
    - ``reads_to`` is the whole of a short passage, and of a long one the characters up to the last word read.

    Args:
        make: From a seed, a new ranker.
        words: At least eight different words of its vocabulary.

    Raises AssertionError with the first that is broken.
    """
    threads = torch.get_num_threads()
    # Sums in the same order, whatever the batch.
    torch.set_num_threads(1)
    try:
        lists = _candidates(words)
        ranker = make(0).eval()
        _check_scores(ranker, lists)
        _check_without_words(ranker, words)
        _check_seeds(make)
        _check_gradients(make(0), lists)
        _check_learning(make(0).eval(), words)
        _check_folder(ranker, make(1), lists)
        _check_length(ranker, words)
    finally:
        torch.set_num_threads(threads)


def _candidates(words: Sequence[str]) -> CandidateLists:
    """Three queries with 4, 1 and 6 passages of unlike lengths."""
    rng = np.random.default_rng(0)

    def texts(count: int, longest: int) -> list[str]:
        return [" ".join(rng.choice(words, rng.integers(1, longest + 1))) for _ in range(count)]

    return CandidateLists(texts(3, 5), [texts(4, 18), texts(1, 8), texts(6, 12)])


def _scores(ranker: Ranker, lists: CandidateLists) -> Array:
    """[B, K] of a batch."""
    with torch.no_grad():
        scores = ranker(**ranker.encode(lists))
    assert scores.shape == lists.mask.shape, (
        f"scores of shape {tuple(scores.shape)} for {tuple(lists.mask.shape)} pairs"
    )
    array: Array = scores.numpy()
    return array


def _alone(ranker: Ranker, lists: CandidateLists) -> Array:
    """[B, K], each pair in a batch of its own."""
    scores = np.zeros(lists.mask.shape, np.float32)
    for i, (query, row) in enumerate(zip(lists.queries, lists.passages, strict=True)):
        for j, text in enumerate(row):
            scores[i, j] = _scores(ranker, CandidateLists([query], [[text]]))[0, 0]
    return scores


def _same(found: Array, expected: Array, broken: str) -> None:
    np.testing.assert_allclose(found, expected, atol=_NEAR, err_msg=broken)


def _check_scores(ranker: Ranker, lists: CandidateLists) -> None:
    scores, mask = _scores(ranker, lists), lists.mask.numpy()
    assert np.isfinite(scores).all(), "scores are not finite"
    assert (scores[~mask] == 0).all(), "scores of padding are not 0"
    # Else the rest would show nothing: what is tolerated is far below.
    assert scores[mask].std() > 1e-3, "all pairs have nearly the same score"
    np.testing.assert_array_equal(_scores(ranker, lists), scores, "scores differ when they are asked for again")
    expected = _alone(ranker, lists)
    _same(scores, expected, "a pair's score depends on the others of its batch")
    longest = " ".join(text for row in lists.passages for text in row)
    more = CandidateLists([*lists.queries, longest], [*lists.passages, [longest, ""]])
    _same(_scores(ranker, more)[:3], expected, "padding changes scores")
    turned = CandidateLists(lists.queries[::-1], [row[::-1] for row in lists.passages[::-1]])
    for row, other, passages in zip(expected, _scores(ranker, turned)[::-1], lists.passages, strict=True):
        _same(other[: len(passages)][::-1], row[: len(passages)], "the order of the batch changes scores")
    empty = CandidateLists([*lists.queries, lists.queries[0]], [*lists.passages, []])
    _same(_scores(ranker, empty), np.vstack([expected, np.zeros_like(expected[:1])]), "a query without passages")
    pairs = [(query, text) for query, row in zip(lists.queries, lists.passages, strict=True) for text in row]
    queries, passages = zip(*pairs, *pairs[:2], (lists.queries[0], ""), strict=True)
    for size in (1, 3, 32):
        rescored = ranker.score(queries, passages, size)
        assert rescored.dtype == torch.float32, "score gives other numbers than float32"
        _same(rescored.numpy()[: len(pairs)], expected[mask], f"score in batches of {size} differs from forward")
    for mode in (True, False):
        ranker.train(mode).score(queries[:1], passages[:1])
        assert ranker.training is mode, "score changes whether the ranker is in training"


def _check_without_words(ranker: Ranker, words: Sequence[str]) -> None:
    for query in ("zyx qwv", "", "?!"):
        lists = CandidateLists([query, words[0]], [[words[1], "", "  ...  ", "zyx"], ["", "zyx zyx", words[0]]])
        scores = ranker(**ranker.encode(lists))
        assert bool(torch.isfinite(scores).all()), f"scores of the query {query!r} are not finite"
        scores.sum().backward()
        for name, value in ranker.named_parameters():
            finite = value.grad is None or bool(torch.isfinite(value.grad).all())
            assert finite, f"the gradient of {name} is not finite for the query {query!r}"
        ranker.zero_grad()
        _same(scores.detach().numpy(), _alone(ranker, lists), f"scores of the query {query!r} depend on the batch")


def _check_seeds(make: Callable[[int], Ranker]) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        first = make(3).state_dict()
        drawn = torch.rand(1)
        torch.manual_seed(5)
        assert torch.equal(torch.rand(1), drawn), "making a ranker takes from the caller's random numbers"
        torch.manual_seed(6)
        again, other = make(3).state_dict(), make(4).state_dict()
    assert list(first) == list(again), "the same seed gives other parameters"
    assert all(torch.equal(first[name], again[name]) for name in first), "the same seed gives other weights"
    assert any(not torch.equal(first[name], other[name]) for name in first), "another seed gives the same weights"


def _check_gradients(ranker: Ranker, lists: CandidateLists) -> None:
    ranker.train()
    scores = ranker(**ranker.encode(lists))
    scores[~lists.mask].sum().backward()
    assert all(value.grad is None or not value.grad.any() for value in ranker.parameters()), "padding has a gradient"
    scores = ranker(**ranker.encode(lists))
    (scores * (torch.arange(scores.numel()).reshape(scores.shape) - 4.0)).sum().backward()
    trained = {name: value for name, value in ranker.named_parameters() if value.requires_grad}
    gradients = {name: value.grad for name, value in trained.items() if value.grad is not None}
    without = [name for name in trained if name not in gradients or not gradients[name].any()]
    assert trained, "it has no parameter to train"
    assert not without, f"no gradient reaches {', '.join(without)}"
    assert all(bool(torch.isfinite(value).all()) for value in gradients.values()), "a gradient is not finite"
    grouped = [id(value) for values in ranker.parameter_groups().values() for value in values]
    every = [id(value) for value in ranker.parameters()]
    assert sorted(grouped) == sorted(every), "parameter_groups does not hold every parameter once"


def _check_learning(ranker: Ranker, words: Sequence[str]) -> None:
    """Without dropout, whose noise is larger than what 25 steps teach; at the best of three learning rates."""
    chosen = list(words[:4])
    passages = [
        [f"{word} {words[4]}", f"{other} {words[5]}"]
        for word, other in zip(chosen, chosen[1:] + chosen[:1], strict=True)
    ]
    inputs = ranker.encode(CandidateLists(chosen, passages))
    start = {name: value.clone() for name, value in ranker.state_dict().items()}
    falls = []
    for rate in (1e-3, 5e-3, 0.2):
        ranker.load_state_dict(start)
        optimizer = torch.optim.Adam([value for value in ranker.parameters() if value.requires_grad], lr=rate)
        losses = []
        for _ in range(25):
            scores = ranker(**inputs)
            loss = (1 - scores[:, 0] + scores[:, 1]).relu().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        falls.append(losses[-1] / losses[0])
    assert min(falls) < 0.5, f"25 steps do not lower a loss by half (to {min(falls):.2f} of it)"


def _check_folder(ranker: Ranker, other: Ranker, lists: CandidateLists) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, expected = Path(name) / "saved", _scores(ranker, lists)
        # What was there is replaced.
        other.save(folder)
        ranker.save(folder)
        loaded = type(ranker).load(folder).eval()
        _same(_scores(loaded, lists), expected, "a ranker that was saved and loaded gives other scores")
        loaded.save(Path(name) / "again")
        again = _scores(type(ranker).load(Path(name) / "again").eval(), lists)
        np.testing.assert_array_equal(again, _scores(loaded, lists), "what was loaded cannot be saved again")
        pickled = [path.name for path in folder.rglob("*") if path.suffix in (".bin", ".pt", ".pth", ".pkl")]
        assert not pickled, f"save writes {', '.join(pickled)}, which are unpickled when they are read"
        weights = sorted(folder.rglob("*.safetensors"), key=lambda path: path.stat().st_size)
        assert weights, "save writes no safetensors"
        content = weights[-1].read_bytes()
        weights[-1].write_bytes(content[: len(content) // 2])
        _check_refused(type(ranker), folder, "half of its weights")
        weights[-1].unlink()
        _check_refused(type(ranker), folder, "no weights")


def _check_refused(kind: type[Ranker], folder: Path, what: str) -> None:
    try:
        kind.load(folder)
    except InputError as error:
        message = str(error)
    else:
        raise AssertionError(f"a folder with {what} is loaded")
    assert folder.name in message, f"the error for a folder with {what} does not name it: {message}"


def _check_length(ranker: Ranker, words: Sequence[str]) -> None:
    query, last = words[0], words[7]
    short, long = " ".join(words[:3]), " ".join(list(words[:6]) * 170)
    read = ranker.reads_to([query] * 2, [short, long])
    assert read[0] == len(short), f"reads_to: {read[0]} characters of a passage of {len(short)}"
    beginning = long[: read[1]]
    assert 0 < read[1] <= len(long), f"reads_to: {read[1]} characters of a passage of {len(long)}"
    if beginning == long:
        return
    # The last word that it says to read is read, and the next one is not.
    before = beginning.rsplit(" ", 1)[0]
    passages = [before, f"{before} {last}", f"{before} {last} {last} {query}"]
    without, at_end, behind = _scores(ranker, CandidateLists([last], [passages]))[0]
    assert abs(at_end - without) > _NEAR, "the last word that reads_to says is read changes no score"
    _same(behind, at_end, "words behind what reads_to says is read change a score")
