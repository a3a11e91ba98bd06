"""What counts as a secret, and what must not."""

from __future__ import annotations

import json
import random
import textwrap
import uuid
from base64 import b64encode, encodebytes
from collections.abc import Callable

import pytest
from ulid import ULID

from tests.planted import ANTHROPIC, AWS, GITHUB, PASSWORD, PEM, URL, noise
from uwfgit.ids import format_hash
from uwfgit.sync.secrets.rules import RULES
from uwfgit.sync.secrets.text import Match, scan_json, scan_text


def rules(text: str) -> list[str]:
    return [match.rule for match in scan_text(text)]


def only(text: str) -> Match:
    (match,) = scan_text(text)
    return match


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("private-key", PEM),
        ("aws-access-key", AWS),
        ("aws-secret-key", f"aws_secret_access_key = {noise('aws', 40)}"),
        ("google-api-key", "AI" + "za" + noise("google", 35)),
        ("google-oauth-token", "ya" + "29." + noise("google", 60)),
        ("google-oauth-secret", "GOCS" + "PX-" + noise("google", 28)),
        ("github-token", GITHUB),
        ("github-token", "github" + "_pat_" + noise("fine", 22) + "_" + noise("g", 59)),
        ("gitlab-token", "gl" + "pat-" + noise("gitlab", 20)),
        ("slack-token", "xo" + "xb-123456789012-" + noise("slack", 24)),
        ("slack-webhook", f"hooks.sl\x61ck.com/services/T0/B0/{noise('s', 24)}"),
        ("discord-webhook", f"discord.com/api/webhooks/123456789012/{noise('d', 68)}"),
        ("telegram-token", "1234567890:A" + "A" + noise("telegram", 33)),
        ("npm-token", "npm" + "_" + noise("npm", 36)),
        ("npm-auth", f"//registry.example.org/:_authToken={noise('npm', 30)}"),
        ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmc" + noise("pypi", 80)),
        ("stripe-key", "sk_" + "live_" + noise("stripe", 24)),
        ("stripe-key", "rk_" + "test_" + noise("stripe", 24)),
        ("anthropic-key", ANTHROPIC),
        ("openai-key", "sk-" + "proj-" + noise("openai", 60)),
        ("openai-key", "sk-" + noise("openai", 48)),
        ("huggingface-token", "hf" + "_" + noise("hf", 34)),
        ("sendgrid-key", "SG" + f".{noise('a', 22)}.{noise('b', 43)}"),
        ("twilio-key", "SK" + "0123456789abcdef" * 2),
        ("digitalocean-token", "do" + "p_v1_" + "0123456789abcdef" * 4),
        ("vault-token", "hv" + "s." + noise("vault", 30)),
        ("docker-token", "dckr" + "_pat_" + noise("docker", 27)),
        ("azure-storage-key", f"AccountKey={noise('azure', 86)}=="),
        ("jwt", ".".join(
            [
                b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("="),
                b64encode(b'{"sub":"1234567890"}').decode().rstrip("="),
                noise("jwt", 43),
            ]
        )),
        ("url-credentials", URL),
        ("url-credentials", f"https://{noise('only', 30)}@git.example.org/x"),
        ("bearer-token", f"Authorization: Bearer {noise('bearer', 32)}"),
        ("basic-auth", f"Basic {b64encode(b'user:' + PASSWORD.encode()).decode()}"),
        ("password", 'password = "Tr0ub4dor&3"'),
        ("password", f"DB_PASSWORD={PASSWORD}"),
        ("password", f'{{\\"password\\": \\"{PASSWORD}\\"}}'),
        ("generic-secret", f"client_secret: {noise('generic', 24)}"),
        ("generic-secret", f"export API_KEY='{noise('generic', 24)}'"),
    ],
)  # fmt: skip
def test_a_secret_is_told_by_its_rule(rule: str, text: str) -> None:
    assert rules(f"It says:\n{text}\nand goes on") == [rule]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("token = get_token()", id="a call"),
        pytest.param("password: getpass.getpass", id="a name"),
        pytest.param("secret: ${SECRET}", id="a variable"),
        pytest.param("api_key = <your-api-key>", id="a stand-in"),
        pytest.param("API_KEY=xxxxxxxxxxxxxxxxxxxx", id="crossed out"),
        pytest.param("password: [redacted:BUILD_PASSWORD]", id="masked"),
        pytest.param("token: [redacted:generic-secret]", id="redacted"),
        pytest.param("max_tokens: 128000, inputTokens: 1234567890123", id="counts"),
        pytest.param("the token is in secrets/production/file.txt", id="prose"),
        pytest.param("secret = config.secret_manager_value", id="an attribute"),
        pytest.param("https://example.org:8080/a@b", id="a port"),
        pytest.param("git@github.com:org/repo.git", id="an ssh address"),
        pytest.param("postgres://postgres:postgres@localhost/x", id="user as password"),
        pytest.param("-----BEGIN PRIVATE KEY----- starts one " * 3, id="prose 2"),
        pytest.param("uwf start --token-limit 5 -p 'secret: none'", id="a call 2"),
        pytest.param("credentials = standard_b64encode(user)", id="a call 3"),
        pytest.param("user text -----END PRIVATE KEY-----", id="prose 3"),
        pytest.param("sk-learn, task-abcdefghijklmnopqrstuvwxyz1", id="words with sk-"),
    ],
)  # fmt: skip
def test_ordinary_text_is_no_secret(text: str) -> None:
    assert scan_text(text) == ()


DICE = random.Random(7)  # noqa: S311 - the same in every run


def _hash() -> str:
    return format_hash(DICE.getrandbits(64))


def _ulid() -> str:
    return str(ULID.from_bytes(DICE.randbytes(16)))


def _image() -> str:
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    return b64encode(head + DICE.randbytes(DICE.randrange(60, 900))).decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_hash, id="hashes"),
        pytest.param(_ulid, id="ULIDs"),
        pytest.param(lambda: DICE.randbytes(20).hex(), id="oids"),
        pytest.param(lambda: DICE.randbytes(32).hex(), id="sha256 oids"),
        pytest.param(lambda: str(uuid.UUID(bytes=DICE.randbytes(16))), id="UUIDs"),
        pytest.param(lambda: f"{_ulid()}/{_hash()}", id="steps' nodes"),
        pytest.param(lambda: f"refs/heads/thread/{_ulid()}", id="refs"),
        pytest.param(lambda: f"{_ulid()}@{DICE.randbytes(6).hex()}", id="at oids"),
        pytest.param(_image, id="images"),
        pytest.param(lambda: f"data:image/png;base64,{_image()}", id="image addresses"),
        pytest.param(lambda: "\n".join(textwrap.wrap(_image(), 76)), id="in lines"),
    ],
)  # fmt: skip
def test_ten_thousand_names_and_images_raise_no_alarm(make: Callable[[], str]) -> None:
    forms = (
        "{}",
        "see {}.",
        'oid "{}"',
        "token: {}",
        "secret={}",
        'api_id = "{}"',
        "password: {}",
        "Bearer {}",
        "https://example.org/{}?token={}",
    )

    alarms = [
        (text, found)
        for number in range(10_000)
        if (text := forms[number % len(forms)].replace("{}", make()))
        and (found := scan_text(text))
    ]

    assert alarms == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(PEM), id="json"),
        pytest.param(json.dumps(json.dumps({"key": PEM})), id="json in json"),
        pytest.param(PEM.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(textwrap.indent(PEM, "> "), id="quoted"),
        pytest.param(textwrap.indent(PEM, "# "), id="comment"),
        pytest.param(b64encode(PEM.encode()).decode(), id="base64"),
        pytest.param(encodebytes(b"key: " + PEM.encode()).decode(), id="base64 lines"),
    ],
)
def test_a_private_key_has_one_id_however_it_is_written(text: str) -> None:
    assert only(text).id == only(PEM).id


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PEM[200:], id="its end"),
        pytest.param(f"it broke: …{PEM[-300:]}", id="in a message"),
        pytest.param(json.dumps({"error": f"…{PEM[-300:]}"}), id="in JSON"),
        pytest.param(textwrap.indent(PEM[200:], "> "), id="quoted"),
        pytest.param(b64encode(PEM[200:].encode()).decode()[6:], id="base64"),
        pytest.param(PEM[:-300], id="its beginning"),
    ],
)
def test_a_part_of_a_private_key_is_found(text: str) -> None:
    found = only(text)

    assert found.rule == "private-key"
    assert "it broke" not in found.secret


PUBLIC = {
    "certificate": "CERTIFICATE",
    "public key": "PUBLIC KEY",
    "ssh signature": "SSH SIGNATURE",
    "PGP signature": "PGP SIGNATURE",
}


def _block(kind: str) -> str:
    lines = "\n".join(textwrap.wrap(b64encode(DICE.randbytes(600)).decode(), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"


def _code(size: int) -> str:
    return b64encode(DICE.randbytes(size)).decode()


@pytest.mark.parametrize(
    "make",
    [
        *(
            pytest.param(lambda kind=kind: _block(kind), id=name)
            for name, kind in PUBLIC.items()
        ),
        pytest.param(
            lambda: f'"integrity": "sha512-{_code(64)}", "license": "MIT"',
            id="npm lock",
        ),
        pytest.param(lambda: f"github.com/a/token v1.2.3 h1:{_code(32)}", id="go.sum"),
        pytest.param(
            lambda: f"six==1 \\\n    --hash=sha256:{DICE.randbytes(32).hex()}", id="pip"
        ),
        pytest.param(
            lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{_code(32)[:43]} me@host",
            id="ssh public key",
        ),
        pytest.param(
            lambda: f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB{_code(390)} me@host",
            id="ssh public key of RSA",
        ),
        pytest.param(
            lambda: f"|1|{_code(20)}|{_code(20)} ssh-ed25519 AAAAC3Nza{_code(40)}",
            id="known_hosts",
        ),
        pytest.param(
            lambda: f"src:url(data:font/woff2;base64,{_code(900)}) format('woff2')",
            id="font",
        ),
        pytest.param(
            lambda: (
                f"index {DICE.randbytes(4).hex()[:7]}..{DICE.randbytes(4).hex()[:7]} "
                "100644\n--- a/token.py\n+++ b/token.py\n-token = load_token(path)\n"
                "+token = os.environ['TOKEN']\n+password = ask_password(user)\n"
            ),
            id="diff",
        ),
        pytest.param(
            lambda: (
                "!function(e,t){var n=t.token||e.getToken(),r={secret:n.secret,"
                f'key:"{DICE.randbytes(4).hex()}",password:n.password}}}}(window,document);'
            ),
            id="minified code",
        ),
        pytest.param(
            lambda: json.dumps(
                {
                    "id": f"toolu_{_code(18)}",
                    "session_id": str(uuid.UUID(bytes=DICE.randbytes(16))),
                    "signature": f"EuYBCkQY{_code(300)}",
                    "next_token": DICE.randbytes(4).hex(),
                }
            ),
            id="agent's own ids",
        ),
        pytest.param(
            lambda: "header.payload.signature eyJhbGciOi… xxxxx.yyyyy.zzzzz",
            id="no JWT",
        ),
    ],
)
def test_what_is_public_raises_no_alarm(make: Callable[[], str]) -> None:
    alarms = [(text, found) for _ in range(200) if (found := scan_text(text := make()))]

    assert alarms == []


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_an_encoded_token_is_found_at_every_alignment(before: str) -> None:
    encoded = b64encode(f"{before} {GITHUB} and more".encode()).decode()

    assert only(f"path/to/{encoded}").id == only(GITHUB).id


def test_what_is_shown_of_a_secret_is_four_characters_at_most() -> None:
    long, short = only(GITHUB), only("https://me:s3cr3t@example.org/")

    assert long.shown == GITHUB[:4] + "…"
    assert short.shown == "s…"
    assert GITHUB not in repr(long)
    assert GITHUB not in long.id


def test_lines_are_counted_where_the_secret_begins() -> None:
    text = f"one\ntwo {GITHUB}\nthree\n{PEM}"

    assert [(m.rule, m.line) for m in scan_text(text)] == [
        ("private-key", 4),
        ("github-token", 2),
    ]


def test_json_is_read_and_its_lines_counted() -> None:
    value = {"a": [{"body": f"x\ny {GITHUB}"}], "password": PASSWORD, "z": PEM}
    text = json.dumps(value, indent=2)

    found = {m.rule: text.splitlines()[m.line - 1] for m in scan_json(text, value)}

    assert found.keys() == {"github-token", "password", "private-key"}
    assert '"body"' in found["github-token"]
    assert '"password"' in found["password"]
    assert '"z"' in found["private-key"]


def test_a_diff_and_a_quoted_shell_word_hide_no_token() -> None:
    for text in (
        f"+{GITHUB}",
        f"-{GITHUB}",
        f"'{GITHUB}'",
        f"/{GITHUB}/x",
        f"={GITHUB}-",
    ):
        assert rules(text) == ["github-token"], text


def test_every_rule_names_words_in_the_case_it_looks_for() -> None:
    for rule in RULES:
        assert rule.words
        assert not rule.fold or [w.lower() for w in rule.words] == [*rule.words]


def test_a_text_whose_lower_case_is_longer_is_scanned_in_place() -> None:
    text = "İ" * 50 + f" PASSWORD={PASSWORD}"

    assert only(text).secret == PASSWORD
