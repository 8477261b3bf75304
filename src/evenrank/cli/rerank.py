"""``evenrank rerank``: re-rank a run with a neural model."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from . import _models, _options, _output

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A trained ranker's folder, or a model that sentence-transformers loads; with --endpoint: its name there.",
    ),
]
Out = Annotated[str, typer.Option("--out", help="The run to write. After an interruption, the same command resumes.")]
Depth = Annotated[int, typer.Option("--depth", help="Documents per query to re-rank; the others are left out.")]
Backend = Annotated[
    Literal["torch", "onnx", "openvino"],
    typer.Option("--backend", help="Back end for encoders; onnx and openvino: on the CPU."),
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
Listwise = Annotated[
    bool,
    typer.Option(
        "--listwise",
        help="Scores depend on the other passages: also score five shuffles of each list (OUT.order-1 … OUT.order-5).",
    ),
]
ResolveTies = Annotated[
    bool, typer.Option("--resolve-ties", help="Score different texts with equal scores again in float32.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the shuffles of --listwise.")]


@_options.in_range
def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The TREC run to re-rank.")],
    collection: _options.Collection,
    queries: _options.Queries,
    out: Out,
    model: Model = None,
    depth: Depth = 1000,
    batch_size: _options.BatchSize = 32,
    kind: _options.Kind = None,
    query_prompt: _options.QueryPrompt = None,
    document_prompt: _options.DocumentPrompt = None,
    backend: Backend = "torch",
    precision: Precision = "auto",
    device: _options.Device = None,
    tag: Tag = None,
    blind: Blind = None,
    listwise: Listwise = False,
    resolve_ties: ResolveTies = False,
    seed: Seed = 0,
    endpoint: _models.Endpoint = None,
    api: _models.Api = None,
    key_env: _models.KeyEnv = None,
    concurrency: _models.Concurrency = None,
    timeout: _models.Timeout = None,
    answers: _models.Answers = None,
    engine: _options.Engine = "local",
    workers: _options.Workers = None,
    cpus: _options.Cpus = 1,
    gpus: _options.Gpus = 0,
    quiet: _options.Quiet = False,
) -> None:
    """Re-rank a run with any ranker: a trained one, a model of sentence-transformers, or an endpoint."""
    import evenrank
    from evenrank.io import check_apart
    from evenrank.io.wording import counted

    cluster = _options.cluster(engine, workers, cpus, gpus)
    chosen = _models.chosen(
        model, endpoint, api=api, key_env=key_env, concurrency=concurrency, timeout=timeout, answers=answers
    )
    if chosen is None:
        raise evenrank.EvenrankError("expected `model`, or `endpoint`")
    _output.refuse_standard(out)
    # The library sees the words of a lexicon, not its file.
    check_apart([out, f"{out}.card.json"], [blind])
    transform = None
    if blind is not None:
        transform = partial(evenrank.mask_texts, scoring=evenrank.Scoring(evenrank.load_lexicon(blind)))
    result = evenrank.rerank(
        run,
        chosen,
        collection,
        queries,
        depth,
        batch_size=batch_size,
        kind=kind,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        backend=backend,
        precision=precision,
        device=device,
        tag=tag,
        transform=transform,
        listwise=listwise,
        resolve_ties=resolve_ties,
        seed=seed,
        out=out,
        engine=engine,
        cluster=cluster,
        quiet=quiet,
    )
    for note in result.notes:
        _output.say(note, err=True)
    _output.say(f"{counted(result.queries.len(), 'query')} re-ranked: {out}", err=True)
