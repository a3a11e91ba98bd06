"""Secrets in the places where people keep them, and what only looks like one."""

from __future__ import annotations

import json
import textwrap
from base64 import b64encode

import pytest

from tests.planted import GITHUB, noise
from uwfgit.sync.secrets.text import scan_json, scan_text

HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
KEY = noise("value", 32)
WORD = noise("word", 9) + "-7Qz"
BASIC = b64encode(f"ada:{WORD}".encode()).decode()

SIGNS = (("=", HEX[:32]), (": ", UUID), ("=", HEX), (' = "', KEY + '"'))
SECRETS = [
    *(
        f"{name}{sign}{value}"
        for name in (
            "API_KEY",
            "api-key",
            "apiKey",
            "client_secret",
            "SECRET_KEY_BASE",
            "SECRET_KEY",
            "access_token",
            "auth_token",
            "AUTH_KEY",
            "private_key",
            "ENCRYPTION_KEY",
            "webhook_secret",
        )
        for sign, value in (
            ("=", HEX[:32]),
            (": ", UUID),
            ("=", HEX),
            (' = "', KEY + '"'),
        )
    ),
    f"export JWT_SECRET={HEX[:48]}",
    f'"clientSecret": "{UUID}"',
    f"machine api.example.org login ada password {WORD}",
    f"machine api.example.org\n  login ada\n  password {WORD}\n",
    f"db.example.org:5432:app:ada:{WORD}",
    f"*:5432:*:ada:{WORD}",
    json.dumps({"auths": {"https://index.docker.io/v1/": {"auth": BASIC}}}),
    f"_auth={BASIC}",
    f"//npm.example.org/:_auth={BASIC}",
    f"<password>{WORD}</password>",
    f"<ns:ApiKey id='1'>{KEY}</ns:ApiKey>",
    f"<clientSecret>{KEY}</clientSecret>",
    f"env:\n  - name: API_KEY\n    value: {KEY}\n",
    f'- name: DB_PASSWORD\n  value: "{WORD}"\n',
    f'{{"name": "AUTH_TOKEN", "value": "{KEY}"}}',
    f"Authorization: token {HEX[:40]}",
    f"Authorization: Token {KEY}",
    f'"authorization": "ApiKey {KEY}"',
    f"Authorization: Bearer {KEY}",
    f"Authorization: Basic {BASIC}",
    f"ada:{WORD}@tcp(db.example.org:3306)/app",
    f"Server=db;Database=app;User Id=ada;Password={WORD};",
    f"Server=db;Uid=ada;Pwd={WORD};",
    f"postgres://ada:{WORD}@db.example.org/app",
    f"amqps://ada:{WORD}@mq.example.org/vhost",
    f"redis://:{WORD}@cache.example.org:6379/0",
    f"mongodb+srv://ada:{WORD}@cluster.example.org/app",
    f"https://acme.webhook.office.com/webhookb2/{UUID}@{UUID}/Incoming/{HEX[:32]}",
    f"https://hooks.zapier.com/hooks/catch/1234567/{noise('zap', 8)}/",
    f"https://maker.ifttt.com/trigger/done/with/key/{noise('ifttt', 22)}",
    f"https://chat.googleapis.com/v1/spaces/AAA/messages?key={KEY}&token={KEY}",
    f"https://discord.com/api/webhooks/123456789012/{noise('d', 68)}",
    # What hides a token.
    "\n".join(textwrap.wrap(GITHUB, 20)),
    "\n".join(f"+{line}" for line in textwrap.wrap(GITHUB, 20)),
    "\n".join(f"> {line}" for line in textwrap.wrap(GITHUB, 24)),
    f"+ token = {GITHUB}",
    f'"{GITHUB[:20]}" + "{GITHUB[20:]}"',
    f"'{GITHUB[:20]}' +\n    '{GITHUB[20:]}'",
    f"{GITHUB[:10]}\u200b{GITHUB[10:]}",
    f"{GITHUB[:10]}\u2060{GITHUB[10:]}",
    f"{GITHUB[:10]}\ufeff{GITHUB[10:]}",
    GITHUB.encode().hex(),
    GITHUB.encode().hex().upper(),
    b64encode(GITHUB.encode()).decode(),
    b64encode(b64encode(f"token is {GITHUB}".encode())).decode(),
]

LOOK_ALIKES = [
    "use AKIA" + "IOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "token: ghp_" + "x" * 36,
    "token: ghp_" + "0" * 36,
    "sk_" + "test_4eC39HqLyjWDarjtT1zdp7dc",
    "export OPENAI_API_KEY=sk-your-key-here",
    "API_KEY=${API_KEY}",
    "API_KEY=<your key>",
    'api_key = os.environ["API_KEY"]',
    "client_secret: {{ client_secret }}",
    "SECRET_KEY_BASE=changeme",
    "secret_key = settings.SECRET_KEY",
    "password: string",
    "password=$PASSWORD",
    "postgres://user:password@localhost:5432/db",
    "machine example.org login me password your-password",
    "db.example.org:5432:app:ada:****",
    "Authorization: token ${GITHUB_TOKEN}",
    "Authorization: Bearer <token>",
    "<password>${db.password}</password>",
    "<token>your-token-here</token>",
    "- name: API_KEY\n  valueFrom:\n    secretKeyRef: {name: app, key: api-key}",
    "- name: API_KEY\n  value: $(API_KEY)",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l a",
    f"commit {HEX[:40]}",
    f"tree {HEX[:40]}\nparent {HEX[:40]}",
    f"sha256:{HEX}",
    f"id: {UUID}",
    f"threadId: {UUID}",
    f"token_count: {1234567890}",
    "max_tokens: 32000",
    "tokens: 1234567890123456",
    "the secret of good code is deletion",
    "primary key: 123456789012",
    "key: value pairs",
    f"Uwf-Node: {HEX[:13].upper()}",
    f"integrity: sha512-{b64encode(bytes(range(64))).decode()}",
    "https://hooks.zapier.com/hooks/catch/",
    "https://example.org/a/very/long/path/with/many/words/in/it",
    "a-very-long-kebab-case-name-that\nis-wrapped-over-two-lines-here",
    "some_long_snake_case_identifier\nanother_long_snake_case_name",
    "auth: required",
    "auth = AuthMiddleware(config)",
    '"auth": "c29tZSB0ZXh0IHdpdGhvdXQgYSBjb2xvbg=="',
    "def get_token(self, name: str) -> Token:",
    "secret = Secret(name='x')",
    "api_key: string, required",
    "--password PASSWORD",
    "passwd: files systemd",
    "PWD=/home/ada/project/some/where",
    "OLDPWD=/home/ada/Projects/Some-Where2",
    "cookie: session=deleted; path=/",
    "x-api-key: {api_key}",
    "ey is not a token. ey.ey.ey",
    "'first part ' + 'second part of a text'",
    "0123456789abcdef0123456789abcdef",
    "access_key_id: the-name-of-a-key",
    "signing: commits are signed by default",
    "encryption: aes-256-gcm",
    "master: main",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_found_where_people_keep_it(text: str) -> None:
    assert scan_text(text), text
    found = scan_json(json.dumps({"body": text}), {"body": text})
    assert found, text


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_is_let_through(text: str) -> None:
    assert scan_text(text) == (), text


def test_the_table_is_long_enough() -> None:
    assert len(SECRETS) >= 90
    assert len(LOOK_ALIKES) >= 60
