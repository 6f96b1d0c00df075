"""Tests make apps of Flask by the hundred; what is the same in all of them is made once.

Compiling the routes of the pages takes 15 ms of processor time, those of the API 6, and translating
all templates 400: more than most tests of an app take besides.
"""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from werkzeug.routing import Rule

Builder = Callable[..., tuple[str, str]]


class TranslatedTemplates(BytecodeCache):
    """The templates that some app has translated, by their names and texts."""

    def __init__(self) -> None:
        self._translated: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._translated:
            bucket.bytecode_from_string(self._translated[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._translated[bucket.key] = bucket.bytecode_to_string()


def build_once(patch: pytest.MonkeyPatch) -> None:
    """Let all apps share compiled routes and translated templates."""
    compiled = Rule._compile_builder
    builders: dict[Any, Builder] = {}

    def compiled_once(self: Rule, append_unknown: bool = True) -> Builder:
        """The function that makes addresses of a rule, which is given the rule when it is used."""
        key = (self.rule, *self._trace, *sorted((self.defaults or {}).items()), append_unknown)
        if key not in builders:
            builders[key] = compiled(self, append_unknown)
        return builders[key]

    patch.setattr(Rule, "_compile_builder", compiled_once)
    patch.setattr(Flask, "jinja_options", {"bytecode_cache": TranslatedTemplates()})
