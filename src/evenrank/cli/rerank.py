"""``evenrank rerank``."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from . import _options, _output


@_options.in_range
def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The TREC run to re-rank.")],
    model: Annotated[str, typer.Option(help="A trained ranker's folder, or a model that sentence-transformers loads.")],
    collection: _options.Collection,
    queries: _options.Queries,
    out: Annotated[str, typer.Option(help="The run to write. The same command goes on after an interruption.")],
    depth: Annotated[int, typer.Option(help="Documents of each query to re-rank; the others are left out.")] = 1000,
    batch_size: Annotated[int, typer.Option(help="Texts scored at once.")] = 32,
    kind: Annotated[
        Literal["cross", "bi"] | None, typer.Option(help="cross or bi, where the model's files do not say it.")
    ] = None,
    backend: Annotated[
        Literal["torch", "onnx", "openvino"],
        typer.Option(help="What computes an encoder; onnx and openvino on the CPU, exported once beside the model."),
    ] = "torch",
    int8: Annotated[
        bool,
        typer.Option("--int8", help="Weights in eight bits; with openvino closer to the exact scores than with onnx."),
    ] = False,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        typer.Option(help="auto: bfloat16 with torch on a GPU that computes in it, else float32."),
    ] = "auto",
    device: _options.Device = None,
    tag: Annotated[
        str | None, typer.Option(help="The name in the run's last column (default: that of the model's folder).")
    ] = None,
    blind: Annotated[
        str | None,
        typer.Option(metavar="LEXICON", help="Mask a lexicon's words in queries and passages: gender-en, or a file."),
    ] = None,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    gpus: _options.Gpus = 0,
    quiet: _options.Quiet = False,
) -> None:
    """Re-rank a run with a trained ranker, a cross-encoder or a bi-encoder."""
    from evenrank.io import EvenrankError, read_queries, read_run
    from evenrank.io.ray_engine import Cluster, parse_workers
    from evenrank.rankers.rerank import rerank

    if engine == "local" and (workers is not None or gpus):
        raise EvenrankError("--workers and --gpus need --engine ray")
    cluster = Cluster(parse_workers(workers), cpus, gpus)
    _output.check(out, inputs=(run, model, collection, queries, blind))
    transform = None
    if blind is not None:
        from evenrank.groups import Scoring, load_lexicon
        from evenrank.mitigation.blind import mask_texts

        transform = partial(mask_texts, scoring=Scoring(load_lexicon(blind)))
    result = rerank(
        read_run(run),
        model,
        collection,
        read_queries(queries),
        depth,
        batch_size=batch_size,
        kind=kind,
        backend=backend,
        int8=int8,
        precision=precision,
        device=device,
        tag=tag,
        transform=transform,
        out=out,
        engine=engine,  # type: ignore[arg-type]
        cluster=cluster,
        quiet=quiet,
    )
    for note in result.notes:
        _output.say(note, err=True)
