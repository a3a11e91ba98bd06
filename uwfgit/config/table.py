"""The closed table of configuration keys: one row a key, which everything reads."""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

KeyPath = tuple[str, ...]
ValueType = Literal["text", "integer", "number", "words", "tools", "model", "remote"]
Layer = Literal["user", "repository"]
USER: Final[tuple[Layer, ...]] = ("user",)
REPOSITORY: Final[tuple[Layer, ...]] = ("repository",)
BOTH: Final[tuple[Layer, ...]] = ("user", "repository")

ALIAS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What an agent may be called, since its name becomes an author's."""
REMOTE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")


class Key(Struct, frozen=True, kw_only=True):
    """One key; ``*`` in the path stands for a name the user chooses."""

    path: KeyPath
    type: ValueType
    layers: tuple[Layer, ...] = USER
    minimum: float | None = None
    choices: tuple[str, ...] = ()
    about: str = ""

    def __str__(self) -> str:
        return ".".join("<name>" if part == "*" else part for part in self.path)


def _key(
    dotted: str,
    type_: ValueType = "text",
    *,
    layers: tuple[Layer, ...] = USER,
    minimum: float | None = None,
    choices: tuple[str, ...] = (),
    about: str,
) -> Key:
    path = tuple(dotted.split("."))
    return Key(
        path=path,
        type=type_,
        layers=layers,
        minimum=minimum,
        choices=choices,
        about=about,
    )


ABOVE_ZERO: Final = 0.001

KEYS: Final = (
    _key(
        "agents.*.kind",
        about="Its kind; `adapter` when only a command is given.",
    ),
    _key(
        "agents.*.command", about="The program to run, as one word or a command line."
    ),
    _key(
        "agents.*.args",
        "words",
        about="Arguments added after the ones the kind itself gives.",
    ),
    _key(
        "agents.*.env.*",
        about="A variable this agent gets besides those every agent gets.",
    ),
    _key("agents.*.model", about="The model the agent is told to use."),
    _key(
        "agents.*.tools",
        "tools",
        about="The tools it may use; `none` makes a plain LLM of kind `builtin`.",
    ),
    _key(
        "agents.*.maxTurns",
        "integer",
        minimum=1,
        about="How many turns a run may take.",
    ),
    _key(
        "agents.*.timeoutSeconds",
        "number",
        minimum=ABOVE_ZERO,
        about="How long a run of this agent may take, in seconds.",
    ),
    _key("agents.*.script", about="The file of replies of kind `scripted`."),
    _key(
        "agents.*.url", about="Where a `gateway` listens, or a `builtin` one's API is."
    ),
    _key("agents.*.host", about="The same as `url`, as older files say it."),
    _key("agents.*.gateway", about="The agent that a gateway is asked for."),
    _key("agents.*.workflow", about="The workflow that plays, of kind `workflow`."),
    _key(
        "agents.*.folders",
        "words",
        about="Folders its file tools may use besides the step's (kind `builtin`).",
    ),
    _key(
        "defaultAgent",
        layers=BOTH,
        about="The agent of every role that no other setting names one for.",
    ),
    _key(
        "agentOverrides.*.*",
        layers=BOTH,
        about="The agent of one role of one workflow.",
    ),
    _key("providers.*.baseUrl", about="Where the API is, up to and with its version."),
    _key("providers.*.apiKeyEnv", about="The environment variable that holds the key."),
    _key(
        "providers.*.apiKey",
        about="The key itself; `uwf config secure` moves it to `.env`.",
    ),
    _key("models.*", "model", about="A model, as `provider/name`."),
    _key("models.*.provider", about="The provider of a model."),
    _key("models.*.name", about="What its provider calls the model."),
    _key("defaultModel", about="The model of whatever names none."),
    _key("modelOverrides.*", about="The model of one use, such as `extract`."),
    _key(
        "supervise.every",
        "integer",
        minimum=1,
        about="After how many steps of a run its supervisor looks at it.",
    ),
    _key("supervise.model", about="The model that supervises runs."),
    _key("supervise.agent", about="The agent that supervises runs, for a model."),
    _key("summarize.model", about="The model that summarises threads at their end."),
    _key("summarize.agent", about="The agent that summarises them, for a model."),
    _key(
        "concurrency.maxRunning",
        "integer",
        minimum=1,
        about="How many steps run at once in a store.",
    ),
    _key(
        "limits.maxSteps",
        "integer",
        layers=BOTH,
        minimum=1,
        about="How many steps `exec --all`, or a worker's claim, takes at most.",
    ),
    _key(
        "limits.maxCostUsd",
        "number",
        layers=BOTH,
        minimum=ABOVE_ZERO,
        about="How much money a thread may cost, its children included.",
    ),
    _key(
        "limits.maxTokens",
        "integer",
        layers=BOTH,
        minimum=1,
        about="How many tokens a thread may read and write, its children included.",
    ),
    _key(
        "limits.maxTurns",
        "integer",
        layers=BOTH,
        minimum=1,
        about="How many turns a thread's agents may take, its children's included.",
    ),
    _key(
        "limits.maxMinutes",
        "number",
        layers=BOTH,
        minimum=ABOVE_ZERO,
        about="How long a thread's agents may work, its children's included.",
    ),
    _key(
        "limits.depth",
        "integer",
        layers=BOTH,
        minimum=0,
        about="How many threads deep one thread may call others.",
    ),
    _key(
        "limits.idleSeconds",
        "number",
        layers=BOTH,
        minimum=ABOVE_ZERO,
        about="How long an agent may be silent, in seconds.",
    ),
    _key(
        "limits.wallSeconds",
        "number",
        layers=BOTH,
        minimum=ABOVE_ZERO,
        about="How long a run may take, in seconds; no limit when absent.",
    ),
    _key(
        "limits.corrections",
        "integer",
        layers=BOTH,
        minimum=0,
        about="How often a reply that does not fit is sent back.",
    ),
    _key(
        "limits.contextChars",
        "integer",
        layers=BOTH,
        minimum=0,
        about="How many characters of earlier steps a prompt holds.",
    ),
    _key(
        "limits.snapshotSeconds",
        "number",
        layers=BOTH,
        minimum=ABOVE_ZERO,
        about="How long a snapshot of the code may take, in seconds.",
    ),
    _key(
        "workflowPaths",
        "words",
        layers=BOTH,
        about="Folders to look for workflows in, after the repository's own.",
    ),
    _key(
        "record.toolResults",
        layers=BOTH,
        choices=("full", "head", "none"),
        about="How much of what tools gave back is kept.",
    ),
    _key(
        "record.mask",
        choices=("known", "none"),
        about="Whether values of secrets that uwf knows are replaced in what is kept.",
    ),
    _key(
        "record.code",
        layers=BOTH,
        choices=("keep", "none"),
        about="Whether the code around each step is kept in its own repository.",
    ),
    _key(
        "record.session",
        layers=BOTH,
        choices=("keep", "none"),
        about="Whether the sessions of agents are kept beside their threads.",
    ),
    _key(
        "trust",
        "words",
        about="Whose signed threads run unasked: principals, not mail addresses.",
    ),
    _key("trustedRoots", "words", about="Folders a foreign thread's steps may run in."),
    _key(
        "hub.secret", about="What `uwf connect` shows a hub, unless `UWF_HUB_SECRET`."
    ),
    _key(
        "hub.timeoutSeconds",
        "number",
        minimum=ABOVE_ZERO,
        about="How long a hub waits for a client's answer, in seconds.",
    ),
    _key(
        "notify",
        about="A shell command run when a run ends, waits for a person or meets a "
        "limit; it finds UWF_THREAD, UWF_STATUS and UWF_MESSAGE.",
    ),
    _key("identity.name", about="Your name, where git knows none."),
    _key("identity.email", about="Your address, where git knows none."),
    _key(
        "share",
        "remote",
        layers=REPOSITORY,
        about="The remote of this repository that threads are shared with.",
    ),
)
"""Every key there is."""
