"""Folders of Markdown or text as a collection: sections by hand, and the one reader of all commands."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from evenrank.files import scan_collection
from evenrank.files.markdown import is_text_folder, section_lines, sections
from evenrank.groups import load_lexicon
from evenrank.groups.scoring import Scoring, score_collection

TEXT = """---
title: of the front
---
Before any heading.

# Tea & *milk* #
<!-- a comment
# not this -->
Old.

```md
# not this
```

Second way
----------

- item
---

## Tea & *milk*
Again [here](x.md).
### Empty
# See [this](there.md)
~~~
``` # neither
~~~
"""


def test_sections_by_hand() -> None:
    assert [(one.anchor, one.line) for one in sections(TEXT)] == [
        (None, 1),
        ("tea--milk", 6),
        ("second-way", 15),
        ("tea--milk-1", 21),
        ("see-this", 24),
    ]
    texts = [one.text for one in sections(TEXT)]
    assert texts[0] == "Before any heading."
    assert texts[1] == "Tea & *milk*\nOld.\n\n```md\n# not this\n```"
    # "---" below an item is a rule.
    assert texts[2] == "Tea & *milk* > Second way\n- item\n---"
    assert texts[3] == "Tea & *milk* > Tea & *milk*\nAgain [here](x.md)."


def test_a_folder_is_a_collection_for_every_command(tmp_path: Path) -> None:
    (tmp_path / "docs" / "guides").mkdir(parents=True)
    (tmp_path / "docs" / ".hidden").mkdir()
    (tmp_path / "docs" / "guides" / "tea.md").write_text("# Tea\nHe drinks it.\n## Milk\nShe does.\n")
    (tmp_path / "docs" / "notes.txt").write_text("# no heading here\nA note.\n")
    (tmp_path / "docs" / ".hidden" / "gone.md").write_text("# Gone\nx\n")
    (tmp_path / "docs" / "data.json").write_text("{}")
    docs = tmp_path / "docs"
    table = pl.concat(list(scan_collection(docs)))
    assert table["doc_id"].to_list() == ["guides/tea.md#tea", "guides/tea.md#milk", "notes.txt"]
    assert table["text"][1] == "Tea > Milk\nShe does."
    assert table["text"][2].startswith("# no heading here")
    assert section_lines(docs, ["guides/tea.md#milk"]) == {"guides/tea.md#milk": "guides/tea.md:3"}
    run = evenrank.retrieve(docs, {"q": "milk"}, quiet=True)
    assert run.table["doc_id"].to_list() == ["guides/tea.md#milk"]
    score_collection(docs, tmp_path / "s.parquet", Scoring(load_lexicon("gender-en")))
    assert pl.read_parquet(tmp_path / "s.parquet")["doc_id"].to_list() == table["doc_id"].to_list()
    (docs / "bad.md").write_bytes(b"# \xff")
    with pytest.raises(EvenrankError, match=r"bad\.md: expected UTF-8"):
        list(scan_collection(docs))


def test_folders_of_other_collections_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "part-0.tsv").write_text("a\ttext\n")
    (tmp_path / "part-1.txt").write_text("b\ttext\n")
    assert not is_text_folder(tmp_path)
    (tmp_path / "part-0.tsv").unlink()
    assert not is_text_folder(tmp_path)
    (tmp_path / "part-1.txt").write_text("a text")
    assert is_text_folder(tmp_path)
