"""The expansion experiment's settings at each scale, its collections and its vectors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.files import EvenrankError, read_qrels, read_queries
from evenrank.files.synthetic import SyntheticConfig
from evenrank.models.stored import find_folder
from evenrank.models.vectors import Vectors, read_vectors, train_vectors
from evenrank.models.word_rankers import words
from evenrank.search.debias import EqualityCheck, check_equality, hard_debias, specific_words
from evenrank.search.expansion import RM3
from evenrank.search.word_sets import WordSets, load_word_sets, read_sets, read_word_list

from .checks import Cost, Need, Options, need_file, need_irds, need_package, unused
from .corpora import built_in
from .real_text import MINILM_PACKAGE, grepbiasir_text, real_needs, small_encoder, squad_text

SOURCE = "Gerritse and de Vries, Effect of Debiasing on Information Retrieval"
BUILT_IN, GREP, SQUAD, ROBUST = "built-in", "Grep-BiasIR", "SQuAD", "Robust04"
LOCAL, MINILM, FILE = "local word2vec", "MiniLM's input table", "vector file"
_ROBUST = "disks45/nocr/trec-robust-2004"
_FILES = ("vectors.bin", "vectors.txt", "vectors.vec", "vectors.bin.gz", "vectors.txt.gz", "vectors.vec.gz")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that tells one scale from another; the steps are the same."""

    scale: str
    seeds: tuple[int, ...]
    """Of the folds, of vectors made here and of the built-in collection."""
    development: tuple[int, ...] = (100, 101)
    """The seeds that the settings were chosen on."""
    collections: tuple[str, ...]
    vectors: tuple[str, ...]
    planted: SyntheticConfig | None = None
    """The built-in collection; its seed is that of the experiment."""
    squad_part: str = "test"
    """The articles of SQuAD whose questions are asked; settings were chosen on those of ``valid``."""
    vector_size: int = 100
    epochs: int = 5
    """Of vectors trained on the collection."""
    k: int = 5
    depth: int = 1000
    folds: int = 5
    objectives: tuple[str, ...] = ("nDCG@10", "ERR@10")
    """Table 1 is that of the first."""
    rm3: RM3 = field(default_factory=RM3)
    biased_words: int = 500
    """Most biased words of each side, for what debiasing leaves."""
    svm_words: int = 200
    """Of these, those that an SVM is trained on."""
    options: Options = field(default_factory=Options)


def tiny(options: Options | None = None) -> Settings:
    """The built-in collection, another one for each seed; local vectors, and real ones where MiniLM's package is."""
    known = find_spec(MINILM_PACKAGE) is not None
    options = options or Options()
    return Settings(
        scale="tiny",
        seeds=(0, 1, 2, 3, 4),
        collections=(BUILT_IN,),
        vectors=((MINILM,) if known else ()) + (LOCAL,) + _given(options),
        planted=SyntheticConfig(passages=4_000, queries=200, relevant=4, relevance_gender_rate=0.8),
        options=options,
    )


def real(options: Options | None = None) -> Settings:
    """Grep-BiasIR and the questions of a part of SQuAD's articles, with real and with local vectors."""
    options = options or Options()
    return Settings(
        scale="real",
        seeds=(0, 1, 2, 3, 4),
        collections=(GREP, SQUAD),
        vectors=(MINILM, LOCAL, *_given(options)),
        # With 5, the vectors of collections this small are still those that they start from.
        epochs=30,
        options=options,
    )


def full(options: Options | None = None) -> Settings:
    """The published data: Robust04 with its 250 topics, and a vector file."""
    return Settings(
        scale="full",
        seeds=(0,),
        development=(),
        collections=(ROBUST,),
        vectors=(FILE,),
        options=options or Options(),
    )


def _given(options: Options) -> tuple[str, ...]:
    return () if options.vectors is None else (FILE,)


def settings_of(scale: str, options: Options) -> Settings:
    """The settings of a scale, with a user's own files."""
    return {"tiny": tiny, "real": real, "full": full}[scale](options)


def needs(settings: Settings, folder: Path) -> list[Need]:
    """Everything that a run needs."""
    options = settings.options
    read = ["vectors", "debiased_vectors", "definitional", "equalize", "specific"]
    read += [
        name for name, collection in (("squad", SQUAD), ("grepbiasir", GREP)) if collection in settings.collections
    ]
    read += ["encoder"] if MINILM in settings.vectors else []
    found = unused(options, *read)
    found.append(need_package("sklearn", "scikit-learn", "clusters and SVMs on word vectors"))
    if LOCAL in settings.vectors:
        found.append(need_package("gensim", "gensim", "vectors trained on the collection"))
    encoder = MINILM in settings.vectors
    wanted = {name: name in settings.collections for name in (SQUAD, GREP)}
    found += real_needs(options, folder, squad=wanted[SQUAD], grepbiasir=wanted[GREP], encoder=encoder)
    if ROBUST in settings.collections:
        found += [need_irds(_ROBUST, "topics and judgements of Robust04"), _disks()]
    if FILE in settings.vectors:
        found.append(_need_vectors(_vector_file(settings, folder), "word vectors", "vectors"))
    if options.debiased_vectors is not None:
        found.append(_need_vectors(Path(options.debiased_vectors), "debiased word vectors", "debiased_vectors"))
        if FILE not in settings.vectors:
            problem = "`debiased_vectors`: `vectors` has to name the same vectors before debiasing"
            found.append(Need("vectors", "word vectors before debiasing", problem=problem))
    for option in ("definitional", "equalize", "specific"):
        file = getattr(options, option)
        if file is not None:
            found.append(need_file(file, "word sets", option, read_word_list if option == "specific" else read_sets))
    return found


def _need_vectors(path: Path, purpose: str, option: str) -> Need:
    """A file of vectors, or a folder of them."""
    if path.is_dir():
        return Need(str(path), purpose, sum(file.stat().st_size for file in path.iterdir() if file.is_file()))
    return need_file(path, purpose, option, lambda file: read_vectors(file, limit=10))


def _disks() -> Need:
    """The user's copy of the TREC disks, which ir_datasets cannot download."""
    import ir_datasets

    home = ir_datasets.util.home_path() / "disks45"
    purpose = "documents of Robust04"
    if any((home / name).exists() for name in ("corpus", "corpus.nocr.pklz4")):
        return Need(str(home), purpose, kind="option")
    return Need(str(home), purpose, problem=f"{home}/corpus: put your own copy of TREC disks 4 and 5 there ({purpose})")


def cost(settings: Settings) -> Cost:
    """Disk and time."""
    if ROBUST in settings.collections:
        return Cost(0, 100_000_000, "about 2 hours on 8 cores, with 20 GB of memory for 3 million vectors")
    made = len(settings.seeds) * len(settings.collections) if LOCAL in settings.vectors else 0
    return Cost(made, 10_000_000 * max(made, 1), "about 8 minutes on 2 CPU cores")


def _vector_file(settings: Settings, folder: Path) -> Path:
    """The file of the options, or the one in the experiment's folder."""
    if settings.options.vectors is not None:
        return Path(settings.options.vectors)
    return next((folder / name for name in _FILES if (folder / name).is_file()), folder / _FILES[0])


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection with its queries and judgements. ``nested``: every seed has another one."""

    name: str
    texts: str
    queries: pl.DataFrame
    qrels: pl.DataFrame
    nested: bool = False


def collection_of(settings: Settings, folder: Path, name: str, seed: int) -> Collection:
    """A collection by name. Raises EvenrankError where Robust04 is not on this machine."""
    if name == ROBUST:
        return robust()
    if name == GREP:
        grep = grepbiasir_text(settings.options, folder / "grepbiasir")
        return Collection(GREP, grep.source.collection, grep.queries, grep.qrels)
    if name == SQUAD:
        squad = squad_text(settings.options, folder, folder / "squad", seed=0)
        queries = squad.splits[settings.squad_part]
        judged = read_qrels(squad.source.qrels[0]).join(queries.select("query_id"), on="query_id", how="semi")
        return Collection(SQUAD, squad.source.collection, queries, judged)
    assert settings.planted is not None
    source = built_in(folder / f"built-in-{seed}", replace(settings.planted, seed=seed), clicks=False)
    return Collection(
        BUILT_IN, source.collection, read_queries(source.queries[0]), read_qrels(source.qrels[0]), nested=True
    )


def robust() -> Collection:
    """Robust04 through ir_datasets, which needs the user's copy of the TREC disks."""
    name = f"irds:{_ROBUST}"
    try:
        return Collection(ROBUST, "irds:disks45/nocr", read_queries(name), read_qrels(name))
    except EvenrankError as error:
        raise EvenrankError(
            f"{name}: this needs your own copy of TREC disks 4 and 5, where ir_datasets looks for it ({error})"
        ) from None


def vectors_of(settings: Settings, folder: Path, collection: Collection, name: str, seed: int) -> Vectors:
    """Vectors by name; local ones are trained for each seed and kept. Raises EvenrankError for a missing file."""
    if name == MINILM:
        return read_vectors(find_folder(small_encoder(settings.options)))
    if name == LOCAL:
        kept = folder / "vectors" / f"{collection.name}-{seed}"
        if not kept.is_dir():
            train_vectors(
                collection.texts,
                tokenize=words,
                dimensions=settings.vector_size,
                min_count=2,
                epochs=settings.epochs,
                seed=seed,
            ).save(kept)
        return read_vectors(kept)
    return read_vectors(_vector_file(settings, folder))


@dataclass(frozen=True, slots=True)
class Spaces:
    """Word vectors before and after debiasing, with the equal distances after it.

    ``own``: debiased here, so that both have the same words; else the second is a file of its own.
    """

    before: Vectors
    after: Vectors
    check: EqualityCheck
    own: bool


def word_sets(settings: Settings) -> WordSets:
    """The built-in word sets, replaced by those of the options."""
    options = settings.options
    return load_word_sets(options.definitional, options.equalize, options.specific)


def spaces(settings: Settings, before: Vectors, name: str) -> Spaces:
    """The vectors and their debiased form: hard debiasing here, or the second file for a vector file."""
    sets = word_sets(settings)
    given = settings.options.debiased_vectors
    if name != FILE or given is None:
        done = hard_debias(before, sets.definitional, sets.equalize, sets.specific)
        assert done.check is not None
        return Spaces(before, done.vectors, done.check, own=True)
    after = read_vectors(given)
    return Spaces(before, after, distances(after, sets), own=False)


def distances(vectors: Vectors, sets: WordSets) -> EqualityCheck:
    """The equal distances of vectors debiased elsewhere, by our word lists."""
    row_of = {word: row for row, word in enumerate(vectors.words)}
    pairs = [tuple(row_of[word] for word in of if word in row_of) for of in sets.equalize]
    neutral = ~specific_words(vectors.words, [*sets.specific, *(word for of in sets.equalize for word in of)])
    length = np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    length[length == 0] = 1
    units = Vectors(vectors.words, vectors.matrix / length)
    return check_equality(units, neutral, [pair for pair in pairs if len(pair) > 1])
