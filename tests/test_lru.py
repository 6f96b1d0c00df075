"""The cache: within its bytes, what was used least recently goes first, never another's value."""

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from backend.base.lru import LONGEST_REMEMBERED, LruCache, remembered

ENTRY_BYTES = 300
VALUES = [bytes([number]) * (1000 * number) for number in range(8)]  # the higher the longer
SIZES = [len(value) + ENTRY_BYTES for value in VALUES]


def cache_of(capacity_bytes: int) -> LruCache[int, bytes]:
    return LruCache(capacity_bytes, lambda value: len(value) + ENTRY_BYTES)


@given(
    capacity=st.integers(0, sum(SIZES)),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=40),
)
def test_the_least_used_go_first_and_the_bound_is_never_exceeded(
    capacity: int, steps: list[tuple[bool, int]]
) -> None:
    kept, expected, evicted = cache_of(capacity), list[int](), 0
    for is_kept, number in steps:
        is_there = number in expected
        if is_kept:
            kept.keep(number, VALUES[number])
            if not is_there and SIZES[number] <= capacity:
                expected.append(number)
                while sum(SIZES[each] for each in expected) > capacity:
                    del expected[0]
                    evicted += 1
        else:
            assert kept.find(number) is (VALUES[number] if is_there else None)
            if is_there:
                expected.remove(number)
                expected.append(number)
        counts = kept.counts()
        assert counts.bytes == sum(SIZES[each] for each in expected) <= capacity
        assert (counts.entries, counts.evictions) == (len(expected), evicted)
    asked = sum(not is_kept for is_kept, _ in steps)
    assert kept.counts().hits + kept.counts().misses == asked


def test_after_it_is_cleared_nothing_is_found_and_nothing_counts_as_evicted() -> None:
    kept = cache_of(10**6)
    kept.keep(1, VALUES[1])
    kept.clear()
    assert kept.find(1) is None
    counts = kept.counts()
    assert (counts.entries, counts.bytes, counts.evictions) == (0, 0, 0)


def test_threads_lose_no_count_and_mix_nothing_up() -> None:
    kept = cache_of(SIZES[7] + SIZES[6])

    def use(seed: int) -> None:
        for n in range(2000):
            number = (n * seed) % 8
            assert kept.find(number) in {None, VALUES[number]}
            kept.keep(number, VALUES[number])

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(use, seed) for seed in (1, 3, 5, 7)]:
            future.result()
    counts = kept.counts()
    assert counts.hits + counts.misses == 8000
    left = [value for number, value in enumerate(VALUES) if kept.find(number) is value]
    assert counts.bytes == sum(len(value) + ENTRY_BYTES for value in left) <= kept.capacity_bytes
    assert counts.entries == len(left)


def test_short_texts_are_remembered_and_nothing_else() -> None:
    asked = list[object]()

    @remembered(2)
    def length(*texts: object) -> int:
        asked.append(texts)
        return sum(map(len, map(str, texts)))

    short, long = "a" * LONGEST_REMEMBERED, "a" * (LONGEST_REMEMBERED + 1)
    others: list[tuple[object, ...]] = [(long,), ("a", long), (7,), ("a", None), ([],)]
    for texts in ((short,), ("a", "b"), *others):
        assert length(*texts) == length(*texts) == sum(map(len, map(str, texts)))
    assert asked == [(short,), ("a", "b"), *(texts for texts in others for _ in range(2))]
