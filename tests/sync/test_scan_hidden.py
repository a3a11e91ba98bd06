"""Secrets behind escapes, colours and signs; and what only looks like them."""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.parse import quote

import pytest
from ulid import ULID

from tests.planted import ANTHROPIC, AWS, GITHUB, PASSWORD, PEM, noise
from uwfgit.ids import format_hash
from uwfgit.sync.secrets.text import scan_json, scan_text, unescape

JWT = ".".join(
    [
        b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("="),
        b64encode(b'{"sub":"1234567890"}').decode().rstrip("="),
        noise("jwt", 43),
    ]
)
ESCAPES = (
    *(r"\n", r"\\n", r"\t", r"\r", r"\b", r"\f", r"\u000a", r"\u0009", r"\x0a", r"\0"),
    *("%0A", "%20", "%3D", "%3d"),
    *(
        "\x1b[31m",
        "\x1b[1;38;5;196m",
        "\x1b[m",
        "\x1b[2K",
        r"\u001b[31m",
        r"\x1b[0;32m",
    ),
    *(r"\033[1m", r"\e[36m", "^[[33m"),
)
ULID_ = str(ULID.from_bytes(bytes(range(7, 23))))
HASH = format_hash(0xD1CE_5EED_0DDB_A11D)
OID = "9a4de2affdf269baf455460a4e4e8327a8b8b2c0"
SIGNS = "aB3{}xY9!kLmQ7"


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("secret", [GITHUB, AWS, ANTHROPIC, JWT])
def test_a_token_behind_an_escape_or_a_colour_is_found(
    escape: str, secret: str
) -> None:
    for text in (
        f"it is{escape}{secret}",
        f"{escape}{secret}\\n",
        f"x{escape}{secret}",
    ):
        assert [match.secret for match in scan_text(text)] == [secret], text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(repr(f"token\n{GITHUB}"), id="repr"),
        pytest.param(json.dumps({"stdout": f"token:\n{GITHUB}"}), id="JSON"),
        pytest.param(json.dumps(json.dumps({"a": f"x\t{GITHUB}"})), id="JSON twice"),
        pytest.param(f"a: \x1b[31m{GITHUB}\x1b[0m", id="colour"),
    ],
)
def test_text_in_a_tools_result_hides_no_token(text: str) -> None:
    value = {"turns": [{"result": text}]}

    (found,) = scan_json(json.dumps(value), value)

    assert found.secret == GITHUB


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GITHUB.replace("_", "%5F"), id="percent"),
        pytest.param("".join(f"%{ord(char):02x}" for char in GITHUB), id="all percent"),
        pytest.param(GITHUB.replace("g", "\\u0067", 1), id="u"),
        pytest.param(GITHUB.replace("_", "\\\\x5f", 1), id="x"),
        pytest.param(f"{GITHUB[:9]}\x1b[1m{GITHUB[9:]}", id="colour"),
    ],
)
def test_an_escaped_token_is_found_as_it_stands(text: str) -> None:
    for around in ("{}", "a%20{}", "see\n\x1b[31m{}\x1b[0m%2Fx", "é%41 \\u0041 {} z"):
        (found,) = scan_text(around.replace("{}", text))

        assert (found.rule, found.secret) == ("github-token", text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"password: \x1b[32m{PASSWORD}\x1b[0m", id="value"),
        pytest.param(
            f'\x1b[34;1m"password"\x1b[0m\x1b[1m:\x1b[0m \x1b[0;32m"{PASSWORD}"\x1b[0m',
            id="jq",
        ),
        pytest.param(f"next=password%3D{PASSWORD}", id="query"),
        pytest.param(f"\\u0022password\\u0022: \\u0022{PASSWORD}\\u0022", id="quotes"),
    ],
)
def test_colours_and_escapes_around_a_password_do_not_hide_it(text: str) -> None:
    assert [match.secret for match in scan_text(text)] == [PASSWORD]


@pytest.mark.parametrize("word", ["Bearer", "Basic"])
def test_a_header_behind_an_escaped_line_break_is_found(word: str) -> None:
    code = b64encode(f"user:{PASSWORD}".encode()).decode()

    for before in ("\\n", "\\t", " ", ""):
        (found,) = scan_text(f"{before}{word} {code}")
        assert found.secret == code


@pytest.mark.parametrize("text", ["plain", "é 100% sure", "a\\nb", "%4", "[31m"])
def test_a_text_without_escapes_has_no_other(text: str) -> None:
    assert unescape(text) is None


@pytest.mark.parametrize("sign", ["$", "%", "(", "[", "{", "<", "%24", "$$", "#{"])
def test_a_sign_in_a_password_makes_it_no_stand_in(sign: str) -> None:
    password = SIGNS.format(sign)

    for text in (
        f'PASSWORD="{password}"',
        json.dumps({"password": password}),
        f"https://app:{quote(password)}@db.example/x",
    ):
        assert scan_text(text), text
    if sign not in {"(", "[", "{", "<", "#{"}:
        assert scan_text(f"DB_PASSWORD={password}\n")
        assert scan_text(f"postgres://app:{password}@db.example/x")


VARIABLES = (
    *("$DB_PASSWORD1", "${Db_Password1}", "%Db_Password1%", "{{dbPassword1}}"),
    *("{dbPassword1}", "${DB_USER1}:${dbPass}", "$DB_USER1:$dbPass", "$env:DbPass1"),
    *("${A:-${Bb1}}x", "${{secrets.DbPass1}}", "#{DbPass1}", "$$DbPass1$$"),
    *("prefix-${DbPass1}", "%(Db_Pass1)s", "%s&User=%d1", "$PASS1&user=$USER1"),
    *("<Your_Password1>", "[Your_Password1]", "(Your_Password1)", "$(pass_Show1)"),
)
OTHERS = (
    *("+encodeURI(Pass1)+", ".urlencode($Pass1).", "get_Pass(Name1)", "aA.b1[c]"),
    *("$HOME/.config/App1", "my-app-${DbPass1}-key", "ENC[AES256_GCM,data:Tr7o=]"),
    *("^[A-Za-z0-9]{8,}$", "(?=.*[A-Z])x{8,}1", "[redacted:DB_Password1]"),
    *("$2b$12$KIXaB3xY9kLmQ7uVwXyZ01", "$argon2id$v=19$m=65536$aB3xY9kLmQ7"),
)


@pytest.mark.parametrize("value", [*VARIABLES, *OTHERS])
def test_what_is_filled_in_later_is_no_secret(value: str) -> None:
    texts = [f'password: "{value}"', f"client_secret = '{value}'"]
    if value in VARIABLES:
        texts += [f"DB_PASSWORD={value}", f"a://app:{quote(value)}@db.example/x"]
        texts += [f"postgres://app:{value}@db.example/x"]

    assert [(text, found) for text in texts if (found := scan_text(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"curl -u admin:{PASSWORD} https://x", id="-u"),
        pytest.param(f"curl -sSLu 'admin:{PASSWORD}' https://x", id="joined"),
        pytest.param(f"curl \\\n  --user admin:{PASSWORD} https://x", id="--user"),
        pytest.param(f'\\ncurl https://x --user=\\"admin:{PASSWORD}\\"', id="in JSON"),
        pytest.param(f"mysql --password {PASSWORD} -h x", id="--password"),
        pytest.param(f"gpg --passphrase '{PASSWORD}' -d x", id="--passphrase"),
    ],
)
def test_a_password_given_to_a_command_is_found(text: str) -> None:
    (found,) = scan_text(text)

    assert found.secret == PASSWORD


@pytest.mark.parametrize(
    "text",
    [
        'curl -u "$USER:$PASSWORD1" https://x',
        "curl -u admin:admin https://x",
        "curl -u user:password https://x",
        "curl -u ${USER}:${PASS_1} https://x",
        "curl --user-agent Mozilla/5.0:Firefox123 https://x",
        "curl -L -u https://host1:8443/Path",
        "docker run -u 1000:1000 image1",
        "with --password HTTP/1.1 is refused",
        "use --password Authentication or --password-file F1le",
        "mysql --password $DB_PASSWORD1",
        "a reset-password Endpoint/v1",
    ],
)
def test_a_command_without_a_password_raises_no_alarm(text: str) -> None:
    assert scan_text(text) == ()


@pytest.mark.parametrize(
    "name",
    [
        f"{ULID_}/{HASH}",
        f"{HASH}/{ULID_}",
        f"{HASH},{HASH}",
        f"refs/heads/thread/{ULID_}",
        f"refs/uwf/thread/{ULID_}",
        f"origin/thread/{ULID_}@{OID[:12]}",
        f"threads/{ULID_}/history/000/00001-worker/nodes/{HASH}.json",
        f"{ULID_}:12:{OID[:8]}",
        f"{OID}..{OID[::-1]}",
        f"{OID}^{{commit}}",
        f"{OID}~3",
        f"uwf:{OID}",
    ],
)
def test_what_is_built_of_hashes_raises_no_alarm(name: str) -> None:
    for form in (
        "token: {}",
        "secret={}",
        'password = "{}"',
        "Bearer {}",
        '"key": "{}"',
    ):
        assert scan_text(form.replace("{}", name)) == (), form


def test_a_key_that_a_diff_takes_out_is_found() -> None:
    diff = "".join(f"-{line}\n" for line in PEM.splitlines())

    (found,) = scan_text(f"@@ -1,9 +0,0 @@\n{diff}")

    assert [found.id] == [match.id for match in scan_text(PEM)]


def test_what_stands_in_a_words_middle_is_no_token() -> None:
    for before in ("x", "_", "é1", "mn"):
        assert scan_text(f"{before}{GITHUB}") == ()


def test_a_token_s_head_that_is_nested_without_end_is_read_as_none() -> None:
    head = b64encode(b'{"alg":' + b"[" * 100_000).decode().rstrip("=")
    text = f"{head}.{JWT.partition('.')[2]} {GITHUB}"

    assert [match.secret for match in scan_text(text)] == [GITHUB]
