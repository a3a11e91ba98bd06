"""What secrets look like: rules as data, from the formats their issuers publish.

A rule is asked only about texts in which one of its words stands, so the words
must stand in every match. ``(?P<secret>…)`` is the secret where it is less than
the whole match.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from uwfgit.sync.scan_checks import (
    is_basic_auth,
    is_filled,
    is_jwt,
    is_key_block,
    is_likely_secret,
    is_password,
    is_random,
    is_url_password,
)

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one kind of secret is told.

    Attributes:
        name: What stands in reports, and in ``[redacted:NAME]``.
        words: One of them stands in every match.
        pattern: Finds candidates.
        check: Tells a secret from what only looks like one.
        starts: Every match begins with one of the words.
        fold: The words are lower case and stand in the lower-case text.
        bounded: A match may not begin in the middle of a word.
        back: So far before one of the words a match may begin; 0: anywhere.
    """

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check | None = None
    starts: bool = True
    fold: bool = False
    bounded: bool = False
    back: int = 0


# No letter or digit may stand before or behind a token, or it is a piece of
# something longer. What stands before is looked at afterwards: a
# pattern that starts with a word is found many times faster.
_AFTER = r"(?![A-Za-z0-9_])"


def _token(
    name: str,
    pattern: str,
    *words: str,
    check: Check | None = None,
    starts: bool = True,
    after: str = _AFTER,
) -> Rule:
    return Rule(
        name=name,
        words=words,
        pattern=re.compile(pattern + after),
        check=check,
        starts=starts,
        bounded=True,
    )


def _open(
    name: str,
    pattern: str,
    *words: str,
    check: Check | None = None,
) -> Rule:
    return Rule(
        name=name,
        words=tuple(word.lower() for word in words),
        pattern=re.compile(pattern, re.IGNORECASE),
        check=check,
        fold=True,
    )


# Line breaks however escaped, and what quotes and comments put before a line.
_PEM_GAP = r"(?:[\s>#|*]|\\+[nrt])"
_PEM: Final = (
    r"-----BEGIN (?P<kind>(?:[A-Z0-9]{1,20} ){0,4})PRIVATE KEY(?: BLOCK)?-----"
    rf"{_PEM_GAP}*+(?:[A-Za-z-]{{1,30}}: [^\n\\]{{0,200}}{_PEM_GAP}++){{0,6}}"
    rf"(?:[A-Za-z0-9+/=]++{_PEM_GAP}*+){{1,2000}}"
    r"(?:-----END (?P=kind)PRIVATE KEY(?: BLOCK)?-----)?"
)
# What is left of a key when the text before it was cut: an end of an error's output.
_PEM_END: Final = (
    rf"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{{16,}}+{_PEM_GAP}*+){{1,100}}+"
    rf"(?:[A-Za-z0-9+/=]{{1,15}}+{_PEM_GAP}*+)?+"
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
)

_QUOTE = r"""(?:\\*["'`])?"""
_SECRET_WORDS: Final = (
    "secret",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "auth_key",
    "authkey",
    "private_key",
    "privatekey",
    "account_key",
    "accountkey",
    "signing",
    "encryption",
    "master",
    "token",
    "credential",
)
_VALUE = r"""[^\s"'`,;<>{}()\[\]\\]"""
_ASSIGNED: Final = (
    rf"(?:_?(?:value|id))?{_QUOTE}\]?[ \t]{{0,8}}(?::=|=>|[:=])[ \t]{{0,8}}"
    r"""(?:\\*["'`](?P<quoted>[^\s"'`\\]{8,200})\\*["'`]"""
    rf"|(?P<secret>{_VALUE}{{8,200}}+)(?!{_VALUE}))"
)

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="private-key",
        words=("-----BEGIN ",),
        pattern=re.compile(_PEM),
        check=is_key_block,
    ),
    Rule(
        name="private-key",
        words=("PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"),
        pattern=re.compile(_PEM_END),
        check=is_key_block,
        starts=False,
        back=10_000,
    ),
    Rule(
        name="putty-key",
        words=("PuTTY-User-Key-File",),
        pattern=re.compile(
            r"PuTTY-User-Key-File-\d:[\s\S]{0,4000}?Private-Lines: \d+"
            rf"{_PEM_GAP}++(?:[A-Za-z0-9+/=]{{4,}}+{_PEM_GAP}*+)++"
        ),
    ),
    _token(
        "age-key",
        r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{50,}",
        "AGE-SECRET-KEY-1",
    ),
    _token(
        "aws-access-key",
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
        "AKIA",
        "ASIA",
        "ABIA",
        "ACCA",
    ),
    _open(
        "aws-secret-key",
        r"(?:aws|amazon)\w{0,20}(?:secret|key)\w{0,20}"
        rf"{_QUOTE}[ \t]{{0,8}}[:=]>?[ \t]{{0,8}}{_QUOTE}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "aws",
        "amazon",
        check=is_random,
    ),
    _token("google-api-key", r"AIza[0-9A-Za-z_-]{35}", "AIza"),
    _token("google-oauth-token", r"ya29\.[0-9A-Za-z_-]{20,}", "ya29."),
    _token("google-oauth-secret", r"GOCSPX-[0-9A-Za-z_-]{24,}", "GOCSPX-"),
    _token(
        "github-token",
        r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255})",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
    ),
    _token(
        "gitlab-token",
        r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct|oas|wt)-"
        r"[A-Za-z0-9_.-]{20,300}|GR1348941[A-Za-z0-9_-]{20})",
        *(
            f"gl{kind}-"
            for kind in (
                "pat dt rt rtr cbt ptt ft imt agent soat ffct oas wt".split()  # noqa: SIM905 - a list of words
            )
        ),
        "GR1348941",
    ),
    _token(
        "slack-token",
        r"(?:xox[abeoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,250}"
        r"|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{20,})",
        "xox",
        "xapp-",
    ),
    _open(
        "slack-webhook",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
        r"(?P<secret>[A-Za-z0-9+/]{20,})",
        "hooks.slack",
    ),
    _open(
        "discord-webhook",
        r"/api/webhooks/\d{10,}/(?P<secret>[\w-]{50,})",
        "/api/webhooks/",
    ),
    _token("telegram-token", r"\d{8,10}:AA[A-Za-z0-9_-]{33}", ":AA", starts=False),
    _token("npm-token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    _open(
        "npm-auth",
        r":_(?:authtoken|auth|password)[ \t]{0,4}=[ \t]{0,4}(?P<secret>[^\s$\"']{8,})",
        ":_auth",
        ":_password",
        check=is_filled,
    ),
    _token("pypi-token", r"pypi-AgE[A-Za-z0-9_-]{50,}", "pypi-AgE"),
    _token("rubygems-token", r"rubygems_[a-f0-9]{48}", "rubygems_"),
    _token("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,}", "dckr_"),
    _token(
        "stripe-key",
        r"(?:(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/=]{24,})",
        "sk_live_",
        "sk_test_",
        "sk_prod_",
        "rk_live_",
        "rk_test_",
        "rk_prod_",
        "whsec_",
    ),
    _token("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", "sk-ant-"),
    _token("openrouter-key", r"sk-or-v1-[a-f0-9]{64}", "sk-or-v1-"),
    _token(
        "openai-key",
        r"sk-(?:proj|svcacct|admin|None|lf)-[A-Za-z0-9_-]{20,}",
        "sk-",
        check=is_filled,
    ),
    _token("openai-key", r"sk-[A-Za-z0-9]{20,}", "sk-", check=is_filled),
    _token("huggingface-token", r"hf_[A-Za-z0-9]{30,}", "hf_", check=is_random),
    _token("replicate-token", r"r8_[A-Za-z0-9]{37,}", "r8_"),
    _token("groq-key", r"gsk_[A-Za-z0-9]{48,}", "gsk_"),
    _token("xai-key", r"xai-[A-Za-z0-9]{60,}", "xai-"),
    _token("perplexity-key", r"pplx-[A-Za-z0-9]{40,}", "pplx-"),
    _token("langsmith-key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_"),
    _token("pinecone-key", r"pcsk_[A-Za-z0-9_]{50,}", "pcsk_"),
    _token("tavily-key", r"tvly-[A-Za-z0-9-]{24,}", "tvly-"),
    _token("sendgrid-key", r"SG\.[\w-]{16,32}\.[\w-]{16,64}", "SG."),
    _token("mailgun-key", r"key-[0-9a-f]{32}", "key-"),
    _token("mailchimp-key", r"[0-9a-f]{32}-us\d{1,2}", "-us", starts=False),
    _token("twilio-key", r"SK[0-9a-f]{32}", "SK"),
    _token("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_", starts=False),
    _token("heroku-key", r"HRKU-AA[\w-]{40,}", "HRKU-"),
    _token("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp"),
    _token("square-token", r"sq0(?:atp|csp|idp)-[\w-]{22,43}", "sq0"),
    _token("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_"),
    _token(
        "notion-token",
        r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})",
        "ntn_",
        "secret_",
    ),
    _token("figma-token", r"fig[dou]_[\w-]{40,}", "figd_", "figo_", "figu_"),
    _token(
        "atlassian-token",
        r"(?:AT(?:ATT|CTT)3[A-Za-z0-9_=-]{100,}|ATBB[A-Za-z0-9]{32,})",
        "ATATT3",
        "ATCTT3",
        "ATBB",
    ),
    _token("postman-key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    _token("vault-token", r"hv[sbr]\.[\w-]{24,}", "hvs.", "hvb.", "hvr."),
    _token(
        "terraform-token",
        r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}",
        ".atlasv1.",
        starts=False,
    ),
    _token("databricks-token", r"dapi[a-f0-9]{32}(?:-\d)?", "dapi"),
    _token("newrelic-key", r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    _token(
        "grafana-token",
        r"(?:glc_[A-Za-z0-9+/=]{32,}|glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8})",
        "glc_",
        "glsa_",
        after=r"(?![A-Za-z0-9])",
    ),
    _token("pulumi-token", r"pul-[a-f0-9]{40}", "pul-"),
    _token("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}", "dp."),
    _token("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}", "pscale_"),
    _token(
        "supabase-key",
        r"(?:sb[ps]_[a-z0-9]{40}|sb_secret_[\w-]{20,})",
        "sbp_",
        "sbs_",
        "sb_secret_",
    ),
    _token(
        "sentry-token",
        r"(?:sntrys_[A-Za-z0-9+/=_]{40,}|sntryu_[a-f0-9]{64})",
        "sntrys_",
        "sntryu_",
    ),
    _token("sonar-token", r"sq[apu]_[a-f0-9]{40}", "sqa_", "sqp_", "squ_"),
    _token("airtable-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", "pat"),
    _token("contentful-token", r"CFPAT-[\w-]{43}", "CFPAT-"),
    _token("buildkite-token", r"bk[a-z]{2}_[a-f0-9]{40}", "bk"),
    _token("netlify-token", r"nfp_[A-Za-z0-9]{36,}", "nfp_"),
    _token(
        "fly-token",
        r"(?:fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/=]{100,})",
        "fo1_",
        "fm1",
        "fm2",
    ),
    _token("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}", "tskey-"),
    _token("artifactory-key", r"AKCp[A-Za-z0-9]{60,}", "AKCp"),
    _token("crates-token", r"cio[A-Za-z0-9]{32}", "cio", check=is_random),
    _token("nuget-key", r"oy2[a-z0-9]{43}", "oy2"),
    _open(
        "azure-storage-key",
        r"(?:account|shared(?:access)?)key=(?P<secret>[A-Za-z0-9+/]{42,88}={0,2})",
        "accountkey=",
        "sharedkey=",
        "sharedaccesskey=",
    ),
    _open("azure-sas", r"sig=(?P<secret>[A-Za-z0-9%/+]{43,}=?)", "sig="),
    _token(
        "azure-client-secret",
        r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
        "Q~",
        starts=False,
    ),
    _token(
        "jwt",
        r"ey[A-Za-z0-9_-]{10,}\.ey[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}",
        ".ey",
        check=is_jwt,
        starts=False,
    ),
    _open(
        "url-credentials",
        r"://(?P<user>[^\s:/@\"'<>\\]{0,100}):(?!(?P=user)@)"
        r"(?P<secret>[^\s/@\"'<>\\]{3,200})@[\w\[.-]+",
        "://",
        check=is_url_password,
    ),
    _open(
        "url-credentials",
        r"://(?P<secret>[A-Za-z0-9_-]{20,200})@[\w\[.-]+",
        "://",
        check=is_random,
    ),
    _open(
        "bearer-token",
        r"\bbearer[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{16,400}=*)",
        "bearer",
        check=is_likely_secret,
    ),
    _open(
        "basic-auth",
        r"\bbasic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{12,400}={0,2})",
        "basic",
        check=is_basic_auth,
    ),
    _open(
        "password",
        rf"(?:password|passwd|passphrase){_ASSIGNED}",
        "passw",
        "passphrase",
        check=is_password,
    ),
    _open(
        "generic-secret",
        r"(?:secret|credentials?|(?:api|access|auth|private|secret|account|signing"
        # No call of something: ``credentials = encode_all(...)``.
        rf"|encryption|master)[_-]?key|token){_ASSIGNED}(?!\()",
        *_SECRET_WORDS,
        check=is_likely_secret,
    ),
)
"""In their order: of two that find the same, the first counts."""
