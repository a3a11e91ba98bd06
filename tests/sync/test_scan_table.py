"""Secrets in the places where people keep them, and what only looks like one."""

from __future__ import annotations

import json
import textwrap
from base64 import b64encode

import pytest

from tests.planted import AWS, GITHUB, PEM, noise
from uwfgit.sync.secrets.text import scan_json, scan_text

HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
KEY = noise("value", 32)
WORD = noise("word", 9) + "-7Qz"


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


BASIC = encoded(f"ada:{WORD}")

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
        for sign, value in SIGNS
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
    # Where else they are written.
    f"docker-compose:\n  environment:\n    - POSTGRES_PASSWORD={WORD}\n",
    f"spring.datasource.password={WORD}",
    f"define('AUTH_KEY', '{KEY}');",
    f"'DB_PASSWORD' => '{WORD}',",
    f"config.secret_key_base = '{HEX}'",
    f"-Djavax.net.ssl.keyStorePassword={WORD}",
    f"setx API_KEY {KEY}",
    f'$env:API_KEY = "{KEY}"',
    f"set -x API_KEY {KEY}",
    f"set -gx OPENAI_API_KEY {KEY}",
    f"ENV API_KEY {KEY}",
    f"ENV API_KEY={UUID}",
    f"export API_KEY := {HEX[:32]}",
    f"https://api.example.org/v1/items?api_key={KEY}&page=2",
    f"https://api.example.org/v1/items?access_token={HEX[:40]}",
    f"X-Api-Key: {HEX[:32]}",
    f"PRIVATE-TOKEN: {noise('gl', 20)}",
    f"curl -u ada:{WORD} https://example.org/a",
    f"curl --user 'ada:{WORD}' https://example.org/a",
    f"sshpass -p '{WORD}' ssh ada@example.org",
    f"mysql -u root -p{WORD} app",
    f"tool --password={WORD}",
    f"tool --api-key {KEY}",
    f"https://x-access-token:{KEY}@github.com/a/b.git",
    f"aws_access_key_id = {AWS}\naws_secret_access_key = {noise('aws', 40)}",
    f"[pypi]\nusername = __token__\npassword = {noise('py', 40)}",
    f":rubygems_api_key: {HEX[:48]}",
    f'[registry]\ntoken = "{noise("cio", 32)}"',
    f'"github-oauth": {{"github.com": "{noise("gho", 40)}"}}',
    f"    client-key-data: {encoded(PEM)}",
    f"kind: Secret\ndata:\n  password: {encoded(WORD)}\n",
    f"apiVersion: v1\nkind: Secret\nstringData:\n  token: {KEY}\n",
    f"jdbc:postgresql://db.example.org/app?user=ada&password={WORD}",
    f"jdbc:oracle:thin:ada/{WORD}@db.example.org:1521/app",
    f"AccountName=acme;AccountKey={encoded(HEX)[:86]}==;EndpointSuffix=core.windows.net",
    f"SharedAccessKeyName=Root;SharedAccessKey={encoded(HEX[:32])}",
    f"https://hooks.slack.com/services/T1234ABCD/B5678EFGH/{noise('sl', 24)}",
    f'{{\\"api_key\\": \\"{KEY}\\"}}',
    json.dumps(json.dumps({"client_secret": UUID})),
    f'<add key="ApiKey" value="{KEY}" />',
    f'<add connectionString="Server=db;Password={WORD};"/>',
    f"<server><username>ada</username><password>{WORD}</password></server>",
    f"machine github.com login ada password {HEX[:40]}",
    f"default login ada password {WORD}",
    f"localhost:5433:*:postgres:{WORD}",
    f"//npm.example.com/:_authToken={UUID}",
    f"_password = {b64encode(WORD.encode()).decode()}",
    f'{{"auths":{{"ghcr.io":{{"auth":"{BASIC}","email":"a@example.org"}}}}}}',
    f'  "identitytoken": "{KEY}"',
    f"Proxy-Authorization: Basic {BASIC}",
    f"curl -H 'Authorization: Bearer {KEY}' https://example.org",
    f"+export API_KEY={HEX[:32]}\n-export API_KEY=\n",
    f"-client_secret: {UUID}\n+client_secret: ${{CLIENT_SECRET}}",
    f"key = '{GITHUB[:16]}' \\\n      '{GITHUB[16:]}'",
    f'"{GITHUB[:12]}" . "{GITHUB[12:]}"',
    f"`{GITHUB[:20]}`+`{GITHUB[20:]}`",
    f'"{GITHUB[:20]}"+"{GITHUB[20:30]}"+"{GITHUB[30:]}"',
    f"    {GITHUB[:24]}\n    {GITHUB[24:]}",
    f"# {GITHUB[:24]}\n# {GITHUB[24:]}",
    f"{GITHUB[:5]}\u200c{GITHUB[5:9]}\u200d{GITHUB[9:]}",
    f"{GITHUB[:10]}\u00ad{GITHUB[10:]}",
    " ".join(GITHUB.encode().hex()[i : i + 2] for i in range(0, 80, 2)),
    "\\x" + "\\x".join(GITHUB.encode().hex()[i : i + 2] for i in range(0, 80, 2)),
    b64encode(b64encode(GITHUB.encode())).decode(),
    "\n".join(
        b64encode(
            (
                f"the token of this machine is {GITHUB}, keep it safe and sound " * 2
            ).encode()
        ).decode()[i : i + 76]
        for i in range(0, 200, 76)
    ),
    f"amqp://ada:{WORD}@mq.example.org:5672/",
    f"mysql://root:{WORD}@127.0.0.1/app",
    f"smtp://ada%40example.org:{WORD}@smtp.example.org:587",
    f"https://{KEY}@o12345.ingest.sentry.io/12345",
    f"https://outlook.office.com/webhook/{UUID}@{UUID}/IncomingWebhook/{HEX[:32]}",
    f"https://discordapp.com/api/webhooks/123456789012345678/{noise('dd', 68)}",
    f"https://api.telegram.org/bot123456789:AA{noise('tg', 33)}/sendMessage",
    f"SENTRY_AUTH_TOKEN={HEX}",
    f"TWILIO_AUTH_TOKEN={HEX[:32]}",
    f"DJANGO_SECRET_KEY='{noise('dj', 50)}'",
    f"cookie_secret = {HEX[:32]}",
    f"signing_secret: {HEX[:32]}",
    f"refresh_token: {noise('rt', 43)}",
    f"id_rsa_passphrase: {WORD}",
    f"passphrase={WORD}",
    f"vault_token: hvs.{noise('hv', 24)}",
    f"npm_{noise('npm', 36)}",
    f"glpat-{noise('gp', 20)}",
    f"hf_{noise('hf', 34)}",
    f"dop_v1_{HEX}",
    f"sk-ant-api03-{noise('ant', 93)}-AA",
    f"xoxb-123456789012-123456789012-{noise('xo', 24)}",
    f"AIza{noise('ai', 35)}",
    f"SG.{noise('s1', 22)}.{noise('s2', 43)}",
    f"sk_live_{noise('sl', 24)}",
    f"github_pat_{noise('g1', 22)}_{noise('g2', 59)}",
    f"pypi-AgEIcHlwaS5vcmc{noise('pp', 80)}",
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
    'tool --api-key "$API_KEY"',
    "tool --token TOKEN",
    "tool --secret-name the-name-of-one",
    "ENV API_KEY unset",
    "set -x API_KEY (cat ~/.key)",
    "setx PATH C:\\tools\\bin",
    "environment secret handling is described below",
    "define('AUTH_KEY', 'put your unique phrase here');",
    'assert headers.get("token", "not-there-at-all")',
    "sshpass -p $PASS ssh ada@example.org",
    "sshpass -f ~/.password ssh ada@example.org",
    "mysql -u root -p app",
    "mysqldump --single-transaction -p$MYSQL_PWD app",
    "docker run -p8080:80 mysql",
    "jdbc:oracle:thin:@//db.example.org:1521/app",
    "jdbc:oracle:thin:user/${DB_PASSWORD}@db.example.org:1521/app",
    '"github-oauth": {"github.com": "your-token"}',
    '"gitlab-token": {"gitlab.example.org": ""}',
    "default login name and password rules",
    "https://outlook.office.com/webhook/",
    "00:1b:44:11:3a:b7 00:1b:44:11:3a:b8 00:1b:44:11:3a:b9 00:1b:44:11:3a:b0",
    "'one-of-two' . 'two-of-two'",
    "`a-template` + `another-template`",
    "'first of two'\n    'second of two'",
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
    assert len(SECRETS) >= 120
    assert len(LOOK_ALIKES) >= 60
