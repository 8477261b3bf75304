"""``evenrank lexicon``: the list, the check and its options."""

from __future__ import annotations

import json

from evenrank.groups import builtin_lexicons, load_lexicon

FILES = {
    "c.tsv": "d1\tShe and her queen\nd2\tHe said\nd3\tnothing\nd4\tshe\n",
    "labels.csv": "doc_id,group\nd1,F\nd2,M\nd3,N\nd9,F\n",
    "kinds.csv": "id,kind,doc_id\n1,f,d1\n2,m,d2\n",
    "words.csv": "she,f\nhe,m\n",
}


def test_list(evenrank):
    ended = evenrank("lexicon", "list")
    assert (ended.status, ended.err) == (0, "")
    for lexicon in map(load_lexicon, builtin_lexicons()):
        assert f"{lexicon.name}  ({lexicon.language})  " in ended.out
        assert f"  Cannot see: {lexicon.misses}\n" in ended.out
    assert "gender-en  (en)  255 f, 231 m; poles m,f; counterparts of 344 words, neutral of 426\n" in ended.out
    assert "33 sikh; no poles\n" in ended.out


def test_check(given, evenrank):
    folder = given(FILES)

    def checked(lexicon, *options):
        ended = evenrank("lexicon", "check", lexicon, "--collection", "c.tsv", *options, "--json", "-")
        assert (ended.status, ended.err) == (0, "")
        return json.loads(ended.out)

    ended = evenrank("lexicon", "check", "gender-en", "--collection", "c.tsv", "--json", "o.json", "--report", "o.html")
    assert (ended.status, ended.err) == (0, "report: o.html\n")
    assert ended.out.startswith("75% of 4 documents have a word of gender-en, ")
    values = json.loads((folder / "o.json").read_text())
    assert [one["key"] for one in values["findings"]] == ["coverage", "misses"]
    assert values["coverage"]["groups"]["f"] == {"documents": 2, "share": 0.5, "occurrences": 4}
    assert values["provenance"]["files"][0] == {"role": "lexicon", "path": "gender-en", "note": "built in"}
    assert (folder / "o.html").read_text().startswith("<!")
    values = checked("words.csv", "--tokens", "whitespace")
    assert (values["settings"]["lexicon"], values["settings"]["tokens"]) == ("words", "whitespace")
    assert {one["word"]: one["occurrences"] for one in values["words"]} == {"she": 2, "he": 1}
    labels = checked("gender-en", "--labels", "labels.csv", "--neutral", "N")["labels"]
    assert (labels["documents"], labels["unlabelled"], labels["absent"]) == (3, 1, 1)
    assert labels["groups"]["m"]["precision"]["value"] == 1
    labels = checked("gender-en", "--labels", "kinds.csv", "--group-column", "kind")["labels"]
    assert labels["groups"]["m"]["recall"]["n"] == 1
