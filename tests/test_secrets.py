"""No name, password, value in an address or key stands in what is written, whatever its characters."""

from __future__ import annotations

import base64
import json
import shlex
import string
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank import Endpoint, EvenrankError, retrieve_from, write_run
from evenrank._command import redacted_address, running, without_secrets
from evenrank.files import InputError, Provenance
from evenrank.files.provenance import write_card
from loopback import Server, serving

FIRST, LAST = "Zq7", "9xW"
"""How each secret begins and ends: neither part is written."""


def secrets(characters: str) -> st.SearchStrategy[str]:
    return st.text(string.ascii_letters + string.digits + characters, max_size=9).map(lambda text: FIRST + text + LAST)


NAMES = secrets("!$'()*+,;=._~%-|^`")
LOGINS = secrets("!$'()*+,;=._~%-|^`/@")
VALUES = secrets("!$'()*+,;=:@/?._~%-|^`")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def hides(*texts: object) -> bool:
    return not any(part in str(text) for text in texts for part in (FIRST, LAST))


@given(LOGINS, LOGINS, VALUES | secrets("#"), st.sampled_from(["http", "https", "s3"]))
@example(f"{FIRST}{LAST}", f"{FIRST}:@{LAST}", f"{FIRST}'{LAST}", "http")
@example(f"{FIRST}{LAST}", f"{FIRST}@{LAST}", f"{FIRST}/?=(a).'{LAST}'", "s3")
@example(f"{FIRST}{LAST}", f"{FIRST}/{LAST}", f"{FIRST}#{LAST}", "https")
@example(f"{FIRST}{LAST}:80/{LAST}", f"{FIRST}{LAST}", f"{FIRST}{LAST}", "https")
def test_of_an_address_nothing_secret_is_written(name: str, password: str, value: str, scheme: str) -> None:
    name = name.replace("/", "") if scheme == "s3" else name
    url = f"{scheme}://{name}:{password}@h.example/p?token={value}&{FIRST}a{LAST}=="
    assert hides(InputError(url, "no such file"), EvenrankError(f"cannot read {url}: it is gone"))
    with running(["audit", f"new={url}", "--collection", url, f"--qrels={url}"]):
        made = Provenance("evenrank.audit").add("run", url).to_dict()
    assert hides(*(entry["path"] for entry in made["files"]))  # type: ignore[attr-defined]
    words = shlex.split(str(made["command"]))
    assert hides(*words)
    assert words[2].startswith(f"new={scheme}://…@h.example/p?token=…&")
    if scheme == "s3":
        return
    if "/" in name + password:
        # What is before it would be the host.
        with pytest.raises(EvenrankError, match=r"expected a name or password with %2F for each /") as error:
            Endpoint(url, "tei")
        assert hides(error.value)
    else:
        model = Endpoint(url, "tei")
        assert hides(repr(model), model.scorer().facts(), model.name)


REPEATED = (
    *(str, str.upper, " ".join, urllib.parse.quote, urllib.parse.unquote, lambda secret: secret[::-1]),
    *(lambda secret: secret.encode().hex(), lambda secret: base64.b64encode(secret.encode()).decode()),
)


@given(
    NAMES,
    VALUES,
    secrets("!$'()*+,;=:@/?._~%-|^`<>&\"\\"),
    st.sampled_from(REPEATED),
    st.sampled_from([200, 302, 401]),
)
def test_a_server_that_repeats_a_secret(
    server: Server, place: Path, password: str, value: str, key: str, form: object, status: int
) -> None:
    repeated = [form(secret) for secret in (password, value, key)]  # type: ignore[operator]
    for text in repeated:
        server.behave = lambda *_, text=text: (status, {}, {"message": f"no: {text}", "hits": [{"title": text}]})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("THE_KEY", key)
            url = f"http://me:{password}@{server.url[7:]}/?q={{query}}&token={value}"
            with pytest.raises(EvenrankError) as error:
                retrieve_from(url, {"q1": "a"}, key_env="THE_KEY", quiet=True)
        assert hides(error.value, error.value.__cause__)
        assert text not in str(error.value)


@given(NAMES, VALUES, secrets("!$'()*+,;=:@/?._~%-|^`"))
def test_a_card_holds_no_secret(server: Server, place: Path, password: str, value: str, key: str) -> None:
    server.behave = lambda *_: ["d1"]
    url = f"http://me:{password}@{server.url[7:]}/?q={{query}}&token={value}"
    with pytest.MonkeyPatch.context() as patch, running(["retrieve", "q.tsv", "--from", url, "--key-env", "THE_KEY"]):
        patch.setenv("THE_KEY", key)
        run = retrieve_from(url, {"q1": "a"}, key_env="THE_KEY", quiet=True)
        write_run(run, place / "out.run")
        write_card(run.card or {}, str(place / "out.run"), Provenance("evenrank.retrieve"))
    assert hides((place / "out.run").read_text(), run.name)
    card = json.loads((place / "out.run.card.json").read_text())
    assert hides(card["made_by"], *shlex.split(card["command"]))


@pytest.mark.parametrize("address", ["hf://datasets/owner/name@revision/file.tsv", "s3://bucket/run@v2"])
def test_a_revision_in_a_path_is_no_secret(address: str) -> None:
    assert (redacted_address(address), without_secrets(address)) == (address, address)
