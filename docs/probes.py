"""The page "Rankers probed": what BM25, MiniLM, its first layers and a trained `cat` react to.

python docs/probes.py DATA MODEL measures on the public data in the folder DATA (``grepbiasir``, ``squad2``, ``nq_utd``)
with all-MiniLM-L6-v2 in the folder MODEL, into ``docs/probes/measured.json``, in about 20 minutes on two cores; with or
without arguments, the page ``docs/probes.md`` is made of what is kept there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "probes" / "measured.json"
PAGE = Path(__file__).parent / "probes.md"
HELD_OUT = 6
"""Articles that are probed; the cat is trained on the questions of the other ten."""
TRAINING: dict[str, Any] = {
    "batch": 4,
    "max_steps": 160,
    "epochs": 100,
    "learning_rate": 2e-4,
    "learning_rates": {"head": 1e-3, "embeddings": 0.0},
    "evaluate_every": 100_000,
}
QUESTIONS, FEW, DEPTH, CANDIDATES, NEGATIVES, LENGTH = 150, 30, 20, 50, 3, 230
"""Questions of each probe that moves the answer, and of each that adds text; passages of a list; in training, how much
of BM25's list negatives are drawn from, how many, and tokens of a passage."""
RANKERS = ("BM25", "MiniLM", "MiniLM, 2 layers", "cat")
ANSWERED, ADDED = ("early", "late", "brief", "foil"), ("padded", "repeated")
Found = Mapping[str, Any]


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(data: Path, model: str) -> dict[str, Any]:
    """All figures of the page."""
    import evenrank

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        squad = _squad(data, folder)
        rankers, training = _rankers(model, folder, squad)
        lists = _lists(squad)
        return {
            "evenrank": evenrank.__version__,
            "training": training,
            "grepbiasir": {name: _grepbiasir(data / "grepbiasir", one) for name, one in rankers.items()},
            "squad": {name: _answers(lists, one) for name, one in rankers.items()},
            "nq_utd": {name: _authors(data / "nq_utd", one) for name, one in rankers.items()},
        }


def _rankers(model: str, folder: Path, squad: Found) -> tuple[dict[str, Any], dict[str, Any]]:
    """The four rankers by name, and what is to be said of the training of the last."""
    from evenrank.models.encoders import DotRanker

    DotRanker.from_pretrained(model, layers=2, pooling="mean", similarity="cosine", passage_length=256).save(
        folder / "two"
    )
    cat, training = _trained(model, folder, squad)
    return dict(zip(RANKERS, ("bm25", model, str(folder / "two"), cat), strict=True)), training


def _trained(model: str, folder: Path, squad: Found) -> tuple[str, dict[str, Any]]:
    """A cross-encoder that starts from MiniLM, trained on the questions and the passages of the training articles.

    Its first two layers alone, trained for as long, did not learn: their loss stayed that of a guess.
    """
    import polars as pl

    import evenrank
    from evenrank.files import scan_collection
    from evenrank.papers.study import cpu_precision
    from evenrank.training.recipes import RankerRecipe

    # Passages of other articles would be negatives alone, and told apart by that.
    own = squad["qrels"].join(squad["train"], on="query_id", how="semi")
    texts = pl.concat(list(scan_collection(squad["collection"]))).join(own, on="doc_id", how="semi")
    of = {"collection": texts, "queries": squad["train"]}
    first = evenrank.retrieve(of["collection"], of["queries"], k=CANDIDATES, quiet=True)
    lists = evenrank.training_lists(first, qrels=squad["qrels"], **of, negatives=NEGATIVES)
    ranker = {"kind": "cat", "model": model, "query_length": 24, "passage_length": LENGTH}
    recipe = RankerRecipe.model_validate(ranker)
    result = evenrank.train(recipe, lists, out=folder / "training", precision=cpu_precision(), **TRAINING)
    losses = [line["loss"] for line in result.log if isinstance(line.get("loss"), float)]
    kept = {"queries": squad["train"].height, "losses": [losses[0], losses[-1]]}
    result.ranker.save(folder / "cat")
    return str(folder / "cat"), {**kept, "settings": TRAINING, "negatives": NEGATIVES, "length": LENGTH}


def _squad(data: Path, folder: Path) -> dict[str, Any]:
    """SQuAD's passages as a collection, and its questions divided by article."""
    import polars as pl

    import evenrank

    answered, more = (
        json.loads((data / "squad2" / name).read_text(encoding="utf-8"))["data"]
        for name in ("answered.json", "unanswered.json")
    )
    whole = folder / "squad.json"
    whole.write_text(json.dumps({"version": "v2.0", "data": [*answered, *more]}), encoding="utf-8")
    evenrank.write_squad_collection([whole], to=folder)
    held_out = [one["id"] for article in answered[-HELD_OUT:] for part in article["paragraphs"] for one in part["qas"]]
    known = pl.Series(held_out).implode()
    queries = evenrank.read_queries(folder / "queries.tsv")
    test = queries.filter(pl.col("query_id").is_in(known)).sample(QUESTIONS, seed=0)
    return {
        "collection": folder / "collection.tsv",
        "qrels": evenrank.read_qrels(folder / "qrels.txt"),
        "answers": folder / "answers.json",
        "train": queries.filter(~pl.col("query_id").is_in(known)),
        "test": test,
        "few": test.head(FEW),
    }


def _grepbiasir(home: Path, ranker: Any) -> dict[str, Any]:
    """The swap."""
    import evenrank

    result = evenrank.probe(
        ranker,
        variants=["swap"],
        collection=home / "collection.tsv",
        queries=home / "queries.tsv",
        qrels=home / "qrels.txt",
    )
    return _kept(result)


def _lists(squad: Found) -> dict[str, dict[str, Any]]:
    """The lists of the two probes on SQuAD with the variants of their passages, made of the whole collection."""
    import evenrank
    from evenrank.probes.variants import KINDS

    found = {}
    for name, kinds, queries in (("moved", ANSWERED, squad["test"]), ("added", ADDED, squad["few"])):
        of = {"collection": squad["collection"], "queries": queries}
        run = evenrank.retrieve(of["collection"], queries, k=DEPTH, quiet=True)
        # Judged queries that a list lacks would count as 0.
        qrels = squad["qrels"].join(queries, on="query_id", how="semi")
        needs = {"answers": squad["answers"], "queries": queries, "run": run, "depth": DEPTH}

        def made(kind: str, of: str | None = None, needs: Mapping[str, Any] = needs) -> Any:
            return evenrank.variants(squad["collection"], kind=kind, of=of, **needs).table

        found[name] = {
            "list": {**of, "run": run, "qrels": qrels, "depth": DEPTH},
            "variants": {kind: made(kind) for kind in kinds},
            "placebos": {kind: made("placebo", kind) for kind in kinds if KINDS[kind].placebo},
        }
    return found


def _answers(lists: Found, ranker: Any) -> dict[str, Any]:
    """The answer moved, removed and alone; text added."""
    import evenrank

    return {
        name: _kept(evenrank.probe(ranker, variants=of["variants"], placebos=of["placebos"], **of["list"]))
        for name, of in lists.items()
    }


def _authors(home: Path, ranker: Any) -> dict[str, Any]:
    """The same passages as a language model rewrote them."""
    import polars as pl

    import evenrank

    qrels = pl.read_csv(home / "qrels.tsv", separator="\t", infer_schema_length=None)
    qrels.columns = ["query_id", "doc_id", "relevance"]
    result = evenrank.probe(
        ranker,
        variants={"llama2": home / "llama2.jsonl"},
        collection=home / "human.jsonl",
        queries=home / "queries.jsonl",
        qrels=qrels,
    )
    return _kept(result)


def _kept(result: Any) -> dict[str, Any]:
    """What the page shows of a probe."""
    found = json.loads(result.to_json())
    figures = ("effect", "placebo", "finding", "beyond_placebo", "swap", "rank_shift", "enters", "leaves", "counts")
    kept = {name: {key: one[key] for key in figures} for name, one in found["variants"].items()}
    sizes = {key: found[key] for key in ("pairs", "queries", "passages", "still")}
    return {**sizes, "original": found["original"], "variants": kept}


# --- the page ---------------------------------------------------------------------------------------------------------

INTRODUCTION = """# {number} rankers probed

What a ranker makes of a change in a passage ([guide](guides/probes.md)): BM25; all-MiniLM-L6-v2 as it is (`MiniLM`);
its first two layers without further training (`MiniLM, 2 layers`){cat}. Effects are means in standard deviations of the
scores of a query's list, with 95% intervals over queries and passages. Where a kind has a placebo, effects are those
*beyond* it, at equal length. A star marks what is shown: p < .05 after Holm's correction over the variants of a probe;
it does not correct for the rankers."""

CAT = "; and a cross-encoder (`cat`) that starts from MiniLM,\ntrained here"

KINDS = {
    "early": "the answer's sentence moved first",
    "late": "the answer's sentence moved last",
    "brief": "the answer's sentence alone",
    "foil": "the answer's sentence removed",
    "padded": "sentences of other passages added, to twice the length",
    "repeated": "the query's words in one more sentence",
}


def page(kept: Found) -> str:
    """The page as Markdown."""
    training = kept["training"]
    number = "Three" if training is None else "Four"
    parts = [INTRODUCTION.format(number=number, cat="" if training is None else CAT)]
    parts += [] if training is None else [_of_training(training)]
    parts += ["## Group words swapped: Grep-BiasIR", *_swaps(kept["grepbiasir"])]
    parts += ["## The answer moved, removed and alone; text added: SQuAD", *_squad_parts(kept["squad"])]
    parts += ["## People's text against Llama 2's", *_of_authors(kept["nq_utd"])]
    parts.append(
        f"*`python docs/probes.py DATA MODEL` measures it (evenrank {kept['evenrank']}); the public data are Krieg et "
        "al. 2022 (Grep-BiasIR), Rajpurkar et al. 2018 (SQuAD) and "
        "Dai et al. 2024 (Cocktail's NQ-UTD).*"
    )
    return "\n\n".join(parts) + "\n"


def _of_training(found: Found) -> str:
    first, last = found["losses"]
    settings = found["settings"]
    return (
        f"The `cat` saw lists of an answering passage and {found['negatives']} of BM25's first {CANDIDATES} for "
        f"{found['queries']:,} questions about ten articles of SQuAD, {settings['batch']} lists in each of "
        f"{settings['max_steps']:,} steps. Its loss fell from {first:.2f} to {last:.2f}. It reads "
        f"{found['length'] + 24} tokens of a pair, MiniLM 256 of a passage."
    )


def _effect(found: Found | None, star: bool = False) -> str:
    if found is None or found["mean"] is None:
        return "–"
    if found["mean"] == 0 and found["ci95"] is None:
        return "0"
    ends = "" if found["ci95"] is None else " [{:+.3f}, {:+.3f}]".format(*found["ci95"])
    return f"{found['mean']:+.3f}{'*' if star else ''}{ends}"


def _found(variant: Found) -> bool:
    return bool(variant["finding"]["verdict"] == "shown")


def _table(head: list[str], lines: list[list[str]]) -> str:
    rules = "|---|" + "---:|" * (len(head) - 1)
    return "\n".join([f"| {' | '.join(head)} |", rules, *(f"| {' | '.join(line)} |" for line in lines)])


def _swaps(found: Found) -> Iterator[str]:
    any_one = next(iter(found.values()))
    yield (
        f"{any_one['queries']} queries with their {any_one['pairs']} judged passages. Above 0 the ranker prefers male "
        "wording, whichever wording the passage has:"
    )
    head = ["ranker", "swap", "placebo", "preference", "noticeable", "nDCG@10"]
    lines = []
    for name, of in found.items():
        swap = of["variants"]["swap"]
        finding = swap["finding"]
        seen = "–" if finding["noticeable"] is None else f"{finding['noticeable']:.3f}"
        effects = _effect(swap["effect"]), _effect(swap["placebo"]), _effect(finding, _found(swap))
        lines.append([name, *effects, seen, f"{of['original']['nDCG@10']['mean']:.3f}"])
    yield _table(head, lines)
    yield "\n".join(f"- {name}: {_sentence(of['variants']['swap'])}" for name, of in found.items())


def _sentence(swap: Found) -> str:
    wording = "the male wording", "the female wording"
    return _said(swap, *wording)


def _said(variant: Found, above: str, below: str) -> str:
    """The verdict: shown, no difference shown, or cannot be told."""
    finding = variant["finding"]
    if finding["verdict"] == "cannot be told":
        return f"cannot be told, as {finding['why']}."
    if finding["verdict"] == "shown":
        return f"prefers {above if finding['mean'] > 0 else below}, {_effect(finding)} sd."
    if not finding["noticeable"]:
        return "no preference shown, as no score changes."
    return f"no preference shown; {finding['noticeable']:.3f} sd or more would have been noticed."


def _squad_parts(found: Found) -> Iterator[str]:
    moved, added = (next(iter(found.values()))[part] for part in ("moved", "added"))
    yield (
        f"Questions about six articles, with BM25's first {DEPTH} passages: "
        f"{moved['queries']} for what depends on the answer, which changes the answering passage alone, and "
        f"{added['queries']} for added text. Above 0 the ranker prefers the changed passage. nDCG@10 is that of the "
        "list as it is."
    )
    lines = [[f"`{kind}`: {what}", *(_of_kind(of, kind) for of in found.values())] for kind, what in KINDS.items()]
    lines.append(["nDCG@10", *(f"{of['moved']['original']['nDCG@10']['mean']:.3f}" for of in found.values())])
    yield _table(["variant", *found], lines)
    yield "\n".join(_by_kind(found, kind) for kind in KINDS)


def _variant(of: Found, kind: str) -> Found:
    variant: Found = of["moved" if kind in ANSWERED else "added"]["variants"][kind]
    return variant


def _of_kind(of: Found, kind: str) -> str:
    return _of(_variant(of, kind))


def _of(variant: Found) -> str:
    return _effect(variant["finding"], _found(variant))


def _by_kind(found: Found, kind: str) -> str:
    """Which rankers prefer the variant, which the passage, and which show nothing."""
    others = "no preference shown", "no score changes", "cannot be told"
    sides: dict[str, list[str]] = {side: [] for side in (*_SIDES.values(), *others)}
    for name, of in found.items():
        variant = _variant(of, kind)
        finding = variant["finding"]
        shown, seen = _found(variant), finding["noticeable"]
        side = _SIDES[finding["mean"] > 0] if shown else others[0 if seen else 1]
        side = others[2] if finding["verdict"] == others[2] else side
        more = f" ({finding['why']})" if side == others[2] else f" ({seen:.2f} sd would have been noticed)"
        sides[side].append(name if shown or side == others[1] else f"{name}{more}")
    said = [f"{side}: {', '.join(names)}" for side, names in sides.items() if names]
    placebo = "" if any(_variant(of, kind)["beyond_placebo"] for of in found.values()) else " (no placebo)"
    return f"- `{kind}`{placebo} – {'; '.join(said)}."


_SIDES = {True: "prefer it", False: "prefer the passage as it is"}


def _of_authors(found: Found) -> Iterator[str]:
    any_one = next(iter(found.values()))
    yield (
        f"{any_one['queries']} queries with their {any_one['pairs']} judged passages, written by people, and the same "
        "passages as Llama 2 rewrote them. The two also differ in length and in overlap with the query. Above 0 the "
        "ranker prefers Llama 2's:"
    )
    of_llama = {name: of["variants"]["llama2"] for name, of in found.items()}
    yield _table(["ranker", "effect"], [[name, _of(one)] for name, one in of_llama.items()])
    yield "\n".join(f"- {_author(name, one)}" for name, one in of_llama.items())


def _author(name: str, variant: Found) -> str:
    said = _said(variant, "Llama 2's text", "people's text")
    return f"{name}: {said}"


def main(arguments: list[str]) -> None:
    """Measures if DATA and MODEL are given, and makes the page."""
    if arguments:
        data, model = arguments
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(measure(Path(data), model), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
