"""A ranker behind an address: what it is and how it is asked."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evenrank.io import EvenrankError
from evenrank.io.atomic import is_stream
from evenrank.io.errors import quoted, readable
from evenrank.io.ranges import check_ranges

from .endpoint_address import Address
from .endpoint_apis import APIS, ENDINGS, Api

if TYPE_CHECKING:
    from .endpoint_scorers import EndpointScorer


@dataclass(frozen=True)
class Endpoint:
    """A ranker that a server computes: a ``model`` for :func:`evenrank.rerank`, :func:`evenrank.load_ranker`,
    :func:`evenrank.position_sensitivity` and PyTerrier.

    ``url``: the full address, or the part before ``/rerank`` (``https://api.cohere.com/v2``, ``http://localhost:8080``)
    or ``/embeddings`` (``https://api.openai.com/v1``). ``api``: "cohere" (also Jina's, vLLM's, infinity's), "tei" (Text
    Embeddings Inference), or "openai": vectors of texts, whose cosine is the score. ``model``: the server's name of it.

    ``key``: the *name* of the environment variable with the key, which is sent as a bearer token and written nowhere.
    ``concurrency``: requests in flight. ``timeout``: seconds for an answer. ``query_prompt``, ``document_prompt``: put
    before each text. A request holds ``batch_size`` passages or texts of the call that scores them.

    ``answers``: an SQLite file that keeps the answers, so that nothing is asked twice; without one,
    :func:`evenrank.rerank` keeps them in ``OUT.answers.sqlite`` beside its ``out``. It holds digests and scores or
    vectors, no texts.

    Servers that are busy (status 429), fail (500 and above) or cannot be reached are asked up to 7 times, after 1, 2,
    4, … seconds or as long as they ask for. Raises EvenrankError for a setting out of range or a variable without a
    key; the calls that score, for a server that does not answer, or not with one finite number per passage.
    """

    url: str
    api: Api
    _: KW_ONLY
    model: str | None = None
    key: str | None = None
    concurrency: int = 4
    timeout: float = 60
    answers: str | os.PathLike[str] | None = None
    query_prompt: str | None = None
    document_prompt: str | None = None

    def __post_init__(self) -> None:
        if self.api not in APIS:
            raise EvenrankError(f"`api`: expected cohere, tei or openai, found {quoted(self.api)}")
        check_ranges(concurrency=self.concurrency, timeout=self.timeout)
        if self.model is not None and not (isinstance(self.model, str) and self.model.strip()):
            raise EvenrankError(f"`model`: expected the server's name of a model, found {quoted(self.model)}")
        self.address  # noqa: B018 - an error now rather than later

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        return f"Endpoint({self.address.shown!r}, {self.api!r}{model})"

    @cached_property
    def address(self) -> Address:
        """Where it is asked, and what may be written of that."""
        return Address.of(self.url, ENDINGS[self.api])

    @property
    def name(self) -> str:
        """The name of the runs that it ranks: the last part of the model's name; without one, server and port."""
        return readable((self.model or "").rstrip("/").rpartition("/")[2].strip() or self.address.place)

    def secret(self) -> str | None:
        """The key. Raises EvenrankError, without what ``key`` says (it may be the key itself), if there is none."""
        if self.key is None:
            return None
        found = os.environ.get(self.key, "").strip()
        if not found:
            raise EvenrankError("`key`: expected the name of an environment variable with the key, found none there")
        if not (found.isascii() and found.isprintable()):
            raise EvenrankError("`key`: expected a key of ASCII characters on one line in the environment variable")
        return found

    def keeping_beside(self, out: str | os.PathLike[str] | None) -> Endpoint:
        """The same with its answers kept in ``OUT.answers.sqlite``, unless they have a file or ``out`` is none here."""
        if self.answers is not None or out is None or "://" in os.fspath(out) or is_stream(out):
            return self
        return replace(self, answers=Path(out).with_name(f"{Path(out).name}.answers.sqlite"))

    def prompted(self, query_prompt: str | None, document_prompt: str | None) -> Endpoint:
        """The same with other prompts; None: its own."""
        query = self.query_prompt if query_prompt is None else query_prompt
        document = self.document_prompt if document_prompt is None else document_prompt
        return replace(self, query_prompt=query, document_prompt=document)

    def scorer(self) -> EndpointScorer:
        """What scores pairs with it."""
        from .endpoint_scorers import EmbeddingEndpointScorer, RerankEndpointScorer

        self.secret()
        return EmbeddingEndpointScorer(self) if self.api == "openai" else RerankEndpointScorer(self)


def shown_address(model: object) -> str | None:
    """The address of an endpoint or its scorer, without what is secret in it; None for any other model."""
    endpoint = getattr(model, "endpoint", model)
    return endpoint.address.shown if isinstance(endpoint, Endpoint) else None
