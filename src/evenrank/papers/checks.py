"""What an experiment needs before it starts: each thing looked up, with its size, or named in one line if missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from evenrank import options as opt
from evenrank.files import EvenrankError, arg, checked, public_data, quoted
from evenrank.models import chosen_device, model_bytes


@checked
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user gives in place of an experiment's own data and models.

    Raises EvenrankError for an entry that is not NAME=PATH.
    """

    data: Annotated[
        Sequence[str],
        opt.Option(
            "Where a text is: counsel-chat=FOLDER, grepbiasir=FOLDER, policyqa=FOLDER or squad=FILE; can be repeated"
            " (default: fetched; squad: in the experiment's folder).",
            typed=list,
            metavar="NAME=PATH",
            panel="Input",
        ),
    ] = ()
    model: Annotated[
        Sequence[str],
        opt.Option(
            "A folder or a name on the hub for a ranker of the paper, as --check names them (BERT-L2=FOLDER); can be"
            " repeated.",
            typed=list,
            metavar="NAME=MODEL",
            panel="Model",
        ),
    ] = ()
    device: Annotated[
        Literal["cpu", "cuda"],
        opt.Option(
            "cuda: position at real trains whole encoders on a GPU, in some ten minutes.", panel="Machine", rare=True
        ),
    ] = "cpu"
    vectors: Annotated[str | None, opt.Option("A file of word vectors.", metavar="FILE", panel="Input")] = None
    """A file of word vectors."""
    debiased_vectors: Annotated[
        str | None, opt.Option("expansion: the same vectors, debiased.", metavar="FILE", panel="Input", rare=True)
    ] = None
    """The same vectors, debiased elsewhere."""
    definitional: opt.Definitional = None
    """Sets that define the bias to remove from vectors, as JSON; those of gender-en if None."""
    equalize: opt.Equalize = None
    """Sets to equalise, as JSON."""
    specific: opt.Specific = None
    """Words that keep their gender, as JSON."""

    def __post_init__(self) -> None:
        for name in ("data", "model"):
            for entry in getattr(self, name):
                if not all(entry.partition("=")[::2]):
                    raise EvenrankError(f"{arg(name)}: expected NAME=PATH, found {quoted(entry)}")

    def paths(self, name: str) -> list[str]:
        """The paths of a text."""
        return _given(self.data, name)

    def ranker(self, name: str, default: str) -> str:
        """The model of a ranker, ``default`` if none is given."""
        return [default, *_given(self.model, name)][-1]


def _given(entries: Sequence[str], name: str) -> list[str]:
    return [value for key, _, value in (entry.partition("=") for entry in entries) if key == name]


_SIZES = {"msmarco-passage": 1_057_717_952, "msmarco-qna/train": 1_112_116_929}
"""Bytes that ir_datasets downloads, by its own list."""


@dataclass(frozen=True, slots=True)
class Need:
    """A model, data set, file, package or option: its ``name``, what it is for, its size in bytes (None: unknown).

    ``problem``: one line, if it is not there or cannot be used.
    """

    name: str
    purpose: str
    size: int | None = None
    problem: str | None = None
    kind: Literal["file", "model", "public", "irds", "package", "option"] = "file"


def need_model(model: str, ranker: str) -> Need:
    """A folder with weights, or a name on the hub, looked up without its weights being downloaded; ``ranker``: the name
    under which ``model`` gives another one."""
    try:
        return Need(model, ranker, model_bytes(model), kind="model")
    except EvenrankError as error:
        problem = f"{error} ({arg.model}: {ranker}=FOLDER names another)"
        return Need(model, ranker, problem=problem, kind="model")


def need_file(
    path: str | os.PathLike[str],
    purpose: str,
    option: str,
    read: Callable[[str], object] | None = None,
    kind: str = "",
) -> Need:
    """A file. ``option``: the argument that names another one, with ``kind`` as its value; ``read``: reads the file, or
    enough of it to know its form."""
    name = os.fspath(path)
    if not Path(name).is_file():
        return Need(
            name, purpose, problem=f"{name}: no such file ({purpose}; {arg(option)}{kind and f' {kind}'} names another)"
        )
    try:
        if read is not None:
            read(name)
    except EvenrankError as error:
        return Need(name, purpose, problem=str(error))
    return Need(name, purpose, Path(name).stat().st_size)


def unused(options: Options, *read: str, texts: Sequence[str] = (), models: Sequence[str] = ()) -> list[Need]:
    """A need with a problem for each option that is given but not read: ``read`` are the names of those that are,
    ``texts`` and ``models`` the names that ``data`` and ``model`` may have."""
    names = [
        field.name
        for field in fields(options)
        if field.name not in ("data", "model", *read) and getattr(options, field.name) != field.default
    ]
    problems = [f"{arg(name)}: not used by this experiment at this scale" for name in names]
    for name, known in (("data", texts), ("model", models)):
        keys = [entry.partition("=")[0] for entry in getattr(options, name)]
        wanted = f"expected {' or '.join(known)}" if known else "this experiment at this scale has none"
        problems += [f"{arg(name)}: {wanted}, found {quoted(key)}" for key in keys if key not in known]
    return [Need(problem, "an option", problem=problem, kind="option") for problem in problems]


def need_public(name: str, purpose: str) -> Need:
    """A data set that ``evenrank data fetch`` has; it is fetched when the experiment runs."""
    dataset = public_data().get(name)
    if dataset is None:
        return Need(name, purpose, problem=f"{name}: no public data of this name ({purpose})", kind="public")
    return Need(name, purpose, dataset.bytes, kind="public")


def need_device(device: str) -> list[Need]:
    """A need with a problem if a device cannot be used."""
    try:
        chosen_device(device)
    except EvenrankError as error:
        return [Need(device, "a device", problem=str(error), kind="option")]
    return []


def need_package(module: str, package: str, purpose: str) -> Need:
    """An optional package."""
    missing = f"the package {package} is missing ({purpose}): pip install {package}"
    return Need(package, purpose, problem=None if find_spec(module) else missing, kind="package")


def need_irds(name: str, purpose: str) -> Need:
    """A data set of ir_datasets, by its name after ``irds:``; its files are downloaded when they are first read, from a
    server that is asked now whether it can be reached."""
    import ir_datasets

    try:
        ir_datasets.load(name)
    except KeyError:
        problem = f"irds:{name}: ir_datasets has no such data set ({purpose})"
        return Need(f"irds:{name}", purpose, problem=problem, kind="irds")
    size = next((size for start, size in _SIZES.items() if name.startswith(start)), None)
    return Need(f"irds:{name}", purpose, size, _unreachable(name.partition("/")[0]), kind="irds")


def _unreachable(collection: str) -> str | None:
    """Why the files of a collection of ir_datasets cannot be downloaded; None if they can, or if some are here."""
    import ir_datasets

    home = ir_datasets.util.home_path() / collection
    if home.is_dir() and any(home.iterdir()):
        return None
    files = ir_datasets.util.DownloadConfig.context(collection, home).contents()
    url = next((file["url"] for file in files.values() if "url" in file), None)
    if url is None or _answers(url):
        return None
    return f"irds:{collection}: {url} cannot be reached, and {home} has no files of it"


@cache
def _answers(url: str) -> bool:
    import requests

    try:
        requests.head(url, timeout=10)
    except requests.RequestException:
        return False
    return True


class MissingError(EvenrankError):
    """Things that an experiment needs and that are not there: a line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        # Each line by itself: line ends inside one are escaped.
        super(EvenrankError, self).__init__("\n".join(str(EvenrankError(problem)) for problem in problems))


def check(needs: Sequence[Need]) -> None:
    """Raises MissingError if something is missing."""
    problems = list(dict.fromkeys(need.problem for need in needs if need.problem))
    if problems:
        raise MissingError(problems)


def described(needs: Sequence[Need], trainings: int, disk: int, time: str) -> list[str]:
    """Lines: everything that was found, with sizes, and what the run takes: trainings, bytes of disk, and the time in
    words, with the machine."""
    available = [need for need in needs if not need.problem]
    lines = [f"{need.name}: {need.purpose}{'' if need.size is None else f', {_size(need.size)}'}" for need in available]
    trained = f"{trainings} trainings, " if trainings else ""
    return [*lines, f"this run: {trained}about {_size(disk)} of disk, {time}"]


def _size(size: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"
