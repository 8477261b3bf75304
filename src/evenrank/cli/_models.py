"""The model of a command: a folder, a name on the hub, or an endpoint with its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from evenrank import Endpoint as EvenrankEndpoint

ApiName = Literal["cohere", "tei", "openai"]

Endpoint = Annotated[
    str | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="A server that ranks: its address up to /rerank or /embeddings, or with it.",
    ),
]
Api = Annotated[
    ApiName | None,
    typer.Option(
        "--api",
        help="What the endpoint speaks: cohere (also Jina, vLLM, infinity), tei (Text Embeddings Inference), or openai"
        " (embeddings, whose cosine is the score).",
    ),
]
KeyEnv = Annotated[
    str | None,
    typer.Option("--key-env", metavar="NAME", help="endpoint: the environment variable with the key to send."),
]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="endpoint: requests in flight. [default: 4]")]
Timeout = Annotated[float | None, typer.Option("--timeout", help="endpoint: seconds for an answer. [default: 60]")]
_ANSWERS = "endpoint: the file that keeps its answers, so that nothing is asked twice"
Answers = Annotated[
    str | None,
    typer.Option("--answers", metavar="FILE", help=f"{_ANSWERS} (default: OUT.answers.sqlite)."),
]
EndpointAnswers = Annotated[
    str | None,
    typer.Option(
        "--endpoint-answers",
        metavar="FILE",
        help=f"{_ANSWERS} (default: beside --json or --report, with .answers.sqlite at the end of its name).",
    ),
]
"""Where ``--answers`` is something else."""


def chosen(
    model: str | None,
    endpoint: str | None,
    *,
    api: ApiName | None,
    key_env: str | None,
    concurrency: int | None,
    timeout: float | None,
    answers: str | None = None,
    endpoint_answers: str | None = None,
    beside: str | None = None,
) -> str | EvenrankEndpoint | None:
    """The model that the options name; without ``answers``, an endpoint's are kept beside the file ``beside``.

    Raises EvenrankError for options of an endpoint without one, and for an endpoint without an API.
    """
    from evenrank.io import EvenrankError

    if endpoint is None:
        settings = {"api": api, "key_env": key_env, "concurrency": concurrency, "timeout": timeout}
        settings |= {"answers": answers, "endpoint_answers": endpoint_answers}
        given = [f"`{name}`" for name, value in settings.items() if value is not None]
        if given:
            raise EvenrankError(f"{', '.join(given)}: only with `endpoint`")
        return model
    from dataclasses import replace

    from evenrank import Endpoint

    if api is None:
        raise EvenrankError("`api`: expected cohere, tei or openai with `endpoint`")
    found = Endpoint(endpoint, api, model=model, key=key_env, answers=answers or endpoint_answers)
    return replace(
        found.keeping_beside(beside),
        concurrency=found.concurrency if concurrency is None else concurrency,
        timeout=found.timeout if timeout is None else timeout,
    )


def answers_of(model: object) -> str | None:
    """The file that keeps the answers of an endpoint; None for any other model."""
    found = getattr(model, "answers", None)
    return None if found is None else str(found)
