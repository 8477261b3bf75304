"""The model of a command: a folder, a name on the hub, or an endpoint with its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from evenrank import options as opt

if TYPE_CHECKING:
    from evenrank import Endpoint


@dataclass(frozen=True)
class EndpointOptions:
    """The options of an endpoint; ``endpoint_answers`` are the ``answers`` where that option is something else."""

    url: Annotated[
        str | None,
        opt.Option(
            "A server that ranks: its address up to /rerank or /embeddings, or with it.",
            needs=("api",),
            flag="--endpoint",
            metavar="URL",
            panel="Model",
        ),
    ] = None
    api: Annotated[
        Literal["cohere", "tei", "openai"] | None,
        opt.Option(
            "What it speaks: cohere (also Jina, vLLM, infinity), tei (Text Embeddings Inference), or openai"
            " (embeddings, whose cosine is the score).",
            needs=("url",),
            metavar="API",
            panel="Model",
        ),
    ] = None
    key_env: Annotated[
        str | None,
        opt.Option(
            "endpoint: the environment variable with the key to send.",
            needs=("url",),
            metavar="NAME",
            panel="Model",
            rare=True,
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        opt.Option(
            "endpoint: requests in flight (default: 4).",
            range=opt.CONCURRENCY,
            needs=("url",),
            panel="Model",
            rare=True,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        opt.Option(
            "endpoint: seconds for an answer (default: 60).",
            range=opt.SECONDS,
            needs=("url",),
            panel="Model",
            rare=True,
        ),
    ] = None
    answers: Annotated[
        str | None,
        opt.Option(
            "endpoint: the file that keeps its answers, so that nothing is asked twice (default: OUT.answers.sqlite).",
            metavar="FILE",
            needs=("url",),
            panel="Model",
            rare=True,
        ),
    ] = None
    endpoint_answers: Annotated[
        str | None,
        opt.Option(
            "endpoint: the file that keeps its answers, so that nothing is asked twice (default: beside --json or"
            " --report, with .answers.sqlite at the end of its name).",
            needs=("url",),
            metavar="FILE",
            panel="Model",
            rare=True,
        ),
    ] = None


def chosen(model: str | None, endpoint: dict[str, Any], *, beside: str | None = None) -> str | Endpoint | None:
    """The model that the options name; without a file of ``answers``, an endpoint's are kept beside ``beside``."""
    if endpoint["url"] is None:
        return model
    from evenrank import Endpoint

    options = {name.removeprefix("endpoint_"): value for name, value in endpoint.items() if value is not None}
    return Endpoint(**options, model=model).keeping_beside(beside)


def answers_of(model: object) -> str | None:
    """The file that keeps the answers of an endpoint; None for any other model."""
    answers = getattr(model, "answers", None)
    return None if answers is None else str(answers)
