"""The page "Built-in lexicons": what each has, and how often it is right where that can be measured.

python docs/lexicons.py FOLDER measures on the public data in FOLDER (``grepbiasir``, ``xquad``, ``squad2``) into
``docs/lexicons/measured.json``; without FOLDER, only what the lexicons have is counted anew there. The page
``docs/lexicons.md`` is made of what is kept there.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenrank.files.json_values import json_values
from evenrank.files.wording import listed

KEPT = Path(__file__).parent / "lexicons" / "measured.json"
TRIED = Path(__file__).parent / "lexicons" / "tried.toml"
PAGE = Path(__file__).parent / "lexicons.md"
LABELLED = ("gender-en",)
PARALLEL = {"gender-de": "de", "gender-es": "es"}
HALVES = ("first", "second")
SIGNS = {1: "m", -1: "f", 0: "neither"}
UNSAID = ("tied", "no word")
SHOWN = 10
INTRODUCTION = """# Built-in lexicons

`evenrank lexicon list` prints what is built in, and `evenrank lexicon check` measures how a lexicon fits your own
collection ([how](extend/lexicon.md#check-it)). All words were chosen by hand for evenrank; each file says by what rule.
A lexicon matches words, not people: see [Limits](limits.md). The figures below are of the lexicons as they are."""
Found = Mapping[str, Any]


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(data: Path) -> dict[str, Any]:
    """All figures of the page, from the public data."""
    import evenrank

    return {
        "evenrank": evenrank.__version__,
        "lexicons": described(),
        "grepbiasir": _against_labels(data / "grepbiasir"),
        "xquad": {name: {half: parallel(data / "xquad", name, half) for half in HALVES} for name in PARALLEL},
        "tried": {name: _tried(data / "xquad", name) for name in PARALLEL},
        "coverage": _coverages(data / "squad2" / "answered.json"),
    }


def described() -> dict[str, Any]:
    """What each built-in lexicon has."""
    from evenrank.groups import builtin_lexicons

    return {name: _described(name) for name in builtin_lexicons()}


def _described(name: str) -> dict[str, Any]:
    import evenrank

    lexicon = evenrank.load_lexicon(name)
    counts = Counter(group for _, group in lexicon.words)
    return {
        "language": lexicon.language,
        "words": {group: counts[group] for group in lexicon.groups},
        "poles": lexicon.poles,
        "misses": lexicon.misses,
    }


def _against_labels(folder: Path) -> dict[str, Any]:
    """``gender-en`` against the labels of Grep-BiasIR; the documents labelled with both genders are left out."""
    import polars as pl

    import evenrank
    from evenrank.stats.ratios import proportion

    rows = pl.read_csv(folder / "documents.csv", infer_schema=False).unique("doc_id", maintain_order=True)
    known = rows.filter(pl.col("content_gender").is_in(["F", "M", "N"]))
    weights = [(known["content_gender"] == label).cast(pl.Float64).alias(f"count_{label}") for label in "FM"]
    table = pl.DataFrame([known["doc_id"], *weights]).with_columns(neutrality=pl.lit(1.0))
    labels = evenrank.GroupTable.of(table, {"labels": "documents.csv", "threshold": 0})
    found = evenrank.check_lexicon("gender-en", collection=folder / "collection.tsv", labels=labels)
    assert found.agreement is not None
    pairs = _labels_and_words(folder / "collection.tsv", table)
    right = sum(label == said or (label == "neutral" and said in UNSAID) for label, said in pairs)
    rows, columns = ["f", "m", "neutral"], ["f", "m", *UNSAID]
    return {
        "coverage": found.coverage.to_dict(),
        **json_values(found.agreement),
        "correct": {"value": right / len(pairs), "n": len(pairs), "ci95": proportion(right, len(pairs))},
        "confusion": {
            "labels": rows,
            "words": columns,
            "documents": [[pairs.count((label, said)) for said in columns] for label in rows],
        },
    }


def _labels_and_words(collection: Path, labels: Any) -> list[tuple[str, str]]:
    """What the label and what the words say of each labelled document; ``labels``: ``count_F`` and ``count_M``."""
    import evenrank

    scores = evenrank.groups.score_in_memory(collection, evenrank.Scoring(evenrank.load_lexicon("gender-en"))).table
    pairs = []
    counts = labels.join(scores, on="doc_id").select("count_F", "count_M", "count_f", "count_m")
    for female, male, f, m in counts.rows():
        label = "f" if female else "m" if male else "neutral"
        pairs.append((label, "f" if f > m else "m" if m > f else UNSAID[0] if f else UNSAID[1]))
    return pairs


def _passages(path: Path) -> list[tuple[str, str, str]]:
    """Article, id and text of the passages of a file in SQuAD's format."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [
        (one["title"], f"{one['title']}/{number}", paragraph["context"])
        for one in articles
        for number, paragraph in enumerate(one["paragraphs"], 1)
    ]


def parallel(folder: Path, name: str, half: str, lexicon: Any = None) -> dict[str, Any]:
    """The agreement of a lexicon (``name``, or as changed: ``lexicon``) with ``gender-en`` on half of the articles."""
    import numpy as np

    import evenrank

    english = _of_half(_passages(folder / "xquad.en.json"), half)
    other = _of_half(_passages(folder / f"xquad.{PARALLEL[name]}.json"), half)
    assert [one[1] for one in english] == [one[1] for one in other]
    first = _counts(evenrank.load_lexicon("gender-en"), english)
    second = _counts(lexicon or evenrank.load_lexicon(name), other)
    pairs = [(_sign(a), _sign(b)) for a, b in zip(first, second, strict=True)]
    same = np.array([float(a == b) for a, b in pairs])
    titles = list(dict.fromkeys(one[0] for one in english))
    clusters = np.array([titles.index(one[0]) for one in english])
    either = [a == b for a, b in pairs if a or b]
    wrong = [place for place, (a, b) in enumerate(pairs) if a != b]
    wrong.sort(key=lambda place: (-abs(_tf(first[place]) - _tf(second[place])), place))
    return {
        "articles": len(titles),
        "passages": len(pairs),
        "agree": int(same.sum()),
        "ci95": _bootstrap_interval(same, clusters),
        "either": [sum(either), len(either)],
        "opposite": sum(a * b < 0 for a, b in pairs),
        "confusion": [[sum(pair == (a, b) for pair in pairs) for b in SIGNS] for a in SIGNS],
        "disagreements": [
            {"passage": english[place][1], "en": _written(first[place]), "other": _written(second[place])}
            for place in wrong[:SHOWN]
        ],
    }


def _bootstrap_interval(values: Any, clusters: Any) -> list[float]:
    """The 95% percentile interval of the mean of values [N] over 2,000 draws of whole clusters (numbers [N] from 0)."""
    import numpy as np

    number = int(clusters.max()) + 1
    picks = np.random.default_rng(0).integers(0, number, (2000, number))
    weights = np.stack([np.bincount(one, minlength=number) for one in picks])[:, clusters].astype(np.float64)
    return np.percentile(weights @ values / weights.sum(axis=1), [2.5, 97.5]).tolist()


def _of_half(passages: list[tuple[str, str, str]], half: str) -> list[tuple[str, str, str]]:
    titles = list(dict.fromkeys(one[0] for one in passages))
    middle = len(titles) // 2
    kept = set(titles[:middle] if half == "first" else titles[middle:])
    return [one for one in passages if one[0] in kept]


def _counts(lexicon: Any, passages: list[tuple[str, str, str]]) -> list[Counter[tuple[str, str]]]:
    """How often each word of each group is in each passage."""
    from evenrank.groups import gendered_spans

    return [
        Counter((group, text[start:end].casefold()) for start, end, group in gendered_spans(text, lexicon))
        for _, _, text in passages
    ]


def _tf(words: Counter[tuple[str, str]]) -> float:
    """The signed magnitude ``tf``, m minus f."""
    import math

    totals = {group: sum(count for (of, _), count in words.items() if of == group) for group in "mf"}
    return math.log1p(totals["m"]) - math.log1p(totals["f"])


def _sign(words: Counter[tuple[str, str]]) -> int:
    value = _tf(words)
    return (value > 1e-9) - (value < -1e-9)


def _written(words: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    return {
        group: {word: count for (of, word), count in words.most_common() if of == group}
        for group in "fm"
        if any(of == group for of, _ in words)
    }


def _tried(folder: Path, name: str) -> list[dict[str, Any]]:
    """The lexicon with other words, on the first half."""
    import evenrank

    lexicon = evenrank.load_lexicon(name)
    made = []
    for trial in tomllib.loads(TRIED.read_text(encoding="utf-8"))[name]:
        kept = [pair for pair in lexicon.words if pair[0] not in trial.get("without", ())]
        added = [(word, group) for group in "fm" for word in trial.get(group, ())]
        found = parallel(folder, name, "first", replace(lexicon, words=(*kept, *added)))
        made.append({"what": trial["what"], **{key: found[key] for key in ("passages", "agree", "ci95", "either")}})
    return made


def _coverages(squad: Path) -> dict[str, Any]:
    import evenrank

    texts = {
        "the built-in collection": evenrank.generate(evenrank.SyntheticConfig()).collection,
        "SQuAD 2.0, 16 articles": {name: text for _, name, text in _passages(squad)},
    }
    return {
        name: {
            where: evenrank.check_lexicon(name, collection=given).coverage.to_dict() for where, given in texts.items()
        }
        for name in sorted(evenrank.groups.builtin_lexicons(), key=lambda name: name not in LABELLED)
        if evenrank.load_lexicon(name).language == "en"
    }


# --- the page ---------------------------------------------------------------------------------------------------------


def page(found: Found) -> str:
    """The page of the kept figures."""
    parts = [
        INTRODUCTION,
        _listed(found["lexicons"]),
        *_labelled(found["grepbiasir"]),
        *_parallel(found),
        *_unmeasured(found["lexicons"], found["coverage"]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(headings: list[str], rows: list[list[str]], left: int = 1) -> str:
    rule = ["---" if place < left else "---:" for place in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def _listed(lexicons: Found) -> str:
    rows = [
        [
            *(f"`{name}`", one["language"], ", ".join(f"{count} {group}" for group, count in one["words"].items())),
            *(", ".join(one["poles"]) if one["poles"] else "none", one["misses"]),
        ]
        for name, one in lexicons.items()
    ]
    return _table(["name", "language", "words", "poles", "cannot see"], rows, left=5)


def _labelled(found: Found) -> Iterator[str]:
    yield "## gender-en against labels"
    yield (
        "Grep-BiasIR (Krieg et al. 2022) has short texts in a female, a male and a neutral wording,"
        f" {found['documents']} documents in all. A document counts for the group that has most of its words."
        " The labels were made by rewording, so other texts are harder."
    )
    rows = [[name, *_share(one["precision"]), *_share(one["recall"])] for name, one in sorted(found["groups"].items())]
    headings = ["group", "precision", "95% interval", "n", "recall", "95% interval", "n"]
    yield _table(headings, rows)
    correct = _share(found["correct"])
    yield f"Words and labels agree on {correct[0]} {correct[1]} of the documents:"
    confusion = found["confusion"]
    rows = [
        [row, *map(str, counts)]
        for row, counts in zip(confusion["labels"], confusion["documents"], strict=True)
        if any(counts)
    ]
    yield _table(["label", *(f"words: {column}" for column in confusion["words"])], rows)


def _share(one: Found) -> list[str]:
    return [f"{one['value']:.3f}", _interval(one["ci95"]), str(one["n"])]


def _interval(ends: list[float]) -> str:
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def _parallel(found: Found) -> Iterator[str]:
    yield "## gender-de and gender-es against gender-en"
    yield (
        "XQuAD has the same 240 passages of Wikipedia in English, German and Spanish. Two lexicons agree on a passage"
        " if both find more male words, more female words, or neither (intervals: bootstrap over articles). The word"
        " lists were written with the first half of the articles; the second half was measured once, at the end."
    )
    rows = [
        [
            *(f"`{name}`", half, str(one["passages"]), f"{one['agree'] / one['passages']:.3f}", _interval(one["ci95"])),
            *(f"{one['either'][0]} of {one['either'][1]}", str(one["opposite"])),
        ]
        for name, halves in found["xquad"].items()
        for half, one in halves.items()
    ]
    headings = ["lexicon", "half", "passages", "agreement", "95% interval", "among passages with a group", "opposite"]
    yield _table(headings, rows, left=2)
    yield (
        "The lexicons agree mostly on passages without any group word. Where there is one, German and Spanish find"
        " fewer than English: they have no counterpart of `his` and `her` that shows the owner's gender, Spanish leaves"
        " out the subject, and German `er` is also used of things. Masculine occupations do not count, because they are"
        " used of everyone."
    )
    for name, halves in found["xquad"].items():
        yield f"### {name}"
        yield _found(halves)
        yield _confusions(halves)
        yield "Words that were tried on the first half and left out:"
        yield _table(
            ["words", "agreement", "95% interval", "among passages with a group"],
            [_trial("as it is", halves["first"]), *(_trial(one["what"], one) for one in found["tried"][name])],
        )
        count = min(SHOWN, sum(halves["second"]["confusion"][a][b] for a in range(3) for b in range(3) if a != b))
        yield f"The {count} passages of the second half with the largest differences:"
        rows = [
            [_cell(one["passage"]), _words(one["en"]), _words(one["other"])]
            for one in halves["second"]["disagreements"]
        ]
        yield _table(["passage", "gender-en", name], rows, left=3)


def _found(halves: Found) -> str:
    """What is found of the passages that gender-en calls m, f or neither, both halves together."""
    both = [[sum(one["confusion"][a][b] for one in halves.values()) for b in range(3)] for a in range(3)]
    male, female, neither = both
    return (
        f"It finds {male[0]} of the {sum(male)} passages that gender-en calls m, and {female[1]} of the {sum(female)}"
        f" that it calls f. Of those that gender-en calls neither, it calls {neither[0]} m and {neither[1]} f."
    )


def _trial(what: str, one: Found) -> list[str]:
    agreement = one["agree"] / one["passages"]
    return [what, f"{agreement:.3f}", _interval(one["ci95"]), f"{one['either'][0]} of {one['either'][1]}"]


def _confusions(halves: Found) -> str:
    names = list(SIGNS.values())
    rows = [
        [half, f"{names[a]}", *map(str, counts)]
        for half, one in halves.items()
        for a, counts in enumerate(one["confusion"])
    ]
    return _table(["half", "gender-en says", *(f"here {name}" for name in names)], rows, left=2)


def _words(words: Mapping[str, Mapping[str, int]]) -> str:
    if not words:
        return "–"
    return "; ".join(
        f"{group}: " + ", ".join(word if count == 1 else f"{word} ({count})" for word, count in of.items())
        for group, of in words.items()
    )


def _cell(text: str) -> str:
    return text.replace("_", " ").replace("|", "&#124;")


def _unmeasured(lexicons: Found, found: Found) -> Iterator[str]:
    names = [name for name in lexicons if name not in (*LABELLED, *PARALLEL)]
    yield "## Not measured"
    yield (
        f"No labelled text was at hand for {listed([f'`{name}`' for name in names])}. The table says how many documents"
        " have a word of each group, not whether it is right."
    )
    rows = []
    for name, texts in found.items():
        for where, one in texts.items():
            groups = ", ".join(f"{group} {100 * of['share']:.1f}%" for group, of in one["groups"].items())
            shares = [f"{100 * one[key]:.1f}%" for key in ("share", "share_above_threshold")]
            rows.append([f"`{name}`", where, groups, f"{one['documents']:,}", *shares])
    yield _table(["lexicon", "texts", "by group", "documents", "any group", "more than one word"], rows, left=3)


if __name__ == "__main__":
    kept = json.loads(KEPT.read_text(encoding="utf-8")) | {"lexicons": described()}
    kept = measure(Path(sys.argv[1])) if sys.argv[1:] else kept
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(kept), encoding="utf-8")
