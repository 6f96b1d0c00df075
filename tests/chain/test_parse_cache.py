import pytest

from backend.chain.parse_cache import MAX_KEY_CHARACTERS, ParseCache


def test_memo_asks_once_and_stays_bounded() -> None:
    asked: list[int] = []

    def negative(key: int) -> int:
        asked.append(key)
        return -key

    memo = ParseCache(negative, entries=100)
    assert [memo[3], memo[3], memo[4]] == [-3, -3, -4]
    assert asked == [3, 4]
    for key in range(300):
        assert memo[key] == -key
        assert len(memo) <= 100


def test_memo_does_not_keep_long_texts_or_failures() -> None:
    memo = ParseCache[str, int](int)
    assert memo["1".rjust(MAX_KEY_CHARACTERS + 1)] == 1
    with pytest.raises(ValueError, match="x"):
        memo["x"]
    assert not memo
