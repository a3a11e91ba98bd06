"""The code beside the thread: snapshots of work trees, and what they can tell.

The code repository keeps what a step changed, as a chain of commits a thread under
``refs/uwf/code/``; the user's index, branches, stash, reflogs and hooks are never
touched. This room knows neither agents nor the engine.
"""
