"""Merkle trees for the vector files: those of Certificate Transparency, and spoiled proofs."""

from collections.abc import Iterator, Sequence

from tests.chain import independent
from tests.chain.naive_builder import Entry, rejected

# The leaves of the test suite of Certificate Transparency's reference implementation, and the roots
# it publishes for the trees of the first 0 to 8 of them.
CT_LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
CT_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [bytes.fromhex(leaf) for leaf in CT_LEAVES]
ZERO_HASH = bytes(32)


def merkle() -> Entry:
    roots = [independent.tree_hash(LEAVES[:size]).hex() for size in range(len(LEAVES) + 1)]
    if roots != CT_ROOTS:
        raise AssertionError("these are not the trees of Certificate Transparency")
    inclusion = [
        {"index": index, "size": size, "proof": texts(independent.path(index, LEAVES[:size]))}
        for size in range(1, 9)
        for index in range(size)
    ]
    consistency = [
        {"old": old, "new": new, "proof": texts(independent.consistency(old, LEAVES[:new]))}
        for new in range(1, 9)
        for old in range(1, new + 1)
    ]
    return {
        "leaves": CT_LEAVES,
        "leaf_hashes": texts([independent.leaf_hash(leaf) for leaf in LEAVES]),
        "roots": roots,
        "inclusion": inclusion,
        "consistency": consistency,
    }


def texts(hashes: Sequence[bytes]) -> list[str]:
    return [each.hex() for each in hashes]


def flipped(data: bytes, bit: int) -> bytes:
    return (int.from_bytes(data, "big") ^ (1 << bit)).to_bytes(len(data), "big")


def bad_proofs(proof: list[bytes], root: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """`proof` spoiled in every way that needs no knowledge of what it proves."""
    for i, each in enumerate(proof):
        yield f"bit flipped in step {i}", [*proof[:i], flipped(each, 7 * i), *proof[i + 1 :]]
        yield f"step {i} dropped", [*proof[:i], *proof[i + 1 :]]
        yield f"step {i} twice", [*proof[: i + 1], each, *proof[i + 1 :]]
        yield f"step {i} cut short", [*proof[:i], each[:-1], *proof[i + 1 :]]
        yield f"step {i} is the root", [*proof[:i], root, *proof[i + 1 :]]
    for i in range(len(proof) - 1):
        yield (
            f"steps {i} and {i + 1} swapped",
            [*proof[:i], proof[i + 1], proof[i], *proof[i + 2 :]],
        )
    yield "a step added at the end", [*proof, ZERO_HASH]
    yield "a step added at the start", [ZERO_HASH, *proof]
    yield "the root added at the end", [*proof, root]
    yield "nothing", []


def bad_inclusion() -> list[Entry]:
    entries: list[Entry] = []
    for index, size in ((0, 1), (0, 8), (5, 8), (6, 7), (4, 5)):
        proof, root = independent.path(index, LEAVES[:size]), tree(size)
        leaf = independent.leaf_hash(LEAVES[index])
        cases = [(name, leaf, index, size, bad, root) for name, bad in bad_proofs(proof, root)]
        cases += [(f"index {i}", leaf, i, size, proof, root) for i in (-1, *range(size + 1))]
        cases += [
            (f"size {n}", leaf, index, n, proof, root)
            for n in (-1, 0, size - 1, size + 1, 2 * size, 4 * size, 2**64 + size)
        ]
        cases += [
            ("bit flipped in the leaf", flipped(leaf, 0), index, size, proof, root),
            ("the leaf's data, not its hash", LEAVES[index], index, size, proof, root),
            ("bit flipped in the root", leaf, index, size, proof, flipped(root, 255)),
            ("the root of a smaller tree", leaf, index, size, proof, tree(size - 1)),
            ("the empty root", leaf, index, size, proof, tree(0)),
        ]
        for name, a_leaf, i, n, bad, top in cases:
            if rejected(independent.verify_inclusion, a_leaf, i, n, bad, top):
                label = f"leaf {index} of {size}: {name}"
                entries.append(
                    {
                        "name": label,
                        "leaf": a_leaf.hex(),
                        "index": i,
                        "size": n,
                        "proof": texts(bad),
                        "root": top.hex(),
                    }
                )
    return entries


def bad_consistency() -> list[Entry]:
    entries: list[Entry] = []
    for old, new in ((1, 2), (4, 8), (3, 7), (6, 8), (5, 5)):
        proof, was, root = independent.consistency(old, LEAVES[:new]), tree(old), tree(new)
        cases = [(name, old, new, was, root, bad) for name, bad in bad_proofs(proof, root)]
        cases += [
            (f"from size {n}", n, new, was, root, proof) for n in (-1, 0, old - 1, old + 1, new + 1)
        ]
        cases += [
            (f"to size {n}", old, n, was, root, proof) for n in (-1, 0, old - 1, 2 * new, 2**64)
        ]
        cases += [
            ("bit flipped in the old root", old, new, flipped(was, 9), root, proof),
            ("bit flipped in the new root", old, new, was, flipped(root, 9), proof),
            ("the roots swapped", old, new, root, was, proof),
            ("the old root twice", old, new, was, was, proof),
            ("the new root twice", old, new, root, root, proof),
            ("an empty old root", old, new, tree(0), root, proof),
        ]
        for name, m, n, old_root, new_root, bad in cases:
            if rejected(independent.verify_consistency, m, n, old_root, new_root, bad):
                entries.append(
                    consistency_entry(f"{old} to {new}: {name}", m, n, old_root, new_root, bad)
                )
    top, empty = tree(8), tree(0)
    entries += [
        consistency_entry("from nothing: another old root", 0, 8, top, top, []),
        consistency_entry("from nothing: a proof", 0, 8, empty, top, [top]),
        consistency_entry("from nothing to nothing: another new root", 0, 0, empty, top, []),
        consistency_entry("from nothing to nothing: another old root", 0, 0, top, empty, []),
        consistency_entry("from nothing to nothing: other roots, alike", 0, 0, top, top, []),
        consistency_entry("from nothing to nothing: a proof", 0, 0, empty, empty, [empty]),
    ]
    return entries


def consistency_entry(
    name: str, old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> Entry:
    return {
        "name": name,
        "old": old,
        "new": new,
        "old_root": old_root.hex(),
        "new_root": new_root.hex(),
        "proof": texts(proof),
    }


def tree(size: int) -> bytes:
    return independent.tree_hash(LEAVES[:size])
