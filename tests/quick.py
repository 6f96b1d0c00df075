"""What `scripts/test --quick` leaves out, for the loop while working.

A row names a folder, a file or a test, and why it waits for the complete run: it needs a browser,
starts processes again and again, kills them, or tries thousands of cases. The complete run takes
files in the order of their rows and the others afterwards, so that no process is left alone with a
long file at the end: what takes longest stands first.
"""

from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent

SERVICES = "starts services as processes, some for each test"
KILLS = "kills processes, or fills disks and cuts their power"
LABORATORY = "runs experiments on services that it starts"
SIMULATES = "simulates queues by the thousand"
BYTES = "damages or cuts a file at every byte"

LEFT_OUT: dict[str, str] = {
    "loadtests/bench": LABORATORY,
    "browser": "needs a browser",
    "cluster/test_faults.py": KILLS,
    **dict.fromkeys(
        (
            "api/test_documents.py::test_the_commands_of_a_page_do_what_it_says",
            "api/test_documents.py::test_a_witness_is_set_up_by_the_commands_of_its_page",
            "api/test_documents.py::test_the_answers_that_are_shown_are_those_that_come",
        ),
        SERVICES,
    ),
    "faults": KILLS,
    "loadtests/experiments": LABORATORY,
    "service/test_supervisor.py": SERVICES,
    "trust/witness/test_litewitness.py": SERVICES,
    "trust/log/test_serving.py": SERVICES,
    "trust/proofs/test_by_others.py": "builds a program in Go",
    "loadtests/generation": "sends requests at the times of a schedule",
    "test_client.py": SERVICES,
    "cluster/test_pages.py": KILLS,
    "loadtests/servers": LABORATORY,
    "index/test_crashes.py": KILLS,
    "loadtests/models/test_gap_ledger_coverage.py": SIMULATES,
    "loadtests/test_coverage.py": "simulates hundreds of experiments",
    "loadtests/lab": LABORATORY,
    "api/test_fuzzing.py": "sends thousands of requests that nobody would write",
    "storage/test_emulated_disk.py": SERVICES,
    "storage/test_recovery.py": BYTES,
    "test_deploy.py": "installs into folders",
    "test_hanging.py": SERVICES,
    "test_folder_files.py": "harms each file of a folder in each way",
    "sealing/test_trusted_clock.py": "starts services under clocks that leap",
    "verify/backup/test_while_serving.py": SERVICES,
    "test_damaged_mempool.py": SERVICES,
    "test_nonsense.py": "starts commands, and waits for answers that never come",
    "loadtests/models/test_sequential_coverage.py": SIMULATES,
    "index/test_flips.py": BYTES,
    "sealing/test_importer.py": KILLS,
    "verify/backup/test_making.py": KILLS,
    "verify/backup/test_restoring.py": KILLS,
    "test_month_import.py": KILLS,
    "test_month_fetch.py": SERVICES,
    "api/test_export_recipes.py": "asks hundreds of questions about 336,776 flights",
    "index/test_table_checks.py": "tampers with an index, table by table and column by column",
    "serving/test_strangers.py": SERVICES,
    "serving/test_worker.py": SERVICES,
    "api/test_metrics.py": SERVICES,
    (
        "trust/proofs/test_verify.py::test_changed_proofs_are_refused_for_the_right_reason"
    ): "many proofs",
    "trust/proofs/test_malformed.py": "hundreds of proofs, and some that want much time and room",
    "storage/test_failing_disk.py": "lets each call of the system fail in turn",
    "loadtests/models/test_gap_ledger.py": SIMULATES,
    "loadtests/in_process/test_customers.py": SERVICES,
    "test_read_only_medium.py": SERVICES,
    "test_damaged_index.py": SERVICES,
    "test_damaged_tip.py": SERVICES,
    "api/test_anything.py": "asks hundreds of questions that are made up",
    "api/test_wire.py": SERVICES,
    "trust/witness/test_witness.py": SERVICES,
    "api/test_generated_client.py": SERVICES,
    "units/test_filters.py": SERVICES,
    "units/test_limits.py": SERVICES,
    "frontend/test_request_guard.py": SERVICES,
    "frontend/test_memory.py": SERVICES,
    "mempool/test_harms.py": BYTES,
    "test_cli.py": "starts the command line again and again",
    "storage/test_caches.py": "asks for every block of chains of every length",
    "index/test_rankings.py": "ranks by plain loops",
    "mempool/test_model.py": "tries sequences of what is done to a mempool",
    "loadtests/models/test_ciw.py": SIMULATES,
    "verify/backup/test_copies_by_hand.py": "copies a folder in each way",
    "verify/backup/test_hostile.py": "restores what nobody would write",
    "frontend/adding/test_slices.py": "reads files cut at each place",
    "trust/cheating/test_cheats.py": "makes ledgers to cheat on",
    "trust/log/test_successions.py": BYTES,
    "cluster/test_configure.py": SERVICES,
    "cluster/test_engine_watch.py": "waits for engines that stand still",
    "sealing/test_miner.py": "waits for rounds of a miner",
    "test_uncommitted_blocks.py": SERVICES,
    "test_prebuilt.py": "starts a process for each part",
    "test_imports.py": "reads all code",
    "loadtests/test_readme.py": "starts commands",
    "sources/test_posted_batch.py::test_memory_and_time_are_bounded_by_the_body": (
        "reads bodies that were made to take much time and room"
    ),
    "trust/log/test_signing.py::test_verify_names_every_damage": BYTES,
    "api/test_damage.py::test_what_the_disk_refuses_is_503_and_passes": (
        "lets the disk refuse each file, for each request"
    ),
    "test_scripts.py::test_help_names_the_options_of_the_program": "starts commands",
    "sources/test_nycflights.py": "reads 60,000 flights",
    "base/processes/test_systemd.py": SERVICES,
    **dict.fromkeys(
        (
            "api/test_specification.py::test_what_holds_without_a_parameter_is_its_default",
            "api/test_specification.py::test_every_example_finds_something",
            "api/test_specification.py::test_every_example_of_a_body_is_accepted",
            "api/test_specification.py::test_examples_of_headers_are_understood",
        ),
        "imports the default flights",
    ),
    **dict.fromkeys(
        (
            "frontend/pages/test_uploading.py::test_a_backend_that_died_is_said_to_have",
            "frontend/pages/test_adding.py::test_a_form_is_kept_when_the_backend_dies",
            (
                "index/test_queries.py"
                "::test_every_answer_is_of_the_height_it_names_while_another_process_writes"
            ),
            "test_scripts.py::test_a_file_that_is_named_runs_even_if_the_quick_run_leaves_it_out",
            (
                "test_scripts.py"
                "::test_one_command_imports_serves_and_stops_and_the_next_starts_at_once"
            ),
            "test_scripts.py::test_a_signal_during_the_import_stops_the_import",
            "verify/test_scrub.py::test_a_service_scrubs_finds_damage_and_takes_it_back",
        ),
        "stops or kills a process, or waits for one",
    ),
}


def is_left_out(path: Path) -> bool:
    """Whether the folder or file at `path` waits for the complete run by a row of its own."""
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).as_posix() in LEFT_OUT


@cache
def place(path: Path) -> int:
    """When the complete run takes the file at `path`: the first row that names it or its folder."""
    rows = [TESTS / row.partition("::")[0] for row in LEFT_OUT]
    return next((at for at, row in enumerate(rows) if path.is_relative_to(row)), len(rows))


def tests_left_out() -> set[str]:
    """The tests that wait for it alone, as `file::name` from this folder on."""
    return {row for row in LEFT_OUT if "::" in row}
