"""Every setting from the environment; wrong values are named, unknown ones refused."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from gunicorn.config import Config

from backend.base.errors import InvalidSetting
from backend.base.settings import Settings, absolute_folders, from_environment, variable
from backend.service.web_server import gunicorn_options
from backend.serving import gunicorn_app
from frontend.settings import from_environment as settings_of_pages
from tests.cases import each_of
from tests.settings_table import table

SETTINGS = {setting.name: setting for setting in fields(Settings)}
CHECKED = {  # texts with a rule: a good one, a bad one, and why that is refused
    "host": ("fd00::5", "127.0.0.1:8000", "must be one name or address, without http://"),
    "frontend_host": ("pi.local", "127.0.0.1,10.0.0.5", "must be one name or address"),
    "hosts": (" flights.example.org, 10.0.0.5,*", "b,a:80", "'a:80' is not a name"),
    "backend_url": ("http://10.1.1.4:8000, https://x", "http://a,b", "must begin with https://"),
    "bts_url": ("http://nas/PREZIP", "nas/PREZIP", "must begin with https:// or http://"),
}
CHOICES = {
    n: each.metadata["choices"] for n, each in SETTINGS.items() if "choices" in each.metadata
}
NUMBERS = {
    name: (setting.metadata["minimum"], setting.metadata["maximum"])
    for name, setting in SETTINGS.items()
    if "minimum" in setting.metadata
}
TEXTS = SETTINGS.keys() - {*CHECKED, *CHOICES, *NUMBERS}
FLOATS = {name for name in NUMBERS if SETTINGS[name].type is float}
NOT_NUMBERS = ("", " ", "abc", "8000x", "0x10", "1,5", "--1", "True", "None", "1e")


def refused(name: str, text: str) -> InvalidSetting:
    with pytest.raises(InvalidSetting) as caught:
        from_environment({name: text})
    return caught.value


@each_of("kind", CHOICES["worker_type"])
def test_workers_are_of_the_type_that_is_set(kind: str) -> None:
    chosen = Settings(worker_type=kind)
    config = Config()
    for name, value in (gunicorn_app.COMMON | gunicorn_options(chosen, None)).items():
        config.set(name, value)
    names = {
        "asgi": "FrontWorker",
        "gthread": "ThreadWorker",
        "sync": "SyncWorker",
    }
    assert config.worker_class.__name__ == names[kind]


@each_of("name", CHOICES)
def test_a_choice_is_one_of_its_values(name: str) -> None:
    for text in CHOICES[name]:
        assert getattr(from_environment({variable(name): text}), name) == text
    for text in ("", "LOOP", "loop ", "tornado"):
        assert refused(variable(name), text).field == variable(name)


@each_of("name", sorted(TEXTS))
def test_a_text_is_taken_as_it_stands(name: str) -> None:
    settings = from_environment({variable(name): " a b/ü%41#? "})
    assert getattr(settings, name) == " a b/ü%41#? "


@each_of("name", CHECKED)
def test_texts_with_a_rule_are_taken_as_they_stand_and_anything_else_is_refused(name: str) -> None:
    good, bad, why = CHECKED[name]
    assert getattr(from_environment({variable(name): good}), name) == good
    assert why in str(refused(variable(name), bad))


@each_of("name", sorted(TEXTS | CHECKED.keys()))
def test_an_empty_text_is_refused(name: str) -> None:
    error = refused(variable(name), "")
    assert (error.field, error.value) == (variable(name), "")


@each_of("name", NUMBERS)
def test_a_number_is_read_within_its_bounds_and_named_with_them_beyond(name: str) -> None:
    smallest, largest = NUMBERS[name]
    for good in (smallest, largest):
        value = getattr(from_environment({variable(name): str(good)}), name)
        assert value == good
        assert type(value) is (float if name in FLOATS else int)
    below = smallest - (0.01 if name in FLOATS else 1)
    not_finite = ("nan", "inf", "-inf", "1e400") if name in FLOATS else ()
    for text in (f"{below:g}", str(int(largest) + 1), "-1", str(10**30), "9" * 4000, *not_finite):
        error = refused(variable(name), text)
        assert (error.field, error.value) == (variable(name), text)
        assert error.reason.startswith("must be between ")
        assert f"{variable(name)} " in str(error)


@each_of("name", NUMBERS)
def test_what_is_no_number_is_named(name: str) -> None:
    not_whole = () if name in FLOATS else ("1.5", "1.0", "1e3", "nan", "inf")
    for text in (*NOT_NUMBERS, *not_whole):
        error = refused(variable(name), text)
        assert (error.field, error.value) == (variable(name), text)
        kind = "number" if name in FLOATS else "whole number"
        assert re.fullmatch(rf"must be a {kind} from \S+ to \S+", error.reason)
        assert len(str(error)) < 300


@each_of("name", ["FLIGHTCHAIN_BACKEND_URL", "FLIGHTCHAIN_BTS_URL"])
def test_an_address_at_which_nobody_can_be_asked_is_refused(name: str) -> None:
    for text in ("http://", "https:///x", "http://:80", "http://[::1", "http://a:x", "http://a:0"):
        assert "must have a host; a port must be from 1 to 65535" in refused(name, text).reason
    assert "must have a host" in refused(name, "http://a:99999").reason
    assert from_environment({name: "http://[::1]:65535/x"})


@each_of(
    "name",
    ["FLIGHTCHAIN_", "FLIGHTCHAIN_PROT", "FLIGHTCHAIN_port", "FLIGHTCHAIN_DIR_", "FLIGHTCHAIN_Ü"],
)
def test_an_unknown_variable_is_refused(name: str) -> None:
    error = refused(name, "8000")
    assert (error.field, error.value) == (name, "8000")
    assert "is not a setting" in error.reason
    with pytest.raises(InvalidSetting, match="is not a setting"):
        settings_of_pages({name: "8000"})


def test_variables_of_others_are_left_alone() -> None:
    others = {"PATH": "", "flightchain_port": "x", "MY_FLIGHTCHAIN_PORT": "x", "FLIGHTCHAIN": "x"}
    assert from_environment(others) == Settings()


def test_processes_that_run_elsewhere_find_the_folders_that_are_named_from_here() -> None:
    folders = absolute_folders(Settings(dir="dir", lab_dir="lab_dir", cluster="cluster"))
    names = ("dir", "lab_dir", "cluster")
    assert folders == {variable(name): str(Path(name).absolute()) for name in names}
    assert variable("cluster") not in absolute_folders(Settings())


def test_the_table_says_of_every_setting_its_default_and_its_reason() -> None:
    rows = {name: (default, reason) for name, default, _, reason in table()}
    assert rows.keys() == set(map(variable, SETTINGS))
    assert rows["FLIGHTCHAIN_DIR"][0] == "chain_data"
    assert rows["FLIGHTCHAIN_LAB_DIR"][0] == "loadtests/results"
    for field in SETTINGS.values():
        default, reason = rows[variable(field.name)]
        assert reason
        if field.name not in {"dir", "lab_dir"}:  # these are of the project's folder
            assert default == str(field.default)
            assert from_environment({variable(field.name): default}) == Settings()
