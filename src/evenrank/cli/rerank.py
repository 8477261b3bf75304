"""``evenrank rerank``: re-rank a run with a neural model."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from . import _options, _output

Model = Annotated[
    str, typer.Option("--model", help="A trained ranker's folder, or any model that sentence-transformers loads.")
]
Out = Annotated[str, typer.Option("--out", help="The run to write. After an interruption, the same command resumes.")]
Depth = Annotated[int, typer.Option("--depth", help="Documents per query to re-rank; the others are left out.")]
Backend = Annotated[
    Literal["torch", "onnx", "openvino"],
    typer.Option("--backend", help="Back end for encoders; onnx and openvino: on the CPU, exported once."),
]
Int8 = Annotated[
    bool, typer.Option("--int8", help="8-bit weights; openvino stays closer to the exact scores than onnx.")
]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    typer.Option("--precision", help="auto: bfloat16 with torch on a GPU that supports it, else float32."),
]
Tag = Annotated[
    str | None, typer.Option("--tag", help="Name in the run's last column (default: that of the model's folder).")
]
Blind = Annotated[
    str | None,
    typer.Option("--blind", metavar="LEXICON", help="Mask a lexicon's words in queries and passages."),
]


@_options.in_range
def command(  # parameters: the options
    run: Annotated[str, typer.Argument(metavar="RUN", help="The TREC run to re-rank.")],
    model: Model,
    collection: _options.Collection,
    queries: _options.Queries,
    out: Out,
    depth: Depth = 1000,
    batch_size: _options.BatchSize = 32,
    kind: _options.Kind = None,
    backend: Backend = "torch",
    int8: Int8 = False,
    precision: Precision = "auto",
    device: _options.Device = None,
    tag: Tag = None,
    blind: Blind = None,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    gpus: _options.Gpus = 0,
    quiet: _options.Quiet = False,
) -> None:
    """Re-rank a run with a trained ranker, a cross-encoder or a bi-encoder."""
    import evenrank
    from evenrank.engines.ray import Cluster, parse_workers
    from evenrank.io import check_apart

    if engine == "local" and (workers is not None or gpus):
        raise evenrank.EvenrankError("`workers` and `gpus` need `engine='ray'`")
    cluster = Cluster(parse_workers(workers), cpus, gpus)
    _output.refuse_standard(out)
    # The library sees the words of a lexicon, not its file.
    check_apart([out], [blind])
    transform = None
    if blind is not None:
        transform = partial(evenrank.mask_texts, scoring=evenrank.Scoring(evenrank.load_lexicon(blind)))
    result = evenrank.rerank(
        run,
        model,
        collection,
        queries,
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
        engine=engine,
        cluster=cluster,
        quiet=quiet,
    )
    for note in result.notes:
        _output.say(note, err=True)
