"""What functions and commands ask for: each option once, with its help and what is typed for it.

A public function has these types in its signature, and its command is made from that: what stands before the ``*`` is
an argument, the rest are options. So what is added to a signature is added to the command, and what is added to
:class:`GroupOptions` to every function and command that reads groups.
"""

# Annotations name types that are not imported: the command line reads this file, and has to start at once.
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

if TYPE_CHECKING:
    from evenrank.groups import LexiconLike
    from evenrank.io.convert import QrelsLike, TextsLike


@dataclass(frozen=True, slots=True)
class Option:
    """What a command says of a parameter.

    Attributes:
        help: A sentence or two, for values and defaults that the signature doesn't show.
        flag: Its name on the command line, where that is not the parameter's; ``metavar``: what stands for its value.
        typed: What is typed, where the parameter's type doesn't tell; ``list``: texts, by repeating the option.
        reads: Whether it names a file that is read, which no output may replace.
        shown: Whether the help shows the default.
    """

    help: str
    flag: str | None = None
    metavar: str | None = None
    typed: type | None = None
    reads: bool = False
    shown: bool = True


TEXTS = "TSV, JSONL, Parquet or irds:NAME."
LEXICON = "A built-in lexicon (evenrank lexicon list), or a file of word,group lines or TOML."
STOP_WORDS = (
    "none, a file with one word per line, or english, danish, dutch, french, german, italian, norwegian, portuguese, "
    "russian, spanish, swedish, turkish."
)
VECTORS = "word2vec, GloVe or fastText file, saved vectors, or a transformer's folder."
OUT_VECTORS = "What to write: .bin or .txt (word2vec), else a folder (safetensors)."
NO_QRELS = "TREC qrels or irds:NAME; without, effectiveness is unknown."
NEUTRAL = "A value of the labels that means no group; repeatable."
_TOKENS = "word, or whitespace (as the reference implementations)."
_THRESHOLD = "A document with at most this many group words is neutral."

File = str | PathLike[str]

# --- texts and judgements ---------------------------------------------------------------------------------------------

Collection = Annotated["TextsLike", Option(TEXTS, reads=True)]
TheCollection = Annotated["TextsLike", Option(TEXTS, metavar="COLLECTION", reads=True)]
MaybeCollection = Annotated["TextsLike | None", Option(f"The documents: {TEXTS}", reads=True)]
Queries = Annotated["TextsLike", Option(TEXTS, reads=True)]
TheQueries = Annotated["TextsLike", Option(TEXTS, metavar="QUERIES", reads=True)]
MaybeQueries = Annotated["TextsLike | None", Option(f"The queries: {TEXTS}", reads=True)]
OnlyQueries = Annotated[bool, Option("Only the queries in --queries.")]
Qrels = Annotated["QrelsLike | None", Option(NO_QRELS, reads=True)]

# --- groups -----------------------------------------------------------------------------------------------------------

Lexicon = Annotated["LexiconLike", Option(LEXICON, reads=True)]
Labels = Annotated[
    object,
    Option(
        "Groups of documents instead of words: doc_id,group or doc_id and each group's weight (CSV, TSV, JSONL or"
        " Parquet).",
        reads=True,
    ),
]
Neutral = Annotated[Sequence[str] | str | None, Option(NEUTRAL, typed=list)]
GroupColumn = Annotated[str | None, Option("The column of groups, if there are several.")]
Tokens = Annotated[Literal["word", "whitespace"], Option(_TOKENS)]
Threshold = Annotated[float, Option(_THRESHOLD)]


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
        lexicon: A built-in lexicon's name, a file or a :class:`Lexicon`; by default ``gender-en``.
        poles: The two groups of signed measures, the positive one first, such as ``"m,f"``.
        tokens: ``"word"`` (default) or ``"whitespace"``.
        threshold: How many group words a document may have and still count as neutral; by default 1.
    """

    scores: Annotated[object, Option("A group table made by evenrank score.", reads=True)]
    labels: Labels
    neutral: Neutral
    group_column: GroupColumn
    lexicon: Annotated["LexiconLike | None", Option(f"{LEXICON} Default: gender-en.", reads=True)]
    poles: Annotated[str | None, Option("The two groups to compare, A,B: bias is A minus B; B may be rest.")]
    tokens: Annotated[Literal["word", "whitespace"] | None, Option(f"{_TOKENS} Default: word.")]
    threshold: Annotated[float | None, Option(f"{_THRESHOLD} Default: 1.")]


# --- models and machines ----------------------------------------------------------------------------------------------

Device = Annotated[str | None, Option("cpu, cuda, cuda:1, … (default: the fastest available).")]
Kind = Annotated[
    Literal["cross", "bi", "sparse", "late"] | None,
    Option("cross, bi, sparse or late, if the model's files do not tell."),
]
QueryPrompt = Annotated[
    str | None, Option("Put before queries instead of the model's own; a cross-encoder's instruction.")
]
DocumentPrompt = Annotated[str | None, Option("Put before passages instead of the model's own.")]
BatchSize = Annotated[int, Option("Texts per batch.")]
Precision = Annotated[
    Literal["auto", "float32", "bfloat16"],
    Option("auto: bfloat16 on a GPU that supports it, else float32."),
]
Engine = Annotated[
    Literal["local", "ray"], Option("local: all cores of this machine; ray: a Ray cluster (RAY_ADDRESS).")
]
Workers = Annotated[
    int | tuple[int, int] | str | None,
    Option("Parallel workers (default: as many as fit); ray: 2:16 scales.", typed=str),
]
Cpus = Annotated[float, Option("ray: cores per worker.")]
Gpus = Annotated[float, Option("ray: GPUs per worker; 0.5: two workers share one.")]

# --- word vectors -----------------------------------------------------------------------------------------------------

Definitional = Annotated[
    File | None, Option("Sets that define the bias, as JSON. Default: gender-en.", metavar="F.json", reads=True)
]
Equalize = Annotated[
    File | None, Option("Sets to equalise, as JSON. Default: gender-en.", metavar="F.json", reads=True)
]
Specific = Annotated[
    File | None, Option("Words that keep their group, as JSON. Default: gender-en.", metavar="F.json", reads=True)
]
LearnSpecific = Annotated[bool, Option("Learn more such words from these with a linear SVM.")]
Limit = Annotated[int | None, Option("Read only this number of words.")]

# --- outputs, which are the commands' alone ---------------------------------------------------------------------------

Json = Annotated[str | None, Option("Also write the figures as JSON; -: print them instead of the table.")]
Report = Annotated[str | None, Option("Also write a report (one HTML page).")]
Full = Annotated[bool, Option("Print every figure, test and note.")]
Quiet = Annotated[bool, Option("Show no progress on standard error.")]
