"""The top-level commands by name: all that ``uwf --help`` needs to know."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """A top-level command: where it is, and its line in the help."""

    name: str
    module: str
    help: str
    section: str
    attribute: str = "app"
    hidden: bool = False


_BEGIN = "Begin"
_WORK = "Work"
_SHARE = "Share"
_STORE = "Store and configuration"

CATALOG: Final = (
    CatalogEntry(
        name="init",
        module="store.cmd_store",
        attribute="init_app",
        section=_BEGIN,
        help="Create the store this folder would use",
    ),
    CatalogEntry(
        name="setup",
        module="setup.cmd_setup",
        section=_BEGIN,
        help="Choose the agent that does the work, and its model",
    ),
    CatalogEntry(
        name="demo",
        module="store.cmd_demo",
        section=_BEGIN,
        help="Run a workflow to its end in a scratch repository, without a model",
    ),
    CatalogEntry(
        name="prompt",
        module="store.cmd_prompt",
        section=_BEGIN,
        help="Show a short guide for agents (and people)",
    ),
    CatalogEntry(
        name="skill",
        module="store.cmd_prompt",
        section=_BEGIN,
        help="Show a short guide for agents (and people)",
        hidden=True,
    ),
    CatalogEntry(
        name="workflow",
        module="workflow.cmd_workflow",
        section=_WORK,
        help="Check, register and show workflows",
    ),
    CatalogEntry(
        name="thread",
        module="thread_group",
        section=_WORK,
        help="Start, run, read and fork threads",
    ),
    CatalogEntry(
        name="step",
        module="thread.cmd_step",
        section=_WORK,
        help="Look at single steps of a thread",
    ),
    CatalogEntry(
        name="why",
        module="code.cmd_why",
        attribute="why_app",
        section=_WORK,
        help="Say which step wrote a line, and the prompt that led to it",
    ),
    CatalogEntry(
        name="blame",
        module="code.cmd_why",
        attribute="blame_app",
        section=_WORK,
        help="Show a file with the step, or the commit, of each line",
    ),
    CatalogEntry(
        name="bisect",
        module="code.cmd_bisect",
        section=_WORK,
        help="Find the first step whose code makes a command fail",
    ),
    CatalogEntry(
        name="verify",
        module="share.cmd_verify",
        section=_WORK,
        help="Prove threads from git alone",
    ),
    CatalogEntry(
        name="web",
        module="web.cmd_web",
        section=_WORK,
        help="Look at threads in a browser, and act on them",
    ),
    CatalogEntry(
        name="connect",
        module="web.cmd_connect",
        section=_WORK,
        help="Show this store on a hub: a 'uwf web --hub' elsewhere",
    ),
    CatalogEntry(
        name="trust",
        module="share.cmd_trust",
        section=_SHARE,
        help="Say whose signed events run without asking",
    ),
    CatalogEntry(
        name="remote",
        module="share.cmd_remote",
        section=_SHARE,
        help="Name the repositories that threads are shared with",
    ),
    CatalogEntry(
        name="push",
        module="share.cmd_sync",
        attribute="push_app",
        section=_SHARE,
        help="Send threads to a remote",
    ),
    CatalogEntry(
        name="pull",
        module="share.cmd_sync",
        attribute="pull_app",
        section=_SHARE,
        help="Bring a remote's threads, each verified",
    ),
    CatalogEntry(
        name="clone",
        module="share.cmd_sync",
        attribute="clone_app",
        section=_SHARE,
        help="Make a store of a remote's threads",
    ),
    CatalogEntry(
        name="bundle",
        module="share.cmd_bundle",
        attribute="bundle_app",
        section=_SHARE,
        help="Share threads in a file",
    ),
    CatalogEntry(
        name="export",
        module="share.cmd_export",
        section=_SHARE,
        help="Write threads as pages that open without a server",
    ),
    CatalogEntry(
        name="review",
        module="share.cmd_review",
        section=_SHARE,
        help="Have threads reviewed where people review",
    ),
    CatalogEntry(
        name="fleet",
        module="fleet.cmd_fleet",
        section=_SHARE,
        help="See and steer the queue of a remote",
    ),
    CatalogEntry(
        name="worker",
        module="fleet.cmd_worker",
        attribute="worker_app",
        section=_SHARE,
        help="Run threads that are queued on a remote",
    ),
    CatalogEntry(
        name="cas",
        module="store.cmd_cas",
        section=_STORE,
        help="Read and write nodes by their hash",
    ),
    CatalogEntry(
        name="store",
        module="store.cmd_store",
        attribute="store_app",
        section=_STORE,
        help="Say where the store is, or trust one",
    ),
    CatalogEntry(
        name="git",
        module="store.cmd_store",
        attribute="git_app",
        section=_STORE,
        help="Run git inside the store",
    ),
    CatalogEntry(
        name="hooks",
        module="hooks.cmd_hooks",
        section=_STORE,
        help="Install hooks that check workflows and threads",
    ),
    CatalogEntry(
        name="gc",
        module="store.cmd_maintain",
        attribute="gc_app",
        section=_STORE,
        help="Pack the store, so that it is small and fast",
    ),
    CatalogEntry(
        name="reindex",
        module="store.cmd_maintain",
        attribute="reindex_app",
        section=_STORE,
        help="Rebuild the lookup of nodes, steps and threads from git",
    ),
    CatalogEntry(
        name="doctor",
        module="store.cmd_doctor",
        section=_STORE,
        help="Look for what is wrong with the store and the set-up",
    ),
    CatalogEntry(
        name="config",
        module="store.cmd_config",
        section=_STORE,
        help="Show and change settings",
    ),
    CatalogEntry(
        name="log",
        module="store.cmd_log",
        section=_STORE,
        help="Look at the program's own log",
    ),
    CatalogEntry(
        name="completion",
        module="words.cmd_completion",
        section=_STORE,
        help="Print the completion script of a shell",
    ),
)
