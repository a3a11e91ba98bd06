"""Names of things: what they look like, and what is read out of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from uwfgit.ids import is_thread_id, mint_thread_id, thread_time_ms


@given(now_ms=st.integers(0, 2**48 - 1), randomness=st.binary(min_size=10, max_size=10))
def test_a_thread_id_gives_its_time_and_random_bytes_back(
    now_ms: int, randomness: bytes
) -> None:
    thread = mint_thread_id(now_ms, randomness)

    assert is_thread_id(thread)
    assert thread_time_ms(thread) == now_ms
    assert bytes(ULID.from_str(thread)) == now_ms.to_bytes(6) + randomness
