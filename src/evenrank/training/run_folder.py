"""The folder of a training run: whether it can be used, what is written first, and what a failed run removes."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from evenrank._version import __version__
from evenrank.io import EvenrankError, make_folder, write_text
from evenrank.io.atomic import json_text

from .recipes import Recipe, load_recipe, to_toml

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_LIBRARIES = ("torch", "transformers", "sentence-transformers", "accelerate", "safetensors", "polars", "numpy")
_BEFORE_A_CHECKPOINT = ("recipe.toml", "versions.json", "log.jsonl", "groups", "checkpoints")
"""What a run writes before its first checkpoint."""
_OURS = ".evenrank-run"
"""Marks a folder that a training began to write: nothing is removed from any other."""
_WEIGHTS = ("without", "weight-*")


def check_folder(recipe: Recipe, resume: bool) -> None:
    """Raises EvenrankError if a run cannot start, or cannot be resumed, in the recipe's folder."""
    folder = recipe.folder
    kept = folder / "recipe.toml"
    if resume:
        if not kept.is_file():
            raise EvenrankError(f"{folder}: there is no run to resume")
        if load_recipe(kept) != recipe:
            raise EvenrankError(f"{folder}: this run was started with another recipe; resume with {kept}")
    elif kept.is_file() and _has_begun(folder):
        raise EvenrankError(
            f"{folder}: there is a run already (`resume=True` continues it; `settings='out=…'` starts another)"
        )


def is_finished(folder: Path) -> bool:
    """Whether a run has ended: the result is written last. A run whose model was removed can write it again."""
    return (folder / "result.json").is_file() and (folder / "model").is_dir()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint (the trainer's state is written last)."""
    found = [path for path in (folder / "checkpoints").glob("checkpoint-*") if _is_whole(path / "trainer_state.json")]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


@contextmanager
def run_folder(recipe: Recipe, *, resume: bool, main: bool) -> Iterator[None]:
    """A run's folder, made and locked by the ``main`` process while the block runs.

    Files of a killed run without a checkpoint are removed first; those of this run are removed if the block fails
    before its first checkpoint, so that a corrected command can start. Raises EvenrankError if another process of this
    machine trains in the folder, or if it contains files with a run's names that no training wrote.
    """
    if not main:
        yield
        return
    folder = recipe.folder
    there = folder.exists()
    make_folder(folder)
    with _alone(folder):
        check_folder(recipe, resume)
        if not resume:
            _make_room(folder)
        try:
            write_text(folder / _OURS, "")
            write_text(folder / "recipe.toml", to_toml(recipe))
            versions = {"evenrank": __version__, "python": platform.python_version()}
            versions |= {name: version(name) for name in _LIBRARIES}
            write_text(folder / "versions.json", json_text(versions))
            yield
        except BaseException:
            if not resume and not _has_begun(folder):
                _clear(folder)
                if not there:
                    with suppress(OSError):
                        folder.rmdir()
            raise


def _has_begun(folder: Path) -> bool:
    """Whether there is something to resume, in the folder or, for several weights, in one of theirs."""
    there = (folder / "result.json").is_file() or last_checkpoint(folder) is not None
    return there or any(map(_has_begun, _trainings_within(folder)))


def _trainings_within(folder: Path) -> list[Path]:
    return [path.parent for name in _WEIGHTS for path in folder.glob(f"{name}/recipe.toml")]


def _make_room(folder: Path) -> None:
    """Removes what a killed run left. Raises EvenrankError for files with a run's names that no training wrote."""
    if (folder / _OURS).is_file():
        _clear(folder)
        return
    foreign = next((name for name in _BEFORE_A_CHECKPOINT if (folder / name).exists()), None)
    if foreign is not None:
        raise EvenrankError(
            f"{folder}: there is a {foreign} that no training wrote; `settings='out=…'` chooses another folder"
        )


def _clear(folder: Path) -> None:
    for within in _trainings_within(folder):
        if (within / _OURS).is_file():
            _clear(within)
            with suppress(OSError):
                within.rmdir()
    for path in (folder / name for name in (*_BEFORE_A_CHECKPOINT, _OURS)):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EvenrankError(f"{folder}: another process trains there") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def _is_whole(state: Path) -> bool:
    try:
        json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
