"""Secrets told by what they are called and where they stand: rules as data.

What is found here was made up by someone; what issuers give out, known by letters of
its own, stands in :mod:`uwfgit.sync.secrets.rules`.
"""

from __future__ import annotations

from typing import Final

from uwfgit.sync.secrets.checks import (
    ASSIGNED,
    HEX_WORDS,
    QUOTE,
    SECRET_WORDS,
    VALUE,
    WORD_START,
    Rule,
    is_argument,
    is_basic_auth,
    is_filled,
    is_hex_secret,
    is_likely_secret,
    is_password,
    is_random,
    is_url_password,
    make_open,
)

NAMED: Final[tuple[Rule, ...]] = (
    make_open(
        "url-credentials",
        r"://(?P<user>[^\s:/@\"'<>\\]{0,100}):(?!(?P=user)@)"
        r"(?P<secret>[^\s/@\"'<>\\]{3,200})@[\w\[.-]+",
        "://",
        check=is_url_password,
    ),
    make_open(
        "url-credentials",
        r"://(?P<secret>[A-Za-z0-9_-]{20,200})@[\w\[.-]+",
        "://",
        check=is_random,
    ),
    make_open(
        "bearer-token",
        rf"{WORD_START}bearer[ \t]{{1,4}}(?P<secret>[A-Za-z0-9._~+/-]{{16,400}}=*)",
        "bearer",
        check=is_likely_secret,
    ),
    make_open(
        "authorization",
        rf"authorization{QUOTE}[ \t]{{0,8}}[:=][ \t]{{0,8}}{QUOTE}"
        r"(?:token|apikey|api-key|key|bot)[ \t=]{1,4}"
        r"(?P<secret>[A-Za-z0-9._~+/-]{16,400}=*)",
        "authorization",
        check=is_filled,
    ),
    make_open(
        "xml-secret",
        r"<(?:[a-z]{1,20}:)?[\w.-]{0,40}"
        r"(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)[\w.-]{0,20}"
        r"(?:\s[^<>]{0,200})?>(?P<secret>[^<>\s]{8,200})</",
        "<",
        check=is_password,
        probe=("password", "passwd", "pwd", "secret", "token", "key"),
    ),
    make_open(
        "named-secret",
        r"(?:name|key)[\"']?\s{0,4}[:=]\s{0,4}[\"']?[\w.:-]{0,60}"
        r"(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)[\w.:-]{0,20}[\"']?"
        r"[\s,]{1,40}[\"']?value[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
        r"(?P<secret>[^\s\"'`,;<>{}()\[\]\\]{8,200})",
        "name",
        "key",
        check=is_password,
        probe=("value",),
    ),
    make_open(
        "basic-auth",
        rf"{WORD_START}basic[ \t]{{1,4}}(?P<secret>[A-Za-z0-9+/]{{12,400}}={{0,2}})",
        "basic",
        check=is_basic_auth,
    ),
    make_open(
        "password",
        rf"(?<=[\s-])-(?:password|passwd|passphrase) {{1,4}}{QUOTE}"
        rf"(?P<secret>{VALUE}{{8,200}}+)(?!{VALUE})",
        "-password ",
        "-passwd ",
        "-passphrase ",
        check=is_argument,
    ),
    make_open(
        "curl-credentials",
        rf"{WORD_START}curl(?:(?!curl)[^\n\\]|\\[\s\S]){{0,500}}?"
        rf"\s(?:-[a-z]{{0,8}}u ?|--(?:proxy-)?user[ =]){QUOTE}"
        r"(?P<user>[^\s:\"'`\\]{1,100}):(?!//)(?!(?P=user)(?![^\s\"'`]))"
        r"(?P<secret>[^\s\"'`\\]{6,200})",
        "curl",
        check=is_password,
    ),
    make_open(
        "password",
        rf"sshpass {{1,4}}-p ?{QUOTE}(?P<secret>{VALUE}{{6,200}}+)",
        "sshpass ",
        check=is_password,
    ),
    make_open(
        "password",
        rf"mysql(?:dump|admin)? [^\n]{{0,200}}?(?<= )-p{QUOTE}"
        rf"(?P<secret>{VALUE}{{6,200}}+)",
        "mysql",
        check=is_password,
    ),
    make_open(
        "url-credentials",
        r"jdbc:oracle:[a-z]{2,5}:[^\s/@\"']{1,100}/(?P<secret>[^\s/@\"']{4,200})@",
        "jdbc:oracle:",
        check=is_filled,
    ),
    make_open(
        "oauth-token",
        r"git(?:hub|lab)-(?:oauth|token)\"\s{0,8}:\s{0,8}\{\s{0,40}"
        r"\"[\w.-]{1,200}\"\s{0,8}:\s{0,8}\"(?P<secret>[\w-]{16,400})\"",
        "github-oauth",
        "gitlab-oauth",
        "gitlab-token",
        check=is_likely_secret,
    ),
    make_open(
        "generic-secret",
        # A shell's and a Dockerfile's way to set what programs read.
        r"(?:setx|set {1,4}-[gux]{1,3}|env)[ \t]{1,4}\w{0,60}?"
        r"(?:password|passwd|secret|token|api_?key|access_?key|auth_?key)\w{0,20}"
        rf"[ \t]{{1,4}}{QUOTE}(?P<secret>{VALUE}{{8,200}}+)(?!{VALUE})",
        "setx",
        "set ",
        "env",
        check=is_argument,
        probe=("passw", "secret", "token", "key"),
    ),
    make_open(
        "generic-secret",
        rf"-(?:token|secret|(?:api|access|auth|secret)[_-]?key)[ \t]{{1,4}}{QUOTE}"
        rf"(?P<secret>{VALUE}{{8,200}}+)(?!{VALUE})",
        "-token",
        "-secret",
        "-api",
        "-access",
        "-auth",
        check=is_likely_secret,
    ),
    make_open(
        "generic-secret",
        # The arguments of ``define``, ``setenv`` and the like.
        r"(?:passw(?:or)?d|secret|token|(?:api|access|auth|private|secret)[_-]?key)[\"']"
        r"[ \t]{0,8},[ \t]{0,8}[\"'](?P<secret>[^\s\"'`\\]{8,200})[\"'][ \t]{0,8}\)",
        "passw",
        *SECRET_WORDS,
        check=is_likely_secret,
    ),
    make_open(
        "password",
        rf"(?:password|passwd|passphrase|pwd){ASSIGNED}",
        "passw",
        "passphrase",
        "pwd",
        check=is_password,
    ),
    make_open(
        "hex-secret",
        # Bare, as ``secret: 3f25…``, it may be the id of one.
        r"(?:secret[_-]?(?:access[_-]?)?key(?:[_-]?base)?"
        r"|(?:(?<=[a-z0-9])|(?<=[a-z0-9][_-]))secret"
        r"|(?:api|access|auth|private|signing|encryption|master)[_-]?key"
        rf"|(?:access|auth|api|bearer|refresh|session)[_-]?token){QUOTE}\]?"
        rf"[ \t]{{0,8}}(?::=|=>|[:=])[ \t]{{0,8}}{QUOTE}"
        r"(?P<secret>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24,128})"
        r"(?![\w-])",
        *HEX_WORDS,
        check=is_hex_secret,
    ),
    make_open(
        "generic-secret",
        r"(?:secret[_-]?key[_-]?base|secret|credentials?|(?:api|access|auth|private|secret|account|signing"
        # No call of something: ``credentials = encode_all(...)``.
        rf"|encryption|master)[_-]?key|token){ASSIGNED}(?!\()",
        *SECRET_WORDS,
        check=is_likely_secret,
    ),
)
