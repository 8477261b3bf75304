"""``evenrank fuse``: interpolation of runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from evenrank import options as opt
from evenrank._command import arg

from . import _output
from ._signatures import From, Values

EXAMPLES = r"""
# BM25 has 30% of the weight, the re-ranker the rest.
evenrank fuse bm25.run bert.run --weight 0.3 --out fused.run
# The weights that are best by cross-validation.
evenrank fuse bm25.run bert.run --tune nDCG@10 --qrels qrels.txt \
    --out fused.run --json weights.json
# Three runs.
evenrank fuse bm25.run dense.run bert.run --weight 0.5,0.3,0.2 --out fused.run
"""


def command(
    runs: Annotated[list[str], opt.Option("Two or more TREC runs.", metavar="[NAME=]RUN…", typed=list)],
    *,
    out: Annotated[str, opt.Option("The run to write (-: standard output).", panel="Output")],
    weights: Annotated[
        str | None,
        opt.Option(
            "Weight of the first run; with more runs: 0.5,0.3,0.2.",
            flag="--weight",
            metavar="NUMBER",
            excludes=("measure",),
            unless=("measure",),
        ),
    ] = None,
    measure: Annotated[
        str | None,
        opt.Option(
            "Choose the weights by cross-validation on this measure.",
            flag="--tune",
            metavar="MEASURE",
            needs=("qrels",),
        ),
    ] = None,
    qrels: Annotated[str | None, opt.Option("Relevance judgements, for --tune.", metavar="FILE", panel="Input")] = None,
    given: Annotated[Values, From("search.fusion", "tune")],
    json: Annotated[
        str | None,
        opt.Option("Write the chosen weights as JSON (-: standard output).", needs=("measure",), panel="Output"),
    ] = None,
) -> None:
    """Interpolate runs, with given or cross-validated weights. Scores are scaled to 0 … 1 per query, weighted and
    summed.
    """
    import evenrank
    from evenrank.files import Provenance
    from evenrank.files.provenance import card_path, write_card

    named = evenrank.named_runs(runs)
    card = None if out == _output.STANDARD else card_path(out)
    _output.check(streams=(out, json, card), inputs=(*named.values(), qrels))
    provenance = Provenance("evenrank fuse")
    for run_name, source in named.items():
        provenance.add(f"run {run_name}", source)
    provenance.add("qrels", qrels)
    name = evenrank.run_name(out) if out != _output.STANDARD else "fused"
    if weights is not None:
        numbers = _weights(weights, len(named))
        run = evenrank.interpolate(named, weights=numbers, name=name)
        with _output.target(out) as path:
            evenrank.write_run(run, path)
        if card is not None:
            write_card({"stage": "fuse", "weights": dict(zip(named, numbers, strict=True))}, out, provenance)
        return
    assert measure is not None
    provenance.ahead(bool(json) or card is not None)
    tuned = evenrank.tune(named, qrels=qrels, measure=measure, **given, name=name)
    with _output.target(out) as path, _output.target(json) as values:
        evenrank.write_run(tuned.run, path)
        if values:
            replace(tuned, provenance=provenance).to_json(values)
    if card is not None:
        numbers = list(map(float, tuned.mean))
        made = {"stage": "fuse", "weights": dict(zip(named, numbers, strict=True)), "tuned": str(tuned.measure)}
        write_card(made, out, provenance)
    alone = ", ".join(f"{name} {value:.4f}" for name, value in zip(tuned.names, tuned.alone, strict=True))
    _output.say(f"{tuned.measure} {tuned.value:.4f} over {len(tuned.folds)} folds ({alone} alone)", err=True)
    for name, mean, deviation in zip(tuned.names, tuned.mean, tuned.deviation, strict=True):
        _output.say(f"weight of {name}: mean {mean:.3f}, standard deviation {deviation:.3f} over the folds", err=True)


def _weights(text: str, runs: int) -> list[float]:
    from evenrank import EvenrankError

    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        raise EvenrankError(
            f"{arg.weights}: expected a number, or one per run separated by commas, found {text}"
        ) from None
    if len(weights) == 1 and runs == 2:
        if not 0 <= weights[0] <= 1:
            raise EvenrankError(f"{arg.weights}: expected a number from 0 to 1, found {text}")
        weights.append(1 - weights[0])
    return weights
