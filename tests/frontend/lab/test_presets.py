"""What one may start from: what each question assumes, and what comes out."""

import json

import pytest

from frontend.app import create_app
from frontend.lab import open_queue_form, study
from frontend.lab.presets import NETWORKS, QUEUES, Preset, chosen
from frontend.settings import Settings
from loadtests.processes import PROJECT


def response_s(preset: Preset) -> float:
    return open_queue_form.answer_to(preset.values).states[0][1].response_time_s


def test_an_ssd_takes_17_ms_a_block_and_no_more() -> None:
    study, ssd, *_ = QUEUES
    saved_s = float(study.values["service_time_s"]) - float(ssd.values["service_time_s"])
    assert saved_s == pytest.approx(513 * 0.017)
    assert NETWORKS[1].values["service_time_s_1"] == ssd.values["service_time_s"]
    with create_app(Settings()).app_context():
        assert "17 ms" in ssd.assumptions


def test_twice_the_processor_halves_all_but_the_reading_of_files() -> None:
    values = NETWORKS[2].values
    files_s, processor_s = (float(values[f"service_time_s_{row}"]) for row in (1, 2))
    assert files_s == pytest.approx(0.017)
    assert processor_s == pytest.approx((40.499375 - 513 * 0.017) / 2)


def test_queues_are_compared_at_one_arrival_rate() -> None:
    assert len({preset.values["arrivals"] for preset in QUEUES}) == 1
    times = [response_s(preset) for preset in QUEUES]
    assert times[0] == pytest.approx(155.34, abs=0.01)
    assert times == sorted(times, reverse=True)


def test_the_index_is_one_visit_with_a_number_to_be_edited() -> None:
    assert NETWORKS[3].values["visits_1"] == "1"
    assert "name_2" not in NETWORKS[3].values
    with create_app(Settings()).app_context():
        assert "not from a Pi" in NETWORKS[3].assumptions


def test_the_time_of_the_index_is_in_the_benchmark_as_the_page_says() -> None:
    figures = json.loads((PROJECT / "docs/performance.json").read_bytes())
    (measured,) = (f["value"] for f in figures if f["name"] == "random questions, none cached")
    processor_us = float(measured.rpartition(", ")[2].partition(" us of processor time")[0])
    assert processor_us == pytest.approx(1e6 * study.INDEX_S, rel=0.3)
    with create_app(Settings()).app_context():
        words = NETWORKS[3].assumptions
    assert f"The {1e3 * study.INDEX_S:.2f} ms are" in words
    assert "row 13 of docs/performance.md" in words


def test_a_form_is_a_preset_only_as_it_is() -> None:
    assert chosen(QUEUES, dict(QUEUES[1].values)) == QUEUES[1]
    assert chosen(QUEUES, {**QUEUES[1].values, "cv": "0.5"}) is None
    assert chosen(QUEUES, {}) is None
