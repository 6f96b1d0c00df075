"""The table of settings for documents."""

from dataclasses import MISSING, Field, fields

from backend.base.settings import PROJECT, Settings, variable


def table() -> list[tuple[str, str, str, str]]:
    """Rows of variable, default, unit and reason."""
    return [
        (variable(f.name), _shown_default(f), f.metadata["unit"], f.metadata["reason"])
        for f in fields(Settings)
    ]


def _shown_default(setting: "Field[object]") -> str:
    default = "" if setting.default is MISSING else str(setting.default)
    return default.removeprefix(f"{PROJECT}/")
