"""The model of a command: a folder, a name on the hub, or an endpoint with its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from evenrank import options as opt

if TYPE_CHECKING:
    from evenrank import Endpoint as EvenrankEndpoint

ApiName = Literal["cohere", "tei", "openai"]
Endpoint = Annotated[
    str | None,
    opt.Option(
        "A server that ranks: its address up to /rerank or /embeddings, or with it.",
        needs=("api",),
        flag="--endpoint",
        metavar="URL",
        panel="Model",
    ),
]
Api = Annotated[
    ApiName | None,
    opt.Option(
        "What it speaks: cohere (also Jina, vLLM, infinity), tei (Text Embeddings Inference), or openai (embeddings,"
        " whose cosine is the score).",
        needs=("url",),
        metavar="API",
        panel="Model",
    ),
]
KeyEnv = Annotated[
    str | None,
    opt.Option(
        "endpoint: the environment variable with the key to send.",
        needs=("url",),
        metavar="NAME",
        panel="Model",
        rare=True,
    ),
]
Concurrency = Annotated[
    int | None,
    opt.Option(
        "endpoint: requests in flight (default: 4).", range=opt.CONCURRENCY, needs=("url",), panel="Model", rare=True
    ),
]
Timeout = Annotated[
    float | None,
    opt.Option(
        "endpoint: seconds for an answer (default: 60).", range=opt.SECONDS, needs=("url",), panel="Model", rare=True
    ),
]
_ANSWERS = "endpoint: the file that keeps its answers, so that nothing is asked twice"
Answers = Annotated[
    str | None,
    opt.Option(f"{_ANSWERS} (default: OUT.answers.sqlite).", metavar="FILE", needs=("url",), panel="Model", rare=True),
]
EndpointAnswers = Annotated[
    str | None,
    opt.Option(
        f"{_ANSWERS} (default: beside --json or --report, with .answers.sqlite at the end of its name).",
        needs=("url",),
        metavar="FILE",
        panel="Model",
        rare=True,
    ),
]
"""Where ``--answers`` is something else."""


def chosen(
    model: str | None, url: str | None, api: ApiName | None, *, beside: str | None = None, **settings: Any
) -> str | EvenrankEndpoint | None:
    """The model that the options name; without a file of ``answers``, an endpoint's are kept beside ``beside``.

    ``settings``: ``key_env``, ``concurrency``, ``timeout``, and ``answers`` or ``endpoint_answers``.
    """
    if url is None or api is None:
        return model
    from evenrank import Endpoint

    found = {name.removeprefix("endpoint_"): value for name, value in settings.items() if value is not None}
    return Endpoint(url, api, model=model, **found).keeping_beside(beside)


def answers_of(model: object) -> str | None:
    """The file that keeps the answers of an endpoint; None for any other model."""
    found = getattr(model, "answers", None)
    return None if found is None else str(found)
