"""Builds what msgspec derives from a type as soon as the type is defined.

msgspec derives how to read a type (its fields, their bounds) at the type's first use, and marks the
type as done before it is. Two threads that use it for the first time at the same moment therefore
crash the process. A `Decoder` that is made while a module is imported is safe, because imports
finish before there are threads and before workers are forked. A type that a function hands to
`convert` or `decode` has to be built here first; `tests/test_prebuilt.py` finds those that are not.
"""

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind", bound=type)


def prebuilt(kind: Kind) -> Kind:
    """Return `kind`, with everything that msgspec needs to read it already built."""
    msgspec.json.Decoder(kind)
    return kind
