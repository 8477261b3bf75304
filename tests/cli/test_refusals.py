"""What commands say to bad input: one line, status 2, nothing left behind. What readers say, their own tests have.

No output is written over an input or another output, whatever their names; each command names all of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil

import numpy as np
import polars as pl
import pytest

RUN = "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2 t\nq2 Q0 d2 1 2 t\nq2 Q0 d3 2 1 t\n"
TEXTS = "d1\tShe and her\nd2\tHe said\nd3\tnothing\n"
LABELS = "doc_id,group\nd1,m\nd2,f\nd9,none\n"
WEIGHTS = "doc_id,m,f\nd1,1,0\n"
RULE = '[[rule]]\nmeasure = "RR@10"\nat_least = 0.1\n'
ANSWER = {"id": "q1", "question": "who", "answers": [{"text": "She", "answer_start": 0}]}
PARAGRAPH = {"doc_id": "d1", "context": "She and her", "qas": [ANSWER]}
AUDITED = json.dumps(
    {
        "queries": ["0", "1"],
        "runs": {"new": {"lengths": [2, 2], "measures": {"RR@10": {"values": [0.5, 0.25], "mean": 0.5}}}},
    }
)
DAMAGED = {
    "401-digits": ("0.5,", f"1{'0' * 400},"),
    "parts": ('"mean": 0.5', '"parts": 3, "mean": 0.5'),
    "number-of-queries": ('["0", "1"]', "2"),
}
"""What stands in an audit's JSON, and what in its place."""
VALIDATED = 'queries = "q.tsv"\nqrels = "qrels"\nrun = "validation.run"\n'
FILES = {
    "r.run": RUN,
    "s.run": "q1 Q0 d3 1 3 t\nq2 Q0 d1 1 2 t\n",
    "qrels": "q1 0 d1 1\nq2 0 d3 1\n",
    "c.tsv": TEXTS,
    "q.tsv": "q1\twho\nq2\twhere\n",
    "lexicon": "she,f\nher,f\nhe,m\n",
    "labels": LABELS,
    "v.txt": "she 1 0\nhe 0 1\n",
    "sets.json": '[["she", "he"]]',
    "swap.tsv": "d1\tHe and his\nd2\tShe said\nd3\tnothing\n",
    "answers.json": json.dumps({"data": [{"title": "t", "paragraphs": [PARAGRAPH]}]}),
    "a.json": AUDITED,
    "valueless.json": '{"runs": {"new": {"lengths": [2, 2], "measures": {}}}}',
    "budget.toml": RULE,
    "against.toml": f'{RULE}against = "baseline"\n',
    "people.csv": "id,gender,old,hired\n" + "".join(f"{i},{'fm'[i % 2]},no,{i % 3 % 2}\n" for i in range(40)),
    # runs
    "five.run": "q1 Q0 d1 1 3 t\nq1 Q0 d2 2 2\n",
    "x.run": "x\n",
    "latin.run": b"q1 Q0 d1 1 3 t\nq1 Q0 d\xe9 2 2 t\n",
    "ratings.csv": "user,item,rating\nq1,d1,3\n",
    "xy.run": "q1 Q0 x 1 2 t\nq2 Q0 y 1 2 t\n",
    "zz.run": "q1 Q0 zz 1 1 t\n",
    "letters.run": "".join(f"q1 Q0 {doc} {rank} {-rank} t\n" for rank, doc in enumerate("abcdefg", start=1)),
    "q1.run": "q1 Q0 d3 1 3 t\n",
    "q3.run": "3 Q0 d1 1 3 t\n",
    "card.run": RUN,
    "card.run.card.json": RUN,
    "validation.run": RUN,
    # judgements, texts, lexicons, vectors
    "q3.qrels": "q3 0 d1 1\n",
    "drawn.csv": "query_id,doc_id,grade,probability\nq1,d1,1,1\nq1,d2,0,1\n",
    "tabless.tsv": f"{TEXTS}d4 she\n",
    "later.tsv": f"{TEXTS}x\ta\nx\ta\n",
    "spaced.tsv": "d 1\ta dog\n",
    "q1.tsv": "q1\twho\n",
    "dogs.tsv": "q1\tdogs\n",
    "q-twice.tsv": "q1\twho\nq1\twhy\n",
    "two-groups.csv": "she,f\nher,f\nhe,m\nher,m\n",
    "other.txt": "she 1 2\n",
    "bad.json": "[,",
    "blank": "\n \n",
    # labels
    "sum.csv": f"{WEIGHTS}\nd2,.6,.5\n",
    "one-weight.csv": f"{WEIGHTS}d2,,1\n",
    "breaks.csv": f'{WEIGHTS}\n"x\ny",1,0\n"d1",0,1\n',
    "neutral.csv": f"{LABELS}d1,none\n",
    "three.csv": "doc_id,group\nd1,a\nd2,b\nd3,c\n",
    "wide.csv": f"doc_id,{','.join(map(str, range(1001)))}\nd1{',1' * 1001}\n",
    "collide.csv": "doc_id,x,words_x\nd1,1,0\n",
    "columns.csv": "doc_id,title,gender\nd1,x,m\nd2,y,f\n",
    "others.csv": "doc_id,group\nx,f\ny,m\n",
    "deep": f'{{"doc_id": "d1", "group": {"[" * 100_000}\n',
    "nested": f'{{"doc_id": "d1", "group": {"[" * 700}"m"{"]" * 700}}}\n{{"doc_id": "d2", "group": "f"}}\n',
    "other.target": "group,share\nm,0.5\nw,0.5\n",
    # names that outputs beside the one that is named would have
    "o.tsv.manifest.json": "d1\tShe and her\n",
    "n.jsonl.manifest.json": "q1\twho\n",
    "train.toml": f'name = "n"\nout = "."\n[ranker]\nkind = "knrm"\n[data]\ncollection = "c.tsv"\n{VALIDATED}'
    f"[validation]\n{VALIDATED}",
    **{f"{name}.json": AUDITED.replace(*change) for name, change in DAMAGED.items()},
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The files, a folder of texts, vectors in our own form, links, an index and a damaged one."""
    pytest.importorskip("safetensors")
    from evenrank import build_index
    from evenrank.search import Vectors

    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "texts").mkdir()
    (folder / "texts" / "c.tsv").write_text(TEXTS)
    nan = {"doc_id": ["d1", "d2"], "m": [1, float("nan")], "f": [0.0, 0]}
    pl.DataFrame(nan, strict=False).write_parquet(folder / "nan.parquet")
    Vectors(("she", "he"), np.eye(2, dtype=np.float32)).save(folder / "v")
    (folder / "link").symlink_to("c.tsv")
    os.link(folder / "c.tsv", folder / "hard")
    build_index(folder / "c.tsv", out=folder / "index", quiet=True)
    shutil.copytree(folder / "index", folder / "cut-index")
    (folder / "cut-index" / "scores.npy").write_bytes(b"")
    return folder


@pytest.fixture
def folder(source, monkeypatch):
    """Where the command runs, so that messages name short paths."""
    monkeypatch.chdir(source)
    return source


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SHORT = {
    "GIVEN": "--collection c.tsv --queries q.tsv --qrels qrels --lexicon lexicon --json o.json --per-query o.csv",
    "LABELLED": "audit r.run --neutral none --qrels qrels --json o.json --labels",
    "INPUTS": "audit A=r.run --background s.run --collection c.tsv --queries q.tsv --qrels qrels --lexicon lexicon",
    "GATE": "gate r.run --baseline s.run --collection c.tsv --qrels qrels",
    "PEOPLE": "audit --table people.csv --selected hired --group-column gender",
    "REBALANCE": "rebalance r.run --collection c.tsv",
    "PROBE": "probe --queries q.tsv --collection c.tsv --run r.run --quiet --variants swap=swap.tsv",
    "RERANK": "rerank r.run --collection c.tsv --queries q.tsv",
    "ASK": "rerank r.run --collection c.tsv --queries q.tsv --out o --endpoint http://localhost:9",
    "DEBIAS": "embeddings debias v.txt --definitional sets.json --equalize sets.json --specific sets.json",
    "FUSE": "fuse r.run s.run --out o",
    "SEARCH": "retrieve index q.tsv --out o",
    "TEXTS": "--collection c.tsv --queries q.tsv --qrels qrels",
}
"""What stands for several words in the lines below."""
CASES = """
# files of lines: the place, and what stands there
audit five.run GIVEN
audit r.run GIVEN --background x.run
audit latin.run GIVEN
audit . --collection c.tsv
audit r.run GIVEN --qrels irds:no-such
audit ratings.csv GIVEN
score tabless.tsv --out o
audit r.run --collection later.tsv --json o.json --per-query o.csv
audit r.run GIVEN --queries q-twice.tsv
audit r.run GIVEN --lexicon two-groups.csv
# what does not go together
audit letters.run GIVEN
audit r.run zz.run GIVEN --report o.html
audit r.run GIVEN --queries q1.tsv
audit r.run GIVEN --background q1.run
audit r.run q3.run GIVEN
audit r.run q3.run GIVEN --qrels drawn.csv
gate q3.run --baseline r.run --qrels qrels --budget budget.toml
audit r.run xy.run --qrels qrels --neutral none --labels labels
# labels: the place in a file of columns
LABELLED sum.csv
LABELLED one-weight.csv
LABELLED breaks.csv
LABELLED neutral.csv
LABELLED wide.csv
LABELLED collide.csv
LABELLED columns.csv
LABELLED labels --id-column person
LABELLED deep
LABELLED nested
LABELLED nan.parquet
# audit: options
audit
audit r.run
audit r.run s.run GIVEN --baseline best
audit r.run r.run GIVEN
audit random=r.run GIVEN
audit r.run --collection c.tsv --measures nDCG@10
audit r.run --collection c.tsv --unknown skip
LABELLED labels --missing skip
LABELLED three.csv --measures ARaB@10
LABELLED labels --measures "Share(group='x')@10"
LABELLED labels --measures AWRF@10 --target other.target
audit r.run --labels labels --neutral none --measures AWRF@10 --target relevant
PEOPLE --group-column old --tables impact
PEOPLE --qrels people.csv
PEOPLE --tables all
PEOPLE --json people.csv
# wrong calls
audit r.run --xyzzy
no\x1bthing
# numbers within a text
FUSE --weight nan
FUSE --weight 1e400,1
FUSE --qrels qrels --tune nDCG@99999999999999999999
data squad answers.json --out o --shares "nan 1 1"
# gate
gate r.run --budget none.toml
gate r.run --budget budget.toml
gate r.run --qrels qrels --budget against.toml
gate r.run --qrels qrels --budget budget.toml --baseline r=s.run
gate a.json --qrels qrels --budget budget.toml
gate a.json r.run --budget budget.toml
gate no.json --budget budget.toml
gate valueless.json --budget budget.toml
GATE
gate r.run --collection c.tsv --qrels qrels --init o.toml
GATE --budget budget.toml --junit -
GATE --budget budget.toml --run x
gate 401-digits.json --budget budget.toml
gate parts.json --budget budget.toml
gate number-of-queries.json --budget budget.toml
# rebalance
REBALANCE --strength 0.5
REBALANCE --strength 1 --out r.run
REBALANCE --strength 1 --out o --report c.tsv
REBALANCE --out o --max-bias "ARaB@10 <= 1" --validation-queries blank
REBALANCE --method best --strength 1 --out o
REBALANCE --strength 1 --out o --target nothing
# probe
PROBE --qrels q3.qrels bm25
PROBE --depth 1 bm25
probe bm25 --queries q.tsv --collection c.tsv --run r.run --variants shout
PROBE swap=c.tsv bm25
PROBE mine=hard --placebo c.tsv bm25
PROBE --placebo c.tsv --placebo swap=c.tsv bm25
PROBE --placebo mine=c.tsv bm25
PROBE
PROBE --lexicon shout bm25
PROBE --placebo hard --report hard bm25
probe bm25 --variants swap=swap.tsv --queries q.tsv --collection c.tsv
# lexicon
lexicon check nothing --collection c.tsv
lexicon check gender-en --collection c.tsv --labels others.csv
lexicon check gender-en --collection c.tsv --json c.tsv
# embeddings
embeddings debias none.txt --out o
embeddings debias v.txt --out o.npy
embeddings debias v.txt --out no/o.bin
embeddings debias v.txt --out v.txt/o
embeddings debias v.txt --out o --components 8
embeddings debias v.txt --out o --definitional bad.json
embeddings audit v.txt --after other.txt
embeddings audit v.txt --analogy a:b:c
embeddings train c.tsv --out o --min-count 99
# an endpoint's settings
ASK
ASK --api tei --key-env NO_SUCH_VARIABLE
ASK --api tei --device cpu
ASK --api tei --endpoint localhost:80
# index and retrieve
SEARCH --k1 1.2
SEARCH --stopwords german
SEARCH --rm3
retrieve cut-index q.tsv --out o
retrieve index q.tsv --out index/r.run
index c.tsv --out index
index index --out o
index c.tsv --out c.tsv
index c.tsv --out .
index c.tsv --out o --stemmer klingon
index c.tsv --out o --device cpu
retrieve c.tsv q.tsv --out o --stopwords dutsh
retrieve spaced.tsv dogs.tsv --out o --quiet
# no place to write, which is said before the work
score c.tsv --out .
retrieve absent absent --out no/o.run
rerank absent --model m --collection c --queries q --out no/o
# what cannot go to standard output, or not all of it
score c.tsv --out -
rotate c.tsv --out -
negatives r.run --qrels qrels --out -
RERANK --model m --out -
embeddings train c.tsv --out -
index c.tsv --out -
audit r.run --collection c.tsv --json - --per-query -
# over an input or another output
score c.tsv --out link
score c.tsv --out file://$PWD/c.tsv
score texts --out texts/s.parquet
score texts --out texts --engine ray
score c.tsv --out lexicon --lexicon lexicon
INPUTS --json r.run
INPUTS --json s.run
INPUTS --report qrels
INPUTS --report q.tsv
INPUTS --per-query lexicon
INPUTS --json o --report ./o
audit card.run --collection c.tsv --json card.run.card.json
audit r.run --scores texts --json texts/j
retrieve c.tsv q.tsv --out q.tsv
RERANK --model v --out r.run
RERANK --model v --out q.tsv
RERANK --model v --out v/run
fuse r.run s.run --weight 0.5 --out nope/../r.run
FUSE --tune nDCG@10 --qrels qrels --json qrels
negatives r.run --collection c.tsv --qrels qrels --queries n.jsonl.manifest.json --out n.jsonl
rotate o.tsv.manifest.json --out o.tsv
rotate c.tsv --answers answers.json --out o --answers-out o
rotate c.tsv --answers answers.json --out answers.json
passages texts --out texts
variants c.tsv --kind swap --out c.tsv
expand q.tsv --vectors v.txt --out q.tsv
expand q.tsv --vectors v.txt --out v.txt
expand q.tsv --vectors v --compare v.txt --out o --changes v.txt
embeddings debias v --out v
DEBIAS --out o.txt --json sets.json
embeddings audit v.txt --after v --json v.txt
embeddings train texts --out texts/v.bin
position answers answers.json --json answers.json
position similarity v --collection c.tsv --json c.tsv
position sensitivity v --squad answers.json --json answers.json
position sensitivity v TEXTS --answers answers.json --run r.run --report r.run
data squad answers.json --out .
demo --model v --out v
train train.toml
"""
NEURAL = ("rerank", "position s", "demo", "train")


@pytest.mark.parametrize("line", [line for line in CASES.splitlines() if line and not line.startswith("#")])
def test_refused(folder, evenrank, snapshot, line):
    words = shlex.split(line.replace("$PWD", str(folder)))
    words = [word for one in words for word in (SHORT[one].split() if one in SHORT else [one])]
    if " ".join(words).startswith(NEURAL):
        pytest.importorskip("torch", reason="needs the extra [neural]")
    before = contents(folder)
    ended = evenrank(*words)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1), ended.err
    assert ended.err.strip().replace(str(folder), "$PWD") == snapshot
    assert contents(folder) == before


def test_accepted(folder, tmp_path, evenrank):
    ended = evenrank("score", "c.tsv", "--lexicon", "lexicon", "--out", tmp_path / "s.parquet")
    assert (ended.status, ended.out, ended.err) == (0, "", f"3 documents scored: {tmp_path / 's.parquet'}\n")
    ended = evenrank("audit", "r.run", "s.run", "--scores", tmp_path / "s.parquet", "--qrels", "qrels")
    assert (ended.status, ended.err) == (0, "")
    assert "nDCG@10" in ended.out
    labelled = ("audit", "r.run", "s.run", "--baseline", "r", "--qrels", "qrels", "--neutral", "none", "--labels")
    ended = evenrank(*labelled, "labels")
    assert (ended.status, ended.err) == (0, "")
    assert "\nDocuments without a label: 25% of r, 50% of s in the first 10 ranks; only" in ended.out
    (tmp_path / "people").write_text(LABELS.replace("doc_id", "person"))
    assert evenrank(*labelled, tmp_path / "people", "--id-column", "person").out == ended.out
    assert evenrank("gate", "a.json", "--budget", "budget.toml").status == 3
    assert all(AUDITED.count(old) == 1 for old, _ in DAMAGED.values())
