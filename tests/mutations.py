"""Breaks the code in one place after another, and names the breaks that no test notices.

    python -m tests.mutations [PATH...]    those of `BREAKS` in modules at or below PATH

A break is made in a copy of the project, in which the tests of its line then run until the first
failure. The exit status is 1 if no test notices a break, which is a hole in the tests or code that
does nothing; and if a line of `BREAKS` does not fit its module any more.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".mypy_cache", "chain_data", "results")
PYTEST = ("timeout", "--signal=INT", "--kill-after=20", "240",
    sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider")  # fmt: skip
NOT_THERE = "NOT THERE: the module, the tests, or the piece, which occurs once"
NOT_NOTICED = "NOT NOTICED"

# A line has a module, the tests below `tests` that promise what it does, and a piece of it, which
# occurs there once, with what is put in its place.
BREAKS = """
backend/api/conditions.py  api/test_compression.py  f'"{tag}-{encoding}"' if encoding => f'"{tag}"' if encoding
backend/api/conditions.py  api/test_compression.py  in ("", encoding_for(environ)) => in ("", "gzip", "zstd")
backend/api/conditions.py  api/test_exporting.py  zlib.crc32(route.encode()) => 0
backend/api/json_answers.py  api/test_compression.py  (VARY,) if encoding or len(body) >= LEAST_BYTES else () => (VARY,) if encoding else ()
backend/api/json_answers.py  api/test_metrics.py  if key[0] != self._state: => if False:
backend/api/json_answers.py  api/test_metrics.py  len(answer.query) + => 0 +
backend/api/problems.py  api/test_answers.py  (FlightchainError, 500) => (FlightchainError, 501)
backend/api/proof_routes.py  trust/test_cheating.py  Row("GET", "/cheats", CHEATS, made_once(_tried), Lane.BATCH), => *(),
backend/api/question_answers.py  api/test_kept_answers.py  name != EMULATED or seconds => name != EMULATED and seconds
backend/api/writing.py  api/test_lanes_of_requests.py  if mode == "commit" and dry_run == "false" => if mode == "commit"
backend/api/writing.py  api/test_lanes_of_requests.py  dry_run == "true" and self.is_stranger(environ) => dry_run == "true"
backend/api/writing.py  api/test_posting.py  self._places.release() => pass
backend/base/files.py  storage/test_files.py  os.O_CREAT | os.O_TRUNC, mode => os.O_CREAT, mode
backend/base/once.py  trust/test_cheating.py  with lock: => if lock:
backend/base/processes/interruption.py  test_cli.py  is signal.default_int_handler => is not signal.default_int_handler
backend/base/progress.py  test_progress.py  at_once or now_s - self => at_once and now_s - self
backend/chain/fields.py  chain/test_fields.py  negative if early", -14, True => negative if early", -14, False
backend/chain/merkle.py  chain/test_merkle.py  if not 0 < old_size <= size => if 0 < old_size <= size
backend/cli/import_command.py  test_cli.py  return begun == data or => return False or
backend/cli/sent_file.py  test_file_imports.py  require_days(checked.rows - bad.count => print(checked.rows - bad.count
backend/cluster/membership.py  cluster/test_configure.py  if peer_id in self._members or => if
backend/cluster/membership.py  cluster/test_configure.py  errors="replace").split() => errors="replace").splitlines()
backend/cluster/membership.py  cluster/test_configure.py  self._strangers.add(peer_id) => pass
backend/cluster/application.py  cluster/test_application.py  if name == "query": => if False:
backend/cluster/configuration.py  cluster/test_configure.py  str(48 * 3600 * 10**9) => str(48 * 3600 // 10**9)
backend/cluster/wire.py  cluster/test_wire.py  0, 1, 2, 5 => 0, 1, 2, 6
backend/export/manifest.py  export/test_parquet.py  manifest.format != FORMAT or => False or
backend/index/group_counts.py  index/test_answers.py  "hour": MONTH => "hour": YEAR
backend/index/writer.py  index/test_follower.py  self._connection.execute("COMMIT") => pass
backend/index/writer.py  index/test_trust.py  if used_at is not None and => if used_at is None and
backend/ledger/submission.py  test_ledger.py  number if self._cluster is None else => number if self._cluster else
backend/ledger/submission.py  api/test_kept_answers.py  time.sleep(RECENT_S) => pass
backend/mempool/mempool.py  mempool/test_keys.py  return max(now_ms, self._store.last_timestamp) => return now_ms
backend/mempool/rebuild.py  mempool/test_damage.py  if end < known.next else => if False else
backend/mempool/rebuild.py  mempool/test_damage.py  if use.next <= end => if True
backend/mempool/store.py  mempool/test_damage.py  and self.next < mark.end: => and self.next < mark.next:
backend/mempool/store.py  mempool/test_damage.py  or not _size_of(self.log_path): => or False:
backend/mempool/store.py  mempool/test_trimming.py  FROM record WHERE first < ?" => FROM record WHERE first <= ?"
backend/mempool/syncs.py  mempool/test_damage.py  sync = self._store.log_sync() => self._watermark.note(mark); sync = self._store.log_sync()
backend/mempool/syncs.py  mempool/test_syncs.py  max(self._due, written) => written
backend/mempool/watermark.py  mempool/test_damage.py  max(known.next, mark.next) => mark.next
backend/mempool/watermark.py  mempool/test_damage.py  os.ftruncate(descriptor, 0) => pass
backend/mempool/watermark.py  mempool/test_damage.py  self._genesis() or known.genesis => self._genesis()
backend/service/supervisor.py  service/test_children.py  > LONGEST_PAUSE_S: => > 10 * LONGEST_PAUSE_S:
backend/service/supervisor.py  service/test_children.py  in reversed(children): => in children:
backend/serving/ports.py  service/test_ports.py  probe.setsockopt( => print(
backend/serving/client_bounds.py  serving/test_bounds.py  IPV6_PREFIX = 64 => IPV6_PREFIX = 128
backend/serving/client_bounds.py  serving/test_bounds.py  crowd = its_own if is_over_share => crowd = its_own if True
backend/serving/client_bounds.py  serving/test_worker.py  for slow in waiting[:-1] => for slow in waiting
backend/serving/client_bounds.py  serving/test_worker.py  lambda reader: reader.deadline => lambda reader: -reader.deadline
backend/serving/connection.py  serving/test_worker.py  if not self.received_bytes: => if True:
backend/serving/connection.py  serving/test_worker.py  self.deadline += len(body) / BYTES_PER_S => self.deadline += BODY_WITHIN_S
backend/serving/connection.py  serving/test_worker.py  len(name) + len(value) > => len(value) >
backend/serving/connection.py  serving/test_worker.py  if field[0] != b"host" => if field[0]
backend/serving/connection.py  serving/test_worker.py  return received_bytes + len(self._behind) => return received_bytes
backend/serving/lanes.py  serving/test_lanes.py  min(PATIENCE * (now - started), MOST_PATIENT_S) => PATIENCE * (now - started)
backend/serving/lanes.py  serving/test_lanes.py  time.perf_counter() - asked => time.perf_counter() + asked
backend/serving/lanes.py  serving/test_worker.py  group = self._waiting[:MOST_TOGETHER] => group = self._waiting[:]
backend/serving/worker.py  serving/test_worker.py  self._joining.discard(joining) => pass
backend/serving/worker.py  serving/test_worker.py  self.tick() => self._site.tick()
backend/sources/deriving.py  sources/test_deriving.py  len(departure) == len(_DEPARTURE) => True
backend/sources/table.py  sources/test_formats.py  and "\\0" not in lines[at] => and True
backend/storage/block_writer.py  storage/test_block_writer.py  full = self._file is not None => full = self._file is None
backend/storage/caches.py  storage/test_caches.py  if generation == self._generation: => if True:
backend/storage/codec.py  export/test_parquet.py  (named := block.header.previous_hash) != => (named := "") is
backend/storage/recovery.py  storage/test_recovery.py  if named and _is_of_another_ledger(blocks, named): => if False:
backend/trust/log/checkpoints.py  trust/log/test_notes.py  origin.startswith(f"{ours}/") => origin.startswith(ours)
backend/trust/log/log_checks.py  trust/log/test_signing.py  if any(is_signed(note, key) for key in keys) else None => if True else None
backend/trust/log/log_checks.py  trust/log/test_signing.py  if tree.root(signed.size) != signed.root => if False
backend/trust/log/log_checks.py  trust/log/test_rotation.py  keys += keys_named(folder) => pass
backend/trust/log/rotation.py  trust/log/test_rotation.py  files.write_new(folder / LOG.public, public_text(new)) => pass
backend/trust/log/tree.py  trust/log/test_tiles.py  self._store.place(high - 1).hash) => b"")
backend/trust/log/tree.py  trust/log/test_tiles.py  run = self._runs[key] = compute() => run = compute()
backend/trust/witness/cosign_requests.py  trust/witness/test_cosign_requests.py  printable(f"{who} cosigns again") => ""
backend/verify/audit.py  verify/test_audit.py  or index.position is None => or index.position is not None
backend/verify/backup/block_copies.py  verify/backup/test_making.py  if agreed <= named: => if agreed < named:
backend/verify/folder_check.py  verify/test_folder_check.py  or store.place(0).hash.hex() != position.genesis_hash => or False
backend/verify/folder_check.py  verify/test_folder_check.py  problem = foreign_log(folder) => problem = "" if accepts_loss else foreign_log(folder)
backend/verify/folder_check.py  trust/log/test_rotation.py  problem = self._wrong_log() => pass
backend/verify/scrub.py  verify/test_scrub.py  not problem and index.position => not problem or index.position
backend/verify/scrub.py  verify/test_scrub.py  self._notes.met(damaged) => pass
frontend/adding/submitted_form.py  frontend/pages/test_adding.py  status=502 => status=500
frontend/evidence.py  frontend/pages/test_evidence.py  if not self._is_citation or not answers => if self._is_citation or not answers
frontend/lab/open_queue_form.py  frontend/lab/test_open_queue_form.py  if arrivals == 0 => if arrivals == 1
frontend/lab/open_queue_form.py  frontend/lab/test_open_queue_form.py  before = None  # its curve => pass  # its curve
frontend/pages/error_pages.py  frontend/test_bodies.py  _page(413, => _page(414,
frontend/request_guard.py  frontend/test_bodies.py  if length > most: => if length >= most:
frontend/request_guard.py  frontend/test_request_guard.py  {"", "identity"} => {"", "identity", "deflate"}
scripts/flightchain_client.py  client/test_client.py  {408, 429, 502, 503, 504} => {503}
"""  # noqa: E501


class Break(NamedTuple):
    """A module as it is and as it is when broken, and the tests that promise what breaks."""

    module: Path
    tests: Path
    whole: str
    broken: str


def break_of(line: str, project: Path) -> Break | None:
    """Return the break of a line of `BREAKS`; None if it does not fit the project any more."""
    module, tests, change = line.split(maxsplit=2)
    before, after = change.split(" => ")
    target, promised = project / module, project / "tests" / tests
    whole = target.read_text("utf-8") if target.exists() and promised.exists() else ""
    if whole.count(before) != 1:
        return None
    return Break(target, promised, whole, whole.replace(before, after))


def outcome(line: str, copy: Path) -> str:
    """Return the test that fails in `copy` with this break, or `NOT_NOTICED` or `NOT_THERE`."""
    if (change := break_of(line, copy)) is None:
        return NOT_THERE
    change.module.write_text(change.broken, "utf-8")
    try:
        done = subprocess.run(
            [*PYTEST, change.tests], cwd=copy, capture_output=True, text=True, check=False
        )
    finally:
        change.module.write_text(change.whole, "utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (tests/\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"status {done.returncode}" if done.returncode else NOT_NOTICED


def main(*paths: str) -> int:
    """Break, test, report."""
    breaks = [line for line in BREAKS.strip().splitlines() if line.startswith(paths or "")]
    if not breaks:
        sys.exit(__doc__)
    missed = 0
    with TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(ROOT, Path(folder, "copy"), ignore=LEFT_OUT))
        for line in breaks:
            noticed = outcome(line, copy)
            missed += noticed in {NOT_NOTICED, NOT_THERE}
            print(f"{line}: {noticed}", flush=True)
    print(f"{missed} of {len(breaks)} breaks were not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
