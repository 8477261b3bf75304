"""``evenrank fuse``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import _options, _output


@_options.in_range
def command(
    runs: Annotated[list[str], typer.Argument(metavar="[NAME=]RUN…", help="Two TREC runs or more.")],
    out: Annotated[str, typer.Option(help="The run to write (-: standard output).")],
    weight: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Weight of the first run; with more runs: 0.5,0.3,0.2.")
    ] = None,
    tune: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Choose the weights by cross-validation on this measure.")
    ] = None,
    qrels: Annotated[str | None, typer.Option(help="Judgements, for --tune.")] = None,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation.")] = 5,
    restarts: Annotated[int, typer.Option(help="Random starts of the coordinate ascent (three runs or more).")] = 5,
    seed: Annotated[int, typer.Option(help="Decides the folds and the random starts.")] = 0,
    json: Annotated[
        str | None, typer.Option("--json", help="Write the chosen weights as JSON (-: standard output).")
    ] = None,
) -> None:
    """Interpolate runs: scores are scaled to 0 … 1 per query, weighted and summed."""
    from evenrank.audit.inputs import load_run, named_runs, run_name
    from evenrank.io import EvenrankError, Provenance, read_qrels, write_run, write_text

    if (weight is None) == (tune is None):
        raise EvenrankError("expected one of --weight and --tune")
    if tune is not None and qrels is None:
        raise EvenrankError("--tune needs --qrels")
    named = named_runs(runs)
    _output.check(streams=(out, json), inputs=(*named.values(), qrels))
    from evenrank.retrieval.fusion import check_weights, effectiveness_measure, interpolate
    from evenrank.retrieval.fusion import tune as tuned

    weights = _weights(weight, len(named)) if weight is not None else []
    # Before the runs are read.
    if tune is None:
        check_weights(weights, len(named))
    else:
        effectiveness_measure(tune)
    made = Provenance("evenrank fuse")
    for name, run in named.items():
        made.add(f"run {name}", run)
    made.add("qrels", qrels).ahead(bool(json))
    read = [load_run(run, name, "score") for name, run in named.items()]
    name = run_name(out) if out != _output.STANDARD else "fused"
    if tune is None:
        with _output.target(out) as path:
            write_run(interpolate(read, weights, name), path)
        return
    import json as form

    assert qrels is not None
    found = tuned(read, read_qrels(qrels), tune, folds=folds, restarts=restarts, seed=seed, name=name)
    with _output.target(out) as path, _output.target(json) as values:
        write_run(found.run, path)
        if values:
            whole = {**found.to_dict(), "provenance": made.to_dict()}
            write_text(values, form.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    alone = ", ".join(f"{name} {value:.4f}" for name, value in zip(found.names, found.alone, strict=True))
    _output.say(f"{found.measure} {found.value:.4f} over {len(found.folds)} folds ({alone} alone)", err=True)
    for name, mean, deviation in zip(found.names, found.mean, found.deviation, strict=True):
        _output.say(f"weight of {name}: mean {mean:.3f}, standard deviation {deviation:.3f} over the folds", err=True)


def _weights(text: str, runs: int) -> list[float]:
    from evenrank.io import EvenrankError

    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        raise EvenrankError(f"`weight`: expected a number, or one a run with commas, found {text}") from None
    if len(weights) == 1 and runs == 2:
        if not 0 <= weights[0] <= 1:
            raise EvenrankError(f"`weight`: expected a number from 0 to 1, found {text}")
        weights.append(1 - weights[0])
    return weights
