"""``config secure``: API keys move out of the configuration, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.cli.store.securing import write_privately
from uwfgit.config.dotenv import parse_dotenv
from uwfgit.errors import ConfigError

KEY = "sk-0123456789abcdefghijklmnop"
OTHER = "pk-zyxwvutsrqponmlkjihgfedcba"
CONFIG = f"""\
# My settings
limits: {{ maxSteps:   7 }}

providers:   # all of them
  openai:
    baseUrl: "https://a"   # theirs
    apiKey: "{KEY}"  # from the wallet
  my-own.2:
    # one line
    apiKeyEnv: OWN
    apiKey: {OTHER}
    baseUrl: https://b
defaultAgent:  stdio:x
"""
SECURED = """\
# My settings
limits: { maxSteps:   7 }

providers:   # all of them
  openai:
    baseUrl: "https://a"   # theirs
    apiKeyEnv: OPENAI_API_KEY  # from the wallet
  my-own.2:
    # one line
    apiKeyEnv: OWN
    baseUrl: https://b
defaultAgent:  stdio:x
"""


@pytest.fixture
def config(home: Path) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    return home / "config.yaml"


@pytest.fixture
def dotenv(home: Path) -> Path:
    return home / ".env"


def test_keys_move_and_all_else_stays(uwf: Uwf, config: Path, dotenv: Path) -> None:
    config.write_text(CONFIG)
    dotenv.write_text("# mine\nexport A=1")
    dotenv.chmod(0o644)

    done = uwf("config", "secure", "--json")

    assert done.code == 0
    assert done.json == {
        "file": str(dotenv),
        "moved": [
            {"key": "providers.openai.apiKey", "variable": "OPENAI_API_KEY"},
            {"key": "providers.my-own.2.apiKey", "variable": "OWN"},
        ],
    }
    assert done.err == ""
    assert config.read_text() == SECURED
    assert dotenv.read_text() == (
        f"# mine\nexport A=1\nOPENAI_API_KEY={KEY}\nOWN={OTHER}\n"
    )
    assert {file.stat().st_mode & 0o777 for file in (config, dotenv)} == {0o600}
    assert {file.name for file in config.parent.iterdir()} == {"config.yaml", ".env"}


def test_what_moved_is_said_without_the_value(
    uwf: Uwf, config: Path, dotenv: Path
) -> None:
    config.write_text(CONFIG)

    done = uwf("config", "secure", "-v")

    assert done.out == (
        f"providers.openai.apiKey: moved to OPENAI_API_KEY in {dotenv}\n"
        f"providers.my-own.2.apiKey: moved to OWN in {dotenv}\n"
    )
    assert KEY not in done.err
    assert OTHER not in done.err


def test_a_second_time_changes_nothing(uwf: Uwf, config: Path, dotenv: Path) -> None:
    config.write_text(CONFIG)
    uwf("config", "secure")
    before = (config.read_bytes(), dotenv.read_bytes())

    text, data = uwf("config", "secure"), uwf("config", "secure", "--json")

    assert (text.code, text.out) == (0, "")
    assert "no API key stands in" in text.err
    assert data.json == {"file": str(dotenv), "moved": []}
    assert (config.read_bytes(), dotenv.read_bytes()) == before
    assert "config secure" not in uwf("config", "list").err


@pytest.mark.parametrize("content", [None, "", "# nothing\n", "providers: {p: {}}\n"])
def test_where_no_key_is_no_file_is_made(
    uwf: Uwf, config: Path, dotenv: Path, content: str | None
) -> None:
    if content is not None:
        config.write_text(content)

    assert uwf("config", "secure").code == 0

    assert not dotenv.exists()
    assert config.exists() is (content is not None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            f"providers: {{p: {{apiKey: {KEY}, baseUrl: x}}}} # all\n",
            "providers: {p: {apiKeyEnv: P_API_KEY, baseUrl: x}} # all\n",
            id="on-one-line",
        ),
        pytest.param(
            f"providers: {{p: {{apiKeyEnv: P_API_KEY, apiKey: {KEY}}}}}\n",
            "providers: {p: {apiKeyEnv: P_API_KEY}}\n",
            id="the-last-of-a-line",
        ),
        pytest.param(
            f"providers:\r\n  p:\r\n    apiKey: '{KEY}' # k\r\n# end",
            "providers:\r\n  p:\r\n    apiKeyEnv: P_API_KEY # k\r\n# end",
            id="breaks-of-windows",
        ),
        pytest.param(
            f"\ufeffproviders:\n  p:\n    apiKey: {KEY}\n",
            "\ufeffproviders:\n  p:\n    apiKeyEnv: P_API_KEY\n",
            id="a-byte-order-mark",
        ),
        pytest.param(
            f"providers:\n  p:\n    apiKey: |-\n      {KEY}\n    baseUrl: x\n",
            "providers:\n  p:\n    apiKeyEnv: P_API_KEY\n    baseUrl: x\n",
            id="a-block",
        ),
        pytest.param(
            f"providers:\n  p:\n    apiKeyEnv:\n    # c\n    apiKey: {KEY}\n",
            "providers:\n  p:\n    apiKeyEnv: P_API_KEY\n    # c\n",
            id="a-name-that-is-empty",
        ),
        pytest.param(
            f"providers:\n  p: &p\n    apiKey: {KEY}\n  q: *p\n",
            "providers:\n  p: &p\n    apiKeyEnv: P_API_KEY\n"
            "  q: { apiKeyEnv: Q_API_KEY }\n",
            id="an-alias",
        ),
    ],
)
def test_every_form_of_the_file_is_edited_in_place(
    uwf: Uwf, config: Path, dotenv: Path, before: str, after: str
) -> None:
    config.write_bytes(before.encode())

    done = uwf("config", "secure")

    assert (done.code, done.err) == (0, "")
    assert config.read_bytes().decode() == after
    assert set(parse_dotenv(dotenv.read_text()).values()) == {KEY}


def test_a_variable_with_another_value_is_not_overwritten(
    uwf: Uwf, config: Path, dotenv: Path
) -> None:
    config.write_text(CONFIG)
    dotenv.write_text(f"OWN={KEY}\n")

    done = uwf("config", "secure", "--json")

    assert (done.code, done.out) == (1, "")
    assert done.error["code"] == "config"
    assert "OWN has another value" in done.error["message"]
    assert KEY not in done.err
    assert OTHER not in done.err
    assert config.read_text() == CONFIG
    assert dotenv.read_text() == f"OWN={KEY}\n"


@pytest.mark.parametrize("line", ["OWN=", f"OWN={OTHER}", f"export OWN='{OTHER}' # x"])
def test_an_empty_variable_or_the_same_value_is_no_obstacle(
    uwf: Uwf, config: Path, dotenv: Path, line: str
) -> None:
    config.write_text(CONFIG)
    dotenv.write_text(f"{line}\n")

    assert uwf("config", "secure").code == 0

    assert dotenv.read_text().startswith(f"{line}\n")
    assert dotenv.read_text().count(OTHER) == 1
    assert parse_dotenv(dotenv.read_text()) == {"OPENAI_API_KEY": KEY, "OWN": OTHER}


def test_another_value_in_the_environment_is_told(
    uwf: Uwf, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(CONFIG)
    monkeypatch.setenv("OWN", "another-value")

    done = uwf("config", "secure")

    assert done.code == 0
    assert done.err.count("warning: ") == 1
    assert "OWN has another value in the environment" in done.err
    assert "another-value" not in done.err


def test_where_the_value_still_stands_is_told(uwf: Uwf, config: Path) -> None:
    config.write_text(f"# was {KEY}\nproviders: {{p: {{apiKey: {KEY}}}}}\n")

    done = uwf("config", "secure")

    assert done.code == 0
    assert "providers.p.apiKey also stands in line 1" in done.err
    assert KEY not in done.err


def test_a_link_to_the_file_stays_a_link(
    uwf: Uwf, config: Path, tmp_path: Path
) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text(CONFIG)
    config.symlink_to(real)

    uwf("config", "secure")

    assert config.is_symlink()
    assert real.read_text() == SECURED


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("a: [\n", id="no-yaml"),
        pytest.param("providers: {p: {apiKey: 12345678901234}}\n", id="a-number"),
        pytest.param(f"providers: {{p: {{apiKey: {KEY}, apiKeyEnv: 1}}}}\n", id="name"),
        pytest.param(
            f"providers: {{p: {{apiKey: {KEY}, apiKeyEnv: 'a b'}}}}\n", id="two-words"
        ),
    ],
)
def test_what_cannot_be_moved_is_one_error_and_nothing_changes(
    uwf: Uwf, config: Path, dotenv: Path, content: str
) -> None:
    config.write_text(content)

    done = uwf("config", "secure", "--json")

    assert done.code == 1
    assert done.error["code"] == "config"
    assert KEY not in done.err
    assert config.read_text() == content
    assert not dotenv.exists()


def test_set_leaves_a_link_a_link_too(uwf: Uwf, config: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("limits: {maxSteps: 1}\n")
    config.symlink_to(real)

    uwf("config", "set", "limits.maxSteps", "7")

    assert config.is_symlink()
    assert "7" in real.read_text()


def test_what_is_no_file_is_not_replaced(config: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    config.symlink_to(pipe)

    with pytest.raises(ConfigError, match="it is not a file"):
        write_privately(config, b"a: 1\n")

    assert pipe.is_fifo()
