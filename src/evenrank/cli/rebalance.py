"""``evenrank rebalance``: a fairer order of a run, without training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import _options, _output, _words

if TYPE_CHECKING:
    from evenrank.decisions.frontier import Frontier
    from evenrank.decisions.rebalance import Rebalanced

Out = Annotated[str | None, typer.Option("--out", help="The run to write (-: standard output).")]
Method = Annotated[
    Literal["neutral", "fair", "detconstsort", "shift"],
    typer.Option(
        "--method",
        parser=_options.text,
        help="neutral, fair (FA*IR), detconstsort or shift.",
    ),
]
Depth = Annotated[
    int, typer.Option("--depth", help="How many documents of each query are put into a new order: the pool.")
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        help="fair, detconstsort: how many first ranks have the promise, chosen from the first --depth (default: all of"
        " these).",
    ),
]
Strength = Annotated[
    float | None, typer.Option("--strength", help="From 0, the run as it is, to 1, as far as the method goes.")
]
Meet = Annotated[
    list[str] | None,
    typer.Option("--meet", metavar="BOUND", help='The least strength that meets it: "ARaB@10 <= 0.02"; repeatable.'),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="BOUND",
        help='The least biased strength that keeps it: "nDCG@10 >= 98%"; with --meet, the least with both; repeatable.',
    ),
]
Qrels = Annotated[
    str | None, typer.Option("--qrels", help="TREC qrels or irds:NAME; without, effectiveness is unknown.")
]
OnlyQueries = Annotated[bool, typer.Option("--only-queries", help="Only the queries in --queries.")]
TuneQueries = Annotated[
    str | None,
    typer.Option(
        "--tune-queries",
        metavar="FILE",
        help="Ids of the queries to choose on, or queries; figures are of the others (default: a half, by --seed).",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="The groups' shares in a fair list: uniform, candidates, or a file of group,share or query_id,group,share"
        " (default: those of the lexicon, equal ones of labels).",
    ),
]
Missing = Annotated[
    Literal["error", "skip", "neutral"] | None,
    typer.Option(
        "--missing",
        parser=_options.text,
        help="What to do with documents without text or label: error, skip (they keep their rank) or neutral (default:"
        " error; of labels skip).",
    ),
]
Protected = Annotated[
    str | None,
    typer.Option(
        "--protected",
        metavar="GROUP",
        help="fair: the group that needs a minimum (default: the one furthest below its target).",
    ),
]
Alpha = Annotated[float | None, typer.Option("--alpha", help="fair: the significance (default: 0.1).")]
Per = Annotated[
    Literal["group", "magnitude"] | None,
    typer.Option("--per", parser=_options.text, help="shift: what has an offset (default: group)."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the division of queries and of intervals.")]
FrontierPage = Annotated[
    str | None,
    typer.Option("--frontier", metavar="F.html", help="Also every method at every strength, on one HTML page."),
]
Beside = Annotated[
    list[str] | None,
    typer.Option("--beside", metavar="NAME=RUN", help="A run to draw on that page too, as blind=RUN; repeatable."),
]
Utility = Annotated[
    str | None,
    typer.Option("--utility", metavar="MEASURE", help="Of the frontier: of effectiveness (default: nDCG@10)."),
]
Bias = Annotated[
    str | None,
    typer.Option("--bias", metavar="MEASURE", help="Of the frontier: of bias (default: ARaB@10, else NFaiRR@10)."),
]


@_options.in_range
def command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A TREC run.")],
    out: Out = None,
    method: Method = "neutral",
    strength: Strength = None,
    meet: Meet = None,
    keep: Keep = None,
    depth: Depth = 100,
    top: Top = None,
    collection: _options.MaybeCollection = None,
    scores: _options.GroupTable = None,
    labels: _options.Labels = None,
    neutral: _options.Neutral = None,
    group_column: _options.GroupColumn = None,
    lexicon: _options.OwnLexicon = None,
    poles: _options.Poles = None,
    tokens: _options.OwnTokens = None,
    threshold: _options.OwnThreshold = None,
    target: Target = None,
    missing: Missing = None,
    qrels: Qrels = None,
    queries: _options.MaybeQueries = None,
    only_queries: OnlyQueries = False,
    tune_queries: TuneQueries = None,
    protected: Protected = None,
    alpha: Alpha = None,
    per: Per = None,
    seed: Seed = 0,
    frontier: FrontierPage = None,
    beside: Beside = None,
    utility: Utility = None,
    bias: Bias = None,
    json: _options.Json = None,
) -> None:
    """Put the first documents of a run into a fairer order, without training."""
    import evenrank
    from evenrank import EvenrankError, run_name
    from evenrank.decisions.rebalance import UnmetError, note_inputs, only_ids, request_of, write_rebalanced
    from evenrank.decisions.rebalance_lists import GroupSource, MethodOptions
    from evenrank.io import Provenance
    from evenrank.io.run_cards import card_path, files_beside

    if out is None and frontier is None:
        raise EvenrankError("expected `out`, `frontier` or both")
    if frontier is None and (utility is not None or bias is not None):
        raise EvenrankError(f"`{'bias' if utility is None else 'utility'}` is of `frontier`: it needs one")
    source = GroupSource(
        collection, scores, labels, neutral, group_column, lexicon, poles, tokens, threshold, target, missing
    )
    others = _beside(beside or [], frontier)
    card = None if out in (None, _output.STANDARD) else card_path(out)
    read = (run, collection, scores, labels, target, qrels, queries, tune_queries, lexicon, *others.values())
    _output.check(frontier, card, streams=(out, json), inputs=(*read, *files_beside(run, *others.values())))
    _output.will_write(json, frontier, card)
    provenance = Provenance("evenrank rebalance")
    note_inputs(provenance, run, source, qrels, tune_queries, queries)
    for name, path in others.items():
        provenance.add(f"run {name}", path)
    options = MethodOptions(method, protected, alpha, per, top)
    options.check()
    request = None
    if out is not None:
        only = only_ids(queries, only_queries=only_queries)
        judged = qrels is not None
        request = request_of(options, source, strength, meet, keep, depth, tune_queries, seed, judged, only)
    elif strength is not None or meet or keep:
        raise EvenrankError("`strength`, `meet` and `keep` are of the run to write: they need `out`")
    drawn = None
    if frontier is not None:
        drawn = evenrank.frontier(
            run,
            qrels=qrels,
            beside=others,
            utility=utility or "nDCG@10",
            bias=bias,
            depth=depth,
            collection=collection,
            scores=scores,
            labels=labels,
            neutral=neutral,
            group_column=group_column,
            lexicon=lexicon,
            poles=poles,
            tokens=tokens,
            threshold=threshold,
            target=target,
            missing=missing,
            queries=queries,
            only_queries=only_queries,
            tune_queries=tune_queries,
            protected=protected,
            alpha=alpha,
            per=per,
            top=top,
            seed=seed,
            provenance=provenance,
        )
    report = None
    if request is not None and out is not None:
        provenance.ahead()
        named = run_name(out) if out != _output.STANDARD else "rebalanced"
        try:
            with _output.target(out) as path:
                report = write_rebalanced(
                    request, run, path, qrels=qrels, name=named, provenance=provenance, card=card is not None
                )
        except UnmetError as error:
            _output.say(f"evenrank: {_words.said(str(error))}", err=True)
            raise typer.Exit(1) from None
    _emit(report, drawn, json, frontier, quiet=out == _output.STANDARD)


def _emit(
    report: Rebalanced | None, drawn: Frontier | None, json: str | None, page: str | None, *, quiet: bool
) -> None:
    """Writes the files that were asked for, then prints the tables; ``quiet``: the run is on standard output."""
    from evenrank.io import write_text
    from evenrank.io.json_values import json_text
    from evenrank.results.result import envelope

    found = [one for one in (report, drawn) if one is not None]
    beside = {} if report is None or drawn is None else {"frontier": drawn.to_dict()}
    with _output.target(json) as path:
        if path:
            write_text(path, json_text(envelope(found[0].to_dict() | beside, found[0].provenance)) + "\n")
        if drawn is not None and page is not None:
            drawn.report(page)
    if json != _output.STANDARD:
        # With the run on standard output, the rest goes where it is not in the way.
        _output.say("\n\n".join(_words.said(one.table()) for one in found), err=quiet)
    if page is not None:
        _output.say(f"frontier: {page}", err=True)


def _beside(given: list[str], frontier: str | None) -> dict[str, str]:
    """The runs of ``--beside`` by name. Raises EvenrankError for one without a name, and for two of one name."""
    from evenrank import EvenrankError
    from evenrank.io.errors import quoted

    if given and frontier is None:
        raise EvenrankError("`beside` is drawn on the page of `frontier`: it needs one")
    found: dict[str, str] = {}
    for argument in given:
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise EvenrankError(f"`beside`: expected NAME=RUN, found {quoted(argument)}")
        if name in found:
            raise EvenrankError(f"`beside`: two runs are named {quoted(name)}")
        found[name] = path
    return found
