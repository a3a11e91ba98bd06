"""What secrets look like: rules as data, from the formats their issuers publish.

A rule is asked only about texts in which one of its words stands, so the words
must stand in every match. ``(?P<secret>…)`` is the secret where it is less than
the whole match.
"""

from __future__ import annotations

import re
from typing import Final

from uwfgit.sync.secrets.checks import (
    PEM,
    PEM_END,
    PEM_GAP,
    QUOTE,
    Rule,
    is_basic_auth,
    is_filled,
    is_jwt,
    is_key_block,
    is_random,
    make_open,
    make_token,
)
from uwfgit.sync.secrets.named_rules import NAMED

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="private-key",
        words=("-----BEGIN ",),
        pattern=re.compile(PEM),
        check=is_key_block,
    ),
    Rule(
        name="private-key",
        words=("PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"),
        pattern=re.compile(PEM_END),
        check=is_key_block,
        starts=False,
        back=10_000,
    ),
    Rule(
        name="putty-key",
        words=("PuTTY-User-Key-File",),
        pattern=re.compile(
            # Not beyond the next one, or each is searched for from all before it.
            r"PuTTY-User-Key-File-\d:"
            r"(?:(?!PuTTY-User-Key-File|Private-Lines: \d)[\s\S]){0,4000}+"
            rf"Private-Lines: \d+{PEM_GAP}++(?:[A-Za-z0-9+/=]{{4,}}+{PEM_GAP}*+)++"
        ),
    ),
    make_token(
        "age-key",
        r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{50,}",
        "AGE-SECRET-KEY-1",
    ),
    make_token(
        "aws-access-key",
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
        "AKIA",
        "ASIA",
        "ABIA",
        "ACCA",
    ),
    make_open(
        "aws-secret-key",
        r"(?:aws|amazon)\w{0,20}(?:secret|key)\w{0,20}"
        rf"{QUOTE}[ \t]{{0,8}}[:=]>?[ \t]{{0,8}}{QUOTE}"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        "aws",
        "amazon",
        check=is_random,
    ),
    make_token("google-api-key", r"AIza[0-9A-Za-z_-]{35}", "AIza"),
    make_token("google-oauth-token", r"ya29\.[0-9A-Za-z_-]{20,}", "ya29."),
    make_token("google-oauth-secret", r"GOCSPX-[0-9A-Za-z_-]{24,}", "GOCSPX-"),
    make_token(
        "github-token",
        r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255})",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
    ),
    make_token(
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
    make_token(
        "slack-token",
        r"(?:xox[abeoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,250}"
        r"|xapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{20,})",
        "xox",
        "xapp-",
    ),
    make_open(
        "slack-webhook",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"
        r"(?P<secret>[A-Za-z0-9+/]{20,})",
        "hooks.slack",
    ),
    make_open(
        "discord-webhook",
        r"/api/webhooks/\d{10,}/(?P<secret>[\w-]{50,})",
        "/api/webhooks/",
    ),
    make_token(
        "telegram-token",
        r"(?:bot)?\d{8,10}:AA[A-Za-z0-9_-]{33}",
        ":AA",
        starts=False,
    ),
    make_token("npm-token", r"npm_[A-Za-z0-9]{36}", "npm_"),
    make_open(
        "npm-auth",
        r":_(?:authtoken|auth|password)[ \t]{0,4}=[ \t]{0,4}"
        r"(?P<secret>[^\s$\"']{8,400})",
        ":_auth",
        ":_password",
        check=is_filled,
    ),
    make_open(
        "npm-auth",
        rf"_auth(?:token)?{QUOTE}[ \t]{{0,4}}=[ \t]{{0,4}}{QUOTE}"
        r"(?P<secret>[A-Za-z0-9+/]{12,400}={0,2})",
        "_auth",
        check=is_basic_auth,
    ),
    make_open(
        "docker-auth",
        rf"auth{QUOTE}[ \t]{{0,4}}[:=][ \t]{{0,4}}{QUOTE}"
        r"(?P<secret>[A-Za-z0-9+/]{12,400}={0,2})(?![A-Za-z0-9+/=])",
        'auth"',
        "auth:",
        "auth :",
        check=is_basic_auth,
    ),
    make_open(
        "netrc",
        r"(?:machine\s{1,4}\S{1,200}|default)\s{1,8}login\s{1,4}\S{1,200}\s{1,8}"
        r"password\s{1,4}(?P<secret>\S{6,200})",
        "machine ",
        "default ",
        check=is_filled,
    ),
    make_open(
        "pgpass",
        r":(?:5432|5433|6432):[\w*-]{1,64}:[\w*-]{1,64}:(?P<secret>[^\s:]{6,200})",
        ":5432:",
        ":5433:",
        ":6432:",
        check=is_filled,
    ),
    make_open(
        "url-credentials",
        r":(?P<secret>[^\s@/:\"'`]{6,200})@(?:tcp|unix)\(",
        ":",
        check=is_filled,
        starts=False,
        probe=("@tcp(", "@unix("),
    ),
    make_open(
        "webhook",
        r"(?:webhook\.office\.com/webhookb2/|outlook\.office(?:365)?\.com/webhook/|hooks\.zapier\.com/hooks/catch/\d{1,12}/"
        r"|maker\.ifttt\.com/trigger/[\w-]{1,64}/(?:json/)?with/key/"
        r"|chat\.googleapis\.com/v1/spaces/[\w-]{1,64}/messages\?key=)"
        r"(?P<secret>[\w@./=&%-]{6,400})",
        "webhook.office",
        "outlook.office",
        "hooks.zapier",
        "maker.ifttt",
        "chat.googleapis",
        check=is_filled,
    ),
    make_token("pypi-token", r"pypi-AgE[A-Za-z0-9_-]{50,}", "pypi-AgE"),
    make_token("rubygems-token", r"rubygems_[a-f0-9]{48}", "rubygems_"),
    make_token("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{24,}", "dckr_"),
    make_token(
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
    make_token("anthropic-key", r"sk-ant-[A-Za-z0-9_-]{20,}", "sk-ant-"),
    make_token("openrouter-key", r"sk-or-v1-[a-f0-9]{64}", "sk-or-v1-"),
    make_token(
        "openai-key",
        r"sk-(?:proj|svcacct|admin|None|lf)-[A-Za-z0-9_-]{20,}",
        "sk-",
        check=is_filled,
    ),
    make_token("openai-key", r"sk-[A-Za-z0-9]{20,}", "sk-", check=is_filled),
    make_token("huggingface-token", r"hf_[A-Za-z0-9]{30,}", "hf_", check=is_random),
    make_token("replicate-token", r"r8_[A-Za-z0-9]{37,}", "r8_"),
    make_token("groq-key", r"gsk_[A-Za-z0-9]{48,}", "gsk_"),
    make_token("xai-key", r"xai-[A-Za-z0-9]{60,}", "xai-"),
    make_token("perplexity-key", r"pplx-[A-Za-z0-9]{40,}", "pplx-"),
    make_token("langsmith-key", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}", "lsv2_"),
    make_token("pinecone-key", r"pcsk_[A-Za-z0-9_]{50,}", "pcsk_"),
    make_token("tavily-key", r"tvly-[A-Za-z0-9-]{24,}", "tvly-"),
    make_token("sendgrid-key", r"SG\.[\w-]{16,32}\.[\w-]{16,64}", "SG."),
    make_token("mailgun-key", r"key-[0-9a-f]{32}", "key-"),
    make_token("mailchimp-key", r"[0-9a-f]{32}-us\d{1,2}", "-us", starts=False),
    make_token("twilio-key", r"SK[0-9a-f]{32}", "SK"),
    make_token("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_", starts=False),
    make_token("heroku-key", r"HRKU-AA[\w-]{40,}", "HRKU-"),
    make_token("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp"),
    make_token("square-token", r"sq0(?:atp|csp|idp)-[\w-]{22,43}", "sq0"),
    make_token("linear-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_"),
    make_token(
        "notion-token",
        r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})",
        "ntn_",
        "secret_",
    ),
    make_token("figma-token", r"fig[dou]_[\w-]{40,}", "figd_", "figo_", "figu_"),
    make_token(
        "atlassian-token",
        r"(?:AT(?:ATT|CTT)3[A-Za-z0-9_=-]{100,}|ATBB[A-Za-z0-9]{32,})",
        "ATATT3",
        "ATCTT3",
        "ATBB",
    ),
    make_token("postman-key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}", "PMAK-"),
    make_token("vault-token", r"hv[sbr]\.[\w-]{24,}", "hvs.", "hvb.", "hvr."),
    make_token(
        "terraform-token",
        r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}",
        ".atlasv1.",
        starts=False,
    ),
    make_token("databricks-token", r"dapi[a-f0-9]{32}(?:-\d)?", "dapi"),
    make_token("newrelic-key", r"NRAK-[A-Z0-9]{27}", "NRAK-"),
    make_token(
        "grafana-token",
        r"(?:glc_[A-Za-z0-9+/=]{32,}|glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8})",
        "glc_",
        "glsa_",
        after=r"(?![A-Za-z0-9])",
    ),
    make_token("pulumi-token", r"pul-[a-f0-9]{40}", "pul-"),
    make_token("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}", "dp."),
    make_token("planetscale-token", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}", "pscale_"),
    make_token(
        "supabase-key",
        r"(?:sb[ps]_[a-z0-9]{40}|sb_secret_[\w-]{20,})",
        "sbp_",
        "sbs_",
        "sb_secret_",
    ),
    make_token(
        "sentry-token",
        r"(?:sntrys_[A-Za-z0-9+/=_]{40,}|sntryu_[a-f0-9]{64})",
        "sntrys_",
        "sntryu_",
    ),
    make_token("sonar-token", r"sq[apu]_[a-f0-9]{40}", "sqa_", "sqp_", "squ_"),
    make_token("airtable-token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", "pat"),
    make_token("contentful-token", r"CFPAT-[\w-]{43}", "CFPAT-"),
    make_token("buildkite-token", r"bk[a-z]{2}_[a-f0-9]{40}", "bk"),
    make_token("netlify-token", r"nfp_[A-Za-z0-9]{36,}", "nfp_"),
    make_token(
        "fly-token",
        r"(?:fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/=]{100,})",
        "fo1_",
        "fm1",
        "fm2",
    ),
    make_token(
        "tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}", "tskey-"
    ),
    make_token("artifactory-key", r"AKCp[A-Za-z0-9]{60,}", "AKCp"),
    make_token("crates-token", r"cio[A-Za-z0-9]{32}", "cio", check=is_random),
    make_token("nuget-key", r"oy2[a-z0-9]{43}", "oy2"),
    make_open(
        "azure-storage-key",
        r"(?:account|shared(?:access)?)key=(?P<secret>[A-Za-z0-9+/]{42,88}={0,2})",
        "accountkey=",
        "sharedkey=",
        "sharedaccesskey=",
    ),
    make_open("azure-sas", r"sig=(?P<secret>[A-Za-z0-9%/+]{43,}=?)", "sig="),
    make_token(
        "azure-client-secret",
        r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
        "Q~",
        starts=False,
    ),
    make_token(
        "jwt",
        # Looked for from where a run of such letters begins: from each ``ey`` in a
        # long one would take for ever. An escape may stand before it, or a word.
        r"(?<![A-Za-z0-9_-])(?:|[A-Za-z0-9]{1,5}?|[A-Za-z0-9_-]{0,60}?-)"
        r"(?P<secret>ey[A-Za-z0-9_-]{10,}+\.ey[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{10,}+)",
        ".ey",
        check=is_jwt,
        starts=False,
    ),
    *NAMED,
)
"""In their order: of two that find the same, the first counts."""
