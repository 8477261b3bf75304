"""Run cards: what made a run, in a JSON file beside it (``RUN.card.json``).

A card holds ``evenrank`` (the version), ``command``, ``date``, ``versions``, ``run_bytes`` and ``run_sha256`` of the
run that it describes, ``made_by`` (``stage``: retrieve, rerank, fuse or rebalance; the ``index``, ``ranker``,
``weights`` or ``method``) and ``inputs``, the files read with their digests. A card that does not match its run is
ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from evenrank._version import __version__

from .convert import is_path
from .errors import quoted, readable
from .files import file_system
from .json_values import json_text
from .outputs import is_stream, write_text
from .provenance import Provenance, file_digest

SUFFIX = ".card.json"
_LARGEST = 1 << 22
_LONGEST = 80
_OUTER = ("evenrank", "command", "date", "versions", "inputs")


def card_path(path: str | os.PathLike[str] | None) -> str | None:
    """The file of a run's card; None for a run that is not a local file, and for None."""
    if path is None or is_stream(path) or file_system(path) is not None:
        return None
    return os.fspath(path) + SUFFIX


def files_beside(*runs: object) -> list[str]:
    """The cards of runs that are files, and patterns of the runs of other orders, which no output may replace."""
    paths = [path for path in map(card_path, filter(is_path, runs)) if path is not None]
    return [*paths, *(f"{path.removesuffix(SUFFIX)}.order-[0-9]" for path in paths)]


def write_card(made_by: Mapping[str, object], path: str | os.PathLike[str], provenance: Provenance) -> None:
    """Writes the card of the run at ``path``, which must have been written; nothing for what is no local file."""
    target = card_path(path)
    if target is None:
        return
    made = provenance.to_dict()
    values = {
        "evenrank": __version__,
        "command": made["command"],
        "date": made["date"],
        "versions": made["versions"],
        **file_facts(path, "run_"),
        "made_by": dict(made_by),
        "inputs": made["files"],
    }
    write_text(target, json_text(values) + "\n")


def file_facts(path: str | os.PathLike[str], prefix: str = "") -> dict[str, object]:
    """The size and the SHA-256 of a file, as ``bytes`` and ``sha256``."""
    return {f"{prefix}bytes": os.stat(path).st_size, f"{prefix}sha256": file_digest(os.fspath(path))}


def same_file(path: str | os.PathLike[str], facts: Mapping[str, object], prefix: str = "") -> bool:
    """Whether a file is the one with these :func:`file_facts`; its size is compared first."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return False
    known = facts.get(f"{prefix}sha256")
    return size == facts.get(f"{prefix}bytes") and isinstance(known, str) and file_digest(os.fspath(path)) == known


def read_card(path: str | os.PathLike[str]) -> tuple[Mapping[str, object] | None, str | None]:
    """What made the run at ``path``, and why a card beside it was ignored; None for either.

    The values of ``made_by``, and beside them ``evenrank``, ``command``, ``date``, ``versions`` and ``inputs``.
    """
    target = card_path(path)
    # Only where there is a card, a run has to be read twice for its digest.
    if target is None or not os.path.isfile(target):
        return None, None
    name = readable(os.path.basename(target))
    card = _parsed(target)
    made_by = card.get("made_by") if card is not None else None
    if card is None or not isinstance(made_by, dict) or not isinstance(made_by.get("stage"), str):
        return None, f"its card {name} is damaged and was ignored"
    if not same_file(path, card, "run_"):
        return None, f"its card {name} is of another run and was ignored"
    return {**made_by, **{key: card[key] for key in _OUTER if key in card}}, None


def _parsed(path: str) -> dict[str, object] | None:
    """The object in a JSON file; None if there is none."""
    try:
        if os.stat(path).st_size > _LARGEST:
            return None
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def made_by_text(card: Mapping[str, object]) -> str:
    """What made a run, in words; a card may hold anything, so each value is cut to a line.

    >>> made_by_text({"stage": "rerank", "ranker": {"kind": "bi-encoder", "model": "MiniLM", "reads": 256}})
    're-ranked by bi-encoder MiniLM (reads 256 tokens)'
    """
    made: Mapping[str, object]
    if card.get("stage") == "fuse":
        weights = [f"{_short(name)} ({_short(weight)})" for name, weight in _object(card.get("weights")).items()]
        return f"fused from {', '.join(weights) or 'unknown runs'}"
    if card.get("stage") == "rebalance":
        tied = _object(card.get("tied"))
        of_ties = (
            f"; {_short(tied['rows'])} of {_short(tied.get('of'))} rows were tied before" if tied.get("rows") else ""
        )
        return f"rebalanced by {_short(card.get('method'))} at strength {_short(card.get('strength'))}{of_ties}"
    if card.get("stage") == "retrieve":
        index = _object(card.get("index"))
        made = {**_object(index.get("model")), **_of_queries(card, index), "kind": index.get("kind")}
        about, verb = [*_computed(made), *_searched(card, index)], "retrieved"
    else:
        made = _object(card.get("ranker"))
        about, verb = _computed(made), "re-ranked"
    named = " ".join(_short(made[name]) for name in ("kind", "model") if made.get(name) is not None)
    text = f"{verb} by {named or 'an unknown model'}" + (f" ({', '.join(about)})" if about else "")
    truncated = _object(card.get("truncated"))
    if truncated.get("cut"):
        unit = _short(truncated.get("unit", "passage"))
        text += f"; {_short(truncated['cut'])} of {_short(truncated.get('of'))} {unit}s truncated"
    resolved = _object(card.get("resolved_ties"))
    return f"{text}; ties resolved in float32" if resolved.get("pairs") else text


def ranker_note(name: str, ranker: Mapping[str, object]) -> str | None:
    """What the notes of a run say of its ``ranker``; None of a function, of which nothing is known.

    >>> ranker_note("MiniLM", {"kind": "bi-encoder", "model": "MiniLM", "precision": "float32", "reads": 256})
    'MiniLM: bi-encoder, float32, reads 256 tokens'
    """
    if ranker.get("kind") == "function":
        return None
    names = [_short(ranker[key]) for key in ("kind", "model") if ranker.get(key) not in (None, name)]
    parts = ([" ".join(names)] if names else []) + _computed(ranker)
    return f"{name}: {', '.join(parts)}" if parts else None


def _computed(made: Mapping[str, object]) -> list[str]:
    """How a model computes, or where an endpoint is."""
    about = [_short(made[name]) for name in ("api", "url", "precision") if made.get(name) is not None]
    about += [f"reads {_short(made['reads'])} tokens"] if made.get("reads") is not None else []
    for prompt in ("query_prompt", "document_prompt"):
        about += [f"{prompt.replace('_', ' ')} {quoted(made[prompt])}"] if made.get(prompt) else []
    return about


def _of_queries(card: Mapping[str, object], index: Mapping[str, object]) -> dict[str, object]:
    """What a search has of its own, where an index has the prompts and the precision of its making."""
    encoder = _object(card.get("query_encoder"))
    own = {name: encoder[name] for name in ("query_prompt", "precision") if name in encoder}
    before = _object(index.get("model")).get("precision")
    if before is not None and own.get("precision", before) != before:
        own["precision"] = f"{_short(before)}, queries in {_short(own['precision'])}"
    return own


def _searched(card: Mapping[str, object], index: Mapping[str, object]) -> list[str]:
    """How an index was searched."""
    settings = _object(index.get("settings"))
    about = [f"{name} {_short(settings[name])}" for name in ("k1", "b") if _plain(settings.get(name))]
    about += [_short(settings["analysis"])] if settings.get("analysis") else []
    about += ["weighted words"] if settings.get("weighted") is True else []
    feedback = _object(card.get("rm3"))
    if feedback:
        about += [f"RM3 of {_short(feedback.get('fb_terms'))} terms of {_short(feedback.get('fb_docs'))} documents"]
    return about


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _short(value: object) -> str:
    return quoted(value, _LONGEST)[1:-1]
