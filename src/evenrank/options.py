"""What functions and commands ask for: each option once, with its help and what is typed for it.

A public function has these types in its signature, and its command is made from that: what stands before the ``*`` is
an argument, the rest are options. So what is added to a signature is added to the command, and what is added to
:class:`GroupOptions` to every function and command that reads groups.
"""

# Annotations name types that are not imported: the command line reads this file, and has to start at once.
from collections.abc import Collection as AnyCollection
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypedDict

if TYPE_CHECKING:
    from evenrank.files.convert import QrelsLike, TextsLike
    from evenrank.files.passages import PassagesLike
    from evenrank.groups import LexiconLike


Panel = Literal["Input", "Groups", "Method", "Model", "Statistics", "Machine", "Output"]
"""The headings under which a command's help lists its options, in this order."""


LARGEST = 2**31 - 1
"""The largest count: numbers of documents, words and positions are 32-bit integers in the compiled loops."""


class Range(NamedTuple):
    """The numbers from ``least`` to ``most``, inclusive."""

    least: float
    most: float = LARGEST
    whole: bool = True


COUNT, FROM_0 = Range(1), Range(0)
SIZE = Range(1, 100_000)
SHARE = Range(0, 1, whole=False)
SEED = Range(0, 2**64 - 1)
CONCURRENCY, SECONDS = Range(1, 1000), Range(0.001, 86_400, whole=False)
"""Requests in flight, and how long one may take."""
K1 = Range(0, 1e6, whole=False)
"""Larger values exceed the precision of float32, and term frequency no longer saturates anyway."""
SIGNIFICANCE = Range(0.001, 0.5, whole=False)
"""What FA*IR corrects."""


@dataclass(frozen=True, slots=True)
class Option:
    """The help and the conditions of a parameter, which :func:`evenrank.files.arguments.checked` checks.

    Attributes:
        help: A sentence or two, for values and defaults that the signature doesn't show.
        flag: Its name on the command line, where that is not the parameter's; ``metavar``: what stands for its value.
        typed: What is typed, where the parameter's type doesn't tell; ``list``: texts, by repeating the option.
        reads: Whether it names a file that is read, which no output may replace.
        range: The numbers that it may be.
        needs: The options of which one has to be given beside it, or ``option=value``.
        excludes: The options that are not given beside it.
        unless: The options of which one has to be given where it is not.
        shown: Whether the help shows the default.
        panel: The heading that it stands under in the help; without one: Input if it ``reads`` a file, else Method.
        rare: Whether ``--help`` leaves it out, for ``--help-all`` to show.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    typed: type | None = None
    reads: bool = False
    range: Range | None = None
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    shown: bool = True
    panel: Panel | None = None
    rare: bool = False


def of_table(
    help: str, *, metavar: str | None = "COLUMN", excludes: tuple[str, ...] = (), range: Range | None = None
) -> Option:
    """An option of a table of people."""
    text = f"With --table: {help}"
    return Option(text, metavar=metavar, range=range, needs=("table",), excludes=excludes, panel="Input", rare=True)


TEXTS = "TSV, CSV, JSONL, Parquet or irds:NAME."
COLLECTION = "TSV, CSV, JSONL, Parquet, irds:NAME or a folder of Markdown."
LEXICON = "A built-in lexicon (evenrank lexicon list), or a file of word,group lines or TOML."
STOP_WORDS = (
    "none, a file with one word per line, or english, danish, dutch, french, german, italian, norwegian, portuguese, "
    "russian, spanish, swedish, turkish."
)
VECTORS = "word2vec, GloVe or fastText file, or saved vectors."
OUT_VECTORS = "What to write: .bin or .txt (word2vec), else a folder (safetensors)."
NO_QRELS = "Qrels or irds:NAME, for effectiveness."
NEUTRAL = "A label that means no group; repeatable."
_TOKENS = "word, or whitespace (as the reference implementations)."
_THRESHOLD = "A document with at most this many group words is neutral."

File = str | PathLike[str]

# --- texts and judgements ---------------------------------------------------------------------------------------------

Collection = Annotated["TextsLike", Option(TEXTS, reads=True)]
TheCollection = Annotated["TextsLike", Option(COLLECTION, metavar="COLLECTION", reads=True)]
MaybeCollection = Annotated["TextsLike | None", Option(f"The documents: {TEXTS}", reads=True)]
Queries = Annotated["TextsLike", Option(TEXTS, reads=True)]
TheQueries = Annotated["TextsLike", Option(TEXTS, metavar="QUERIES", reads=True)]
MaybeQueries = Annotated["TextsLike | None", Option(f"The queries: {TEXTS}", reads=True)]
QueriesAlone = Annotated["TextsLike | None", Option(f"The queries: {TEXTS}", reads=True, needs=("only_queries",))]
OnlyQueries = Annotated[bool, Option("Only the queries in --queries.", needs=("queries",), panel="Input", rare=True)]
Qrels = Annotated["QrelsLike | None", Option(NO_QRELS, reads=True)]

Passages = Annotated[
    "PassagesLike | None",
    Option("Rank documents by their best passage: the table of evenrank passages.", metavar="TABLE", reads=True),
]

# What every command that reads such files has, beside the parameters of its function.
Beir = Annotated[
    str | None,
    Option(
        "A folder in BEIR's form, for those not given: corpus, queries, qrels/test.",
        metavar="FOLDER",
        panel="Input",
        rare=True,
    ),
]
IdColumn = Annotated[
    str | None,
    Option(
        "The collection's column of ids (without one, the labels'), if its name is another than doc_id, id, ….",
        panel="Input",
        rare=True,
    ),
]
TextColumn = Annotated[
    str | None,
    Option(
        "Its column of texts, if its name is another than text, body, …; several, title,body, are joined.",
        panel="Input",
        rare=True,
    ),
]
QueryIdColumn = Annotated[
    str | None,
    Option("The queries' column of ids, if its name is another than query_id, id, ….", panel="Input", rare=True),
]
QueryTextColumn = Annotated[
    str | None,
    Option("The queries' column of texts, if its name is another than query, text, ….", panel="Input", rare=True),
]
RunColumns = Annotated[
    str | None,
    Option(
        "Names of a run's columns: query=…,document=…,score=… (or rank=…).",
        metavar="NAMES",
        panel="Input",
        rare=True,
    ),
]

# --- groups -----------------------------------------------------------------------------------------------------------

Lexicon = Annotated["LexiconLike", Option(LEXICON, reads=True, panel="Groups")]
Labels = Annotated[
    object,
    Option(
        "Labels instead of words: doc_id,group, or doc_id and each group's weight (CSV, TSV, JSONL or Parquet).",
        reads=True,
        excludes=("lexicon", "tokens", "threshold", "magnitudes", "scores"),
        panel="Groups",
    ),
]
# Of labels, or of a table of people.
_READ = ("labels", "table")
Neutral = Annotated[Sequence[str] | str | None, Option(NEUTRAL, typed=list, needs=_READ, panel="Groups")]
GroupColumn = Annotated[
    Sequence[str] | str | None,
    Option(
        "The column of groups, if there are several; repeatable.",
        typed=list,
        needs=(*_READ, "dialect"),
        panel="Groups",
        rare=True,
    ),
]
Intersect = Annotated[
    bool | None,
    Option(
        "Groups are the combinations of several --group-column.",
        typed=bool,
        needs=("group_column",),
        panel="Groups",
        rare=True,
    ),
]
Tokens = Annotated[Literal["word", "whitespace"], Option(_TOKENS, panel="Groups", rare=True)]
WORDS = Range(0, whole=False)
Threshold = Annotated[float, Option(_THRESHOLD, range=WORDS, panel="Groups", rare=True)]

Guess = Annotated[
    object,
    Option(
        "With labels that were drawn: a lexicon, scores or labels that they correct.",
        reads=True,
        needs=("labels",),
        panel="Groups",
        rare=True,
    ),
]


class GroupOptions(TypedDict, total=False):
    """What says which groups documents are of: their words, a table of them, or labels.

    With ``scores``, what is said of words defaults to the settings that the table was made with.

    Attributes:
        scores: A group table of the documents instead of their texts: a path, a :class:`GroupTable` or a frame.
        labels: The documents' groups instead of their texts, where metadata or annotation says them: a file, a frame,
            ``{document: group}`` or ``{document: {group: weight}}``; see :func:`evenrank.groups.as_labels`. A document
            without a label is unknown. Not with ``scores``, ``lexicon``, ``tokens`` or ``threshold``.
        neutral: Values of the labels that mean "no group".
        group_column: The labels' column of groups, if there are several.
        intersect: Take several columns, whose combinations are the groups, such as ``"f × yes"``.
        guess: Of labels that were drawn (:func:`evenrank.sample_labels`), what is guessed of all documents, however
            wrong: a built-in lexicon's name, a :class:`Lexicon` or its TOML file, which need the texts; a group table,
            or labels such as a classifier's.
        lexicon: A built-in lexicon's name, a file or a :class:`Lexicon`; by default ``gender-en``.
        poles: The two groups of signed measures, the positive one first, such as ``"m,f"``.
        tokens: ``"word"`` (default) or ``"whitespace"``.
        threshold: How many group words a document may have and still count as neutral; by default 1.
    """

    scores: Annotated[object, Option("A group table made by evenrank score.", reads=True, panel="Groups")]
    labels: Labels
    neutral: Neutral
    group_column: GroupColumn
    intersect: Intersect
    guess: Guess
    lexicon: Annotated["LexiconLike | None", Option(f"{LEXICON} Default: gender-en.", reads=True, panel="Groups")]
    poles: Annotated[
        str | None,
        Option("Bias is group A minus group B; B may be rest.", metavar="A,B", panel="Groups"),
    ]
    tokens: Annotated[
        Literal["word", "whitespace"] | None, Option(f"{_TOKENS} Default: word.", panel="Groups", rare=True)
    ]
    threshold: Annotated[float | None, Option(f"{_THRESHOLD} Default: 1.", range=WORDS, panel="Groups", rare=True)]


# --- fairer orders ----------------------------------------------------------------------------------------------------

Top = Annotated[
    int | None,
    Option(
        "fair, detconstsort: how many first ranks have the promise, chosen from the first --depth (default: all of"
        " these).",
        range=COUNT,
        needs=("method=fair", "method=detconstsort"),
        rare=True,
    ),
]
Protected = Annotated[
    str | None,
    Option(
        "fair: the group that needs a minimum (default: the one furthest below its target).",
        metavar="GROUP",
        needs=("method=fair",),
        rare=True,
    ),
]
Alpha = Annotated[
    float | None,
    Option("fair: the significance (default: 0.1).", range=SIGNIFICANCE, needs=("method=fair",), rare=True),
]
Per = Annotated[
    Literal["group", "magnitude"] | None,
    Option("shift: what has an offset (default: group).", needs=("method=shift",), rare=True),
]

# --- models and machines ----------------------------------------------------------------------------------------------

Device = Annotated[str | None, Option("cpu, cuda, cuda:1, … (default: the fastest).", panel="Machine")]
Kind = Annotated[
    Literal["cross", "bi", "sparse", "late"] | None,
    Option("cross, bi, sparse or late, if the model's files do not tell.", panel="Model", rare=True),
]
QueryPrompt = Annotated[
    str | None,
    Option(
        "Put before queries instead of the model's own; a cross-encoder's instruction.",
        metavar="TEXT",
        panel="Model",
        rare=True,
    ),
]
DocumentPrompt = Annotated[
    str | None, Option("Put before passages instead of the model's own.", metavar="TEXT", panel="Model", rare=True)
]
BatchSize = Annotated[int, Option("Texts per batch.", range=COUNT, panel="Machine")]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    Option("auto: bfloat16 on a GPU that supports it, else float32.", panel="Machine", rare=True),
]
Engine = Annotated[
    Literal["local", "ray"],
    Option(
        "local: all cores of this machine; ray: Parquet or .jsonl on a Ray cluster (RAY_ADDRESS).",
        excludes=("labels",),
        panel="Machine",
        rare=True,
    ),
]

# --- word vectors -----------------------------------------------------------------------------------------------------

Definitional = Annotated[
    File | None,
    Option("Sets that define the bias, as JSON. Default: gender-en.", metavar="F.json", reads=True, panel="Groups"),
]
Equalize = Annotated[
    File | None, Option("Sets to equalise, as JSON. Default: gender-en.", metavar="F.json", reads=True, panel="Groups")
]
Specific = Annotated[
    File | None,
    Option("Words that keep their group, as JSON. Default: gender-en.", metavar="F.json", reads=True, panel="Groups"),
]
Saturation = Annotated[
    float | None,
    Option("BM25: term frequency saturation, from 0 (default: 0.9, or the index's).", range=K1, rare=True),
]
LengthNormalisation = Annotated[
    float | None,
    Option("BM25: document length normalisation, 0 to 1 (default: 0.4, or the index's).", range=SHARE, rare=True),
]
StopWords = Annotated[
    str | AnyCollection[str] | None,
    Option(
        f"BM25: {STOP_WORDS} Default: english, or the index's.",
        metavar="NAME",
        typed=str,
        reads=True,
        shown=False,
        panel="Method",
    ),
]
Stemmer = Annotated[
    str | None,
    Option(
        "BM25: english, another Snowball stemmer, or none. Default: english, or the index's.",
        metavar="NAME",
        shown=False,
    ),
]
Limit = Annotated[int | None, Option("Read only this number of words.", range=COUNT, panel="Input", rare=True)]

# --- outputs, which are the commands' alone ---------------------------------------------------------------------------

Json = Annotated[str | None, Option("Also write JSON; -: print it instead of the table.", panel="Output")]
Report = Annotated[str | None, Option("Also write a report (one HTML page).", panel="Output")]
Full = Annotated[bool, Option("Print every figure, test and note.", panel="Output")]
Quiet = Annotated[bool, Option("Show no progress on standard error.", panel="Output", rare=True)]
