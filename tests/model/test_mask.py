from __future__ import annotations

import json
import time
from base64 import b64encode, encodebytes, urlsafe_b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planted import PASSWORD, PEM, noise
from uwfgit.model.mask import (
    NO_MASK,
    Masker,
    Secret,
    collect_secrets,
    find_name_kind,
    mask_warnings,
)

VALUE = noise("value", 24) + "/+=&'\"é\\"
SHOWN = "[redacted:SOME_KEY]"


@pytest.fixture
def masker() -> Masker:
    return Masker([Secret(name="SOME_KEY", value=VALUE)])


def values(**variables: str) -> list[str]:
    return [secret.value for secret in collect_secrets(variables)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(VALUE, id="raw"),
        pytest.param(json.dumps(VALUE)[1:-1], id="json"),
        pytest.param(json.dumps(VALUE, ensure_ascii=False)[1:-1], id="json, unicode"),
        pytest.param(json.dumps(json.dumps(VALUE)[1:-1])[1:-1], id="json in json"),
        pytest.param(VALUE.replace("'", "''"), id="single-quoted YAML"),
        pytest.param(quote(VALUE, safe=""), id="percent"),
        pytest.param(
            quote(VALUE, safe="").lower().replace(VALUE[:24].lower(), VALUE[:24]),
            id="percent, lower case",
        ),
    ],
)
def test_a_value_is_replaced_in_every_form(masker: Masker, text: str) -> None:
    assert masker.mask(f"before {text} after") == f"before {SHOWN} after"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "x: "])
@pytest.mark.parametrize("after", ["", "z", "zz", " end"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_base64_is_replaced_at_every_alignment(
    masker: Masker, before: str, after: str, encode: type
) -> None:
    text = encode(f"{before}{VALUE}{after}".encode()).decode()

    masked = masker.mask(text)

    assert SHOWN in masked
    # Only the letters that hold bits of the neighbours are left.
    assert len(masked) - len(SHOWN) <= len(encode(f"{before}{after}".encode())) + 4


def test_base64_that_is_cut_into_lines_is_replaced(masker: Masker) -> None:
    text = encodebytes((noise("before", 48) + VALUE + noise("after", 90)).encode())

    assert SHOWN in masker.mask(text.decode())
    assert SHOWN in masker.mask(json.dumps({"data": text.decode()}))


@given(before=st.binary(max_size=9), after=st.binary(max_size=9))
def test_no_text_around_hides_an_encoded_value(before: bytes, after: bytes) -> None:
    masker = Masker([Secret(name="SOME_KEY", value=VALUE)])

    masked = masker.mask(b64encode(before + VALUE.encode() + after).decode())

    assert SHOWN in masked


def test_the_longest_of_nested_values_goes_first() -> None:
    inner, outer = noise("inner", 16), f"key-{noise('inner', 16)}-id"
    masker = Masker(
        [Secret(name="INNER_KEY", value=inner), Secret(name="OUTER_KEY", value=outer)]
    )

    assert (
        masker.mask(f"{outer} {inner}") == "[redacted:OUTER_KEY] [redacted:INNER_KEY]"
    )


def test_keys_hashes_and_statuses_of_a_value_stay(masker: Masker) -> None:
    value = {"$status": VALUE, VALUE: [VALUE, 1, None], "node": "0123456789ABC"}

    assert masker.mask_value(value) == {
        "$status": VALUE,
        VALUE: [SHOWN, 1, None],
        "node": "0123456789ABC",
    }


def test_a_reply_keeps_its_status_line_only_for_a_status_of_the_role() -> None:
    masker = Masker([Secret(name="SOME_KEY", value="needs_more_info")])
    reply = (
        "---\n$status: needs_more_info\n---\nneeds_more_info\nstatus: needs_more_info"
    )

    masked = masker.mask_reply(reply, set(), statuses={"needs_more_info"})
    other = masker.mask_reply(reply, set(), statuses={"done"})

    assert masked == (
        f"---\n$status: needs_more_info\n---\n{SHOWN}\nstatus: needs_more_info"
    )
    assert "needs_more_info" not in other


@pytest.mark.parametrize("cut", range(8, 24, 5))
def test_half_a_value_beside_a_cut_is_replaced(masker: Masker, cut: int) -> None:
    assert masker.mask_cut(f"failed: …{VALUE[cut:]} / end") == f"failed: …{SHOWN} / end"
    assert masker.mask_cut(f"failed: {VALUE[:cut]}…") == f"failed: {SHOWN}…"


def test_a_text_cut_in_many_places_is_masked_in_time() -> None:
    masker = Masker(
        [Secret(name=f"KEY{at}", value=noise(str(at), 40)) for at in range(50)]
    )
    text = "abc…" * 100_000
    began = time.process_time()

    assert masker.mask_cut(text) == text
    assert time.process_time() - began < 5


def test_the_names_of_what_was_found_are_told(masker: Masker) -> None:
    found: set[str] = set()

    masker.mask("nothing here", found)
    assert found == set()
    masker.mask(VALUE, found)

    assert mask_warnings(found) == (f"the value of SOME_KEY was replaced by {SHOWN}",)


def test_without_secrets_text_and_values_are_given_back_as_they_are() -> None:
    value = {"a": [VALUE]}

    assert NO_MASK.mask(VALUE) is VALUE
    assert NO_MASK.mask_value(value) is value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(noise("x", 12), id="twelve letters and digits"),
        pytest.param("wJalrXUtnFEMI/K7MDENG/bPxRfiCY3456789012", id="with slashes"),
        pytest.param("/" + noise("slash", 39), id="begins with a slash"),
        pytest.param("0123456789abcdef0123", id="hex"),
        pytest.param("correct-horse-battery-staple", id="passphrase"),
        pytest.param("xkqjzvwpltrm", id="letters that are no word"),
        pytest.param(PASSWORD, id="password"),
        pytest.param("xkqjzvwpltr7", id="just long enough"),
    ],
)
def test_values_that_are_secrets_are_taken(value: str) -> None:
    assert values(SOME_TOKEN=value) == [value]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("short1", id="short"),
        pytest.param("xkqjzvwplt7", id="just too short"),
        pytest.param("production", id="short word"),
        pytest.param("internationalisation", id="word"),
        pytest.param("insufficient_info", id="two words"),
        pytest.param("1234567890123", id="number"),
        pytest.param("2026-11-28 12:30:00", id="date"),
        pytest.param("/usr/local/share/keys", id="path"),
        pytest.param("~/.ssh/id_ed25519", id="home path"),
        pytest.param("secrets/production/file.txt", id="relative path"),
        pytest.param("https://api.example.com/v1", id="address"),
    ],
)
def test_ordinary_values_are_not_taken(value: str) -> None:
    assert values(SOME_KEY=value) == []


def test_a_few_words_are_a_secret_where_the_name_says_so() -> None:
    words = "correct horse battery staple"

    assert values(MOTTO=words) == []
    assert values(MY_PASSPHRASE=words) == [words]


def test_only_variables_named_like_secrets_or_named_by_config_are_taken() -> None:
    value = noise("v", 20)
    environment = {"MY_key": value, "OTHER": value, "CHOSEN": value, "KEYS": value}

    taken = collect_secrets(environment, names={"CHOSEN"})

    assert [secret.name for secret in taken] == ["MY_key", "CHOSEN"]


def test_parts_of_a_value_that_may_stand_alone_are_taken_too() -> None:
    url = f"postgres://app:{PASSWORD}@db.example.org/x"
    file = json.dumps({"type": "service_account", "private_key": PEM, "id": "x" * 20})
    lines = [
        line for line in PEM.splitlines() if line[:5] != "-----" and len(line) > 15
    ]

    assert values(DB_SECRET=url) == [url, PASSWORD]
    assert PEM.strip() in [value.strip() for value in values(GOOGLE_KEY=file)]
    assert set(lines) <= set(values(SIGNING_KEY=PEM))


def test_a_secret_never_shows_its_value() -> None:
    assert VALUE not in repr(Secret(name="SOME_KEY", value=VALUE))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in (
            "API_KEY", "apiKey", "OPENAI_API_KEY", "STRIPE_SECRET_KEY", "SIGNING_KEY",
            "GITHUB_TOKEN", "authToken", "OAUTHTOKEN", "client_secret", "DBPASSWORD",
            "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "SSH_PRIVATE_KEY", "APIKEY",
            "SSH_PASSPHRASE", "AZURE_CREDENTIALS", "x-api-key",
        )),
        *((name, False) for name in (
            "MONKEY", "SORT_KEY", "PRIMARY_KEY", "HOTKEY", "KEYBOARD", "TURKEY",
            "TOKENIZERS_PARALLELISM", "KEY", "SECRETARY", "PASSWORD_STORE_DIR", "",
            "sortKey", "CACHE_KEY",
        )),
    ],
)  # fmt: skip
def test_a_secret_is_named_by_whole_words(name: str, *, expected: bool) -> None:
    assert (find_name_kind(name) == "secret") is expected


@pytest.mark.parametrize(
    ("name", "value", "is_masked"),
    [
        ("MONKEY", "created_at_descending_order", False),
        ("SORT_KEY", "created_at_descending_order", False),
        ("SORT_KEY", noise("sort", 24), True),
        ("PRIMARY_KEY", "tenant-id/user-id/created-at", False),
        ("MONKEY", noise("ape", 24), False),
        ("API_KEY", "correct-horse-battery-staple", True),
    ],
)
def test_what_some_key_is_its_value_tells(
    name: str, value: str, *, is_masked: bool
) -> None:
    found = [s.value for s in collect_secrets({name: value}, names=())]

    assert found == ([value] if is_masked else [])
