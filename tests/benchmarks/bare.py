"""The bare program: the least a command over a git repository can be.

A one-command typer script that opens a repository with pygit2. Budgets of
commands are multiples of its time.
"""

import pygit2
import typer


def main(path: str) -> None:
    """Print what HEAD of a repository is."""
    print(pygit2.Repository(path).head.target)  # noqa: T201 - a program's output


if __name__ == "__main__":
    typer.run(main)
