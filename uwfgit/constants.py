"""Limits and names that the format fixes; the only place for their values."""

from __future__ import annotations

from typing import Final

FORMAT_VERSION: Final = 1
RULES_VERSION: Final = 1
"""Version of the routing and template rules a StartNode pins."""
WORKFLOW_VERSION: Final = 1

START: Final = "$START"
END: Final = "$END"
SUSPEND: Final = "$SUSPEND"
STATUS: Final = "$status"
NEW: Final = "new"
RESUME: Final = "resume"
ERROR_STATUS: Final = "error"
INPUTS: Final = "_inputs"
INJECTED: Final = ("_body", "_prompt", "_thread", INPUTS)

MAX_SAFE_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 200
"""Nesting of a payload; deeper ones would exhaust the JSON reader's stack."""
MAX_BLOB_BYTES: Final = 16 * 1024 * 1024
MAX_STATE_BYTES: Final = 64 * 1024
MAX_MESSAGE_BYTES: Final = 16 * 1024
MAX_TREE_ENTRIES: Final = 2_000
MAX_STEPS: Final = 99_999
"""Five digits in a step folder's name, a hundred steps a bucket."""
MAX_RUNS: Final = 1_000
"""Steps, attempts, pokes and holds in the folder of one step."""
MAX_NESTED: Final = 16
"""Threads below threads; ``limits.depth`` allows far less."""
MAX_LINKED_NODES: Final = 1_000
MAX_LINKED_BYTES: Final = 64 * 1024 * 1024
MAX_PERSON_BYTES: Final = 1_024
"""Name, and mail address, of whoever records an event."""
MAX_SUMMARY_BYTES: Final = 16 * 1024
MAX_TIME: Final = 2**32
"""Seconds since 1970; what verify accepts as a commit time."""

SUSPEND_CHARS: Final = 2_000
"""Length of ``suspendMessage``, so that thread.json stays within its bound."""
SUBJECT_CHARS: Final = 72
QUOTE_LINES: Final = 20
QUOTE_CHARS: Final = 200

YAML_MAX_BYTES: Final = 1024 * 1024
YAML_MAX_NODES: Final = 100_000
YAML_MAX_DEPTH: Final = 100

TEMPLATE_MAX_SECTIONS: Final = 16
TEMPLATE_MAX_TAGS: Final = 100_000
TEMPLATE_MAX_BYTES: Final = 1024 * 1024

WORK_SECONDS: Final = 5.0
"""Processor time for checking an answer or a condition; an honest one takes one."""
WORK_BYTES: Final = 512 * 1024 * 1024
"""Memory for the same, beyond what the process has."""
READ_CHARS: Final = 4_000
"""How much ``thread read`` and ``step read`` show unless they are told."""
