from hypothesis import given
from hypothesis import strategies as st

from backend.storage.layout import (
    ENTRY_BYTES,
    Place,
    block_file_name,
    first_height_of,
    place_from,
)
from tests.cases import each_of

U32, U64 = 2**32 - 1, 2**64 - 1

places = st.builds(
    Place,
    hash=st.binary(min_size=32, max_size=32),
    file=st.integers(0, U32),
    offset=st.integers(0, U64),
    length=st.integers(0, U32),
    first_transaction=st.integers(0, U64),
    transaction_count=st.integers(0, U32),
)


def test_an_entry_is_64_bytes_in_the_documented_order() -> None:
    packed = Place(bytes(range(32)), 1, 2, 3, 4, 5).packed()
    assert ENTRY_BYTES == 64
    assert packed[:60] == (
        bytes(range(32))
        + b"\x01\0\0\0"
        + b"\x02\0\0\0\0\0\0\0"
        + b"\x03\0\0\0"
        + b"\x04\0\0\0\0\0\0\0"
        + b"\x05\0\0\0"
    )


@given(places, st.integers(0, ENTRY_BYTES * 8 - 1), st.binary(min_size=1, max_size=8))
def test_a_packed_place_comes_back_and_no_other_bytes_are_one(
    place: Place, bit: int, more: bytes
) -> None:
    data = place.packed()
    assert place_from(data) == place
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    for other in (bytes(flipped), data[: bit // 8], data + more, bytes(ENTRY_BYTES)):
        assert place_from(other) is None


@given(st.integers(0, U32))
def test_the_name_of_a_block_file_gives_its_first_height(height: int) -> None:
    assert first_height_of(block_file_name(height)) == height


@given(st.lists(st.integers(0, 10**10 - 1)))
def test_names_of_block_files_sort_like_their_heights(heights: list[int]) -> None:
    assert sorted(map(block_file_name, heights)) == [block_file_name(h) for h in sorted(heights)]


@each_of(
    "name",
    [
        "heights.dat",
        "heights.dat.tmp",
        "blocks-.dat",
        "blocks-1.dat",
        "blocks-00000000000.dat",
        "blocks-000000000a.dat",
        "blocks-+000000001.dat",
        "blocks-٠٠٠٠٠٠٠٠٠٠.dat",
        "blocks-0000000000.dat.tmp",
        "torn-blocks-0000000000-577.bin",
        "",
    ],
)
def test_other_names_are_not_block_files(name: str) -> None:
    assert first_height_of(name) is None
