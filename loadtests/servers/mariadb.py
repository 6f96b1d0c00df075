"""Runs a MariaDB for the lab, with its own data folder, process and loopback port.

    with mariadb(scratch / "mariadb", log, workers=3) as database:
        database.load(csv_file)                  # flights, as `GET /flights?format=csv` has them
        database.create_indexes()
        database.url                             # mariadb://lab@127.0.0.1:PORT, for the load

Another MariaDB of the machine is not touched: nothing of /etc is read, the process is ours and
ended by its id, and its root user can log in only through a socket in a folder of ours. The user
`lab` needs no password and may use only the database of flights.

The thread pool stands for the study's innodb_thread_concurrency, which 10.5 ignores and 10.6 no
longer has (MDEV-23379): `workers` = m makes m groups, each with a listener that distributes queries
and one working thread. New connections go to the groups in turn, so there are m queues rather than
one, and a log-in counts as a visit: with one group, measured queries end one at a time, but not
strictly in order of arrival.
"""

import getpass
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pymysql
from pymysql.converters import escape_string

from loadtests.processes import (
    HOST,
    ProgramFailed,
    failure,
    free_port,
    plain_environment,
    started,
    stop,
    wait_until,
)

DATABASE, USER = "flights", "lab"
PATH = f"/{DATABASE}"
_TABLE = f"{DATABASE}.flights"
MISSING = (
    "MariaDB is not installed; on Debian: sudo apt install mariadb-server-core mariadb-client-core"
)
BUFFER_POOL_BYTES = 128 * 2**20  # MariaDB's default; a month of all flights fits into it
# /usr/sbin may not be on the path of ordinary users of Debian.
_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin")
_PROGRAMS = ("mariadbd", "mariadb-install-db", "my_print_defaults")  # the second asks the third
_INSTALL = (  # nothing is synced to the disk, because it has no data yet
    *("--skip-test-db", "--auth-root-authentication-method=normal"),
    *("--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--sync-frm=0"),
)
_OPTIONS = (
    "--feedback=OFF",  # feedback would report to MariaDB's makers
    *("--max-connections=1000", "--back-log=1000", "--log-warnings=1"),
    f"--innodb-buffer-pool-size={BUFFER_POOL_BYTES}",
    *("--thread-handling=pool-of-threads", "--thread-pool-dedicated-listener=ON"),
)

COLUMNS = {
    "TRANSACTION_ID": "INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY",
    "YEAR": "SMALLINT NOT NULL",
    "DAY_OF_WEEK": "TINYINT NOT NULL",
    "FL_DATE": "DATE NOT NULL",
    "OP_CARRIER_AIRLINE_ID": "INT NOT NULL",
    "OP_CARRIER_FL_NUM": "INT NOT NULL",
    "ORIGIN_AIRPORT_ID": "INT",
    "ORIGIN": "CHAR(3) NOT NULL",
    "ORIGIN_CITY_NAME": "VARCHAR(100) NOT NULL",
    "ORIGIN_STATE_NM": "VARCHAR(50) NOT NULL",
    "DEST_AIRPORT_ID": "INT",
    "DEST": "CHAR(3) NOT NULL",
    "DEST_CITY_NAME": "VARCHAR(100) NOT NULL",
    "DEST_STATE_NM": "VARCHAR(50) NOT NULL",
    "DEP_TIME": "CHAR(4)",
    "DEP_DELAY": "INT",
    "ARR_TIME": "CHAR(4)",
    "ARR_DELAY": "INT",
    "CANCELLED": "TINYINT NOT NULL",
    "AIR_TIME": "INT",
}
# Indexes that a good administrator would make for the three questions: the first answers averages
# from the index alone, the second finds flights by number and day, the third counts between cities.
INDEXES = {
    "by_carrier": "(OP_CARRIER_AIRLINE_ID, FL_DATE, ARR_DELAY)",
    "by_number": "(OP_CARRIER_FL_NUM, FL_DATE)",
    "by_cities": "(ORIGIN_CITY_NAME, DEST_CITY_NAME, FL_DATE)",
}


@dataclass(frozen=True, slots=True)
class Database:
    """Asks a running MariaDB, and changes it."""

    pid: int
    port: int
    socket_path: Path

    @property
    def url(self) -> str:
        return f"mariadb://{USER}@{HOST}:{self.port}"

    def ask(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as root. Returns the rows of the last. Raises pymysql.MySQLError."""
        root = {"unix_socket": str(self.socket_path), "user": "root"}
        with (
            closing(pymysql.connect(**root, autocommit=True, local_infile=True)) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def load(self, flights: Path) -> int:
        """Make the table anew from a CSV file with a header line. Returns its number of flights.

        Columns of the file that the table lacks are skipped. Raises pymysql.MySQLError, OSError,
        and ProgramFailed unless the table has a flight for every line.
        """
        with flights.open(encoding="utf-8") as file:
            names = file.readline().strip().split(",")
            lines = sum(1 for _ in file)
        read = ", ".join(f"@{name}" for name in names)
        values = ", ".join(f"{name} = NULLIF(@{name}, '')" for name in names if name in COLUMNS)
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        ((loaded,),) = self.ask(
            f"CREATE OR REPLACE TABLE {_TABLE} ({columns}) ENGINE=InnoDB",
            "SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",  # id 0
            f"LOAD DATA LOCAL INFILE '{escape_string(str(flights))}' INTO TABLE {_TABLE} "
            "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' "
            f"ESCAPED BY '' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES ({read}) SET {values}",
            f"ANALYZE TABLE {_TABLE}",
            f"SELECT COUNT(*) FROM {_TABLE}",  # noqa: S608  ours
        )
        if loaded != lines:
            raise ProgramFailed(f"MariaDB loaded {loaded} of the {lines} flights of {flights}")
        return lines

    def create_indexes(self) -> None:
        """Make the indexes of an administrator, and update the optimiser's statistics."""
        for name, columns in INDEXES.items():
            self.ask(f"CREATE INDEX IF NOT EXISTS {name} ON {_TABLE} {columns}")
        self.ask(f"ANALYZE TABLE {_TABLE}")

    def set_workers(self, workers: int) -> None:
        """Change the number of groups of the thread pool while it runs."""
        self.ask(f"SET GLOBAL thread_pool_size = {int(workers)}")


@contextmanager
def mariadb(folder: Path, log: Path, workers: int) -> Iterator[Database]:
    """Run a MariaDB with an empty database, its data in `folder`, until the `with` block ends.

    workers: groups of the thread pool. log: file for its output.
    Raises ProgramFailed if MariaDB is not installed or does not start.
    """
    server, install, _ = map(_program, _PROGRAMS)
    ours = ["--no-defaults", f"--user={getpass.getuser()}", "--skip-name-resolve"]
    ours.append(f"--datadir={folder.resolve() / 'data'}")
    _run([install, *ours, *_INSTALL], log)
    with TemporaryDirectory(prefix="flightchain-db-") as private:  # paths of sockets must be short
        path, port = Path(private) / "socket", free_port()
        ours += [f"--socket={path}", f"--bind-address={HOST}", f"--port={port}"]
        command = [server, *ours, *_OPTIONS, f"--thread-pool-size={workers}"]
        process = started(command, log, plain_environment())
        try:
            wait_until(lambda: _listens(path), process, command, log)
            database = Database(process.pid, port, path)
            database.ask(
                f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
                f"DROP USER IF EXISTS 'root'@'{HOST}', 'root'@'::1'",  # from the setup
                f"CREATE USER '{USER}'@'{HOST}'",
                f"GRANT SELECT, INSERT ON {DATABASE}.* TO '{USER}'@'{HOST}'",
            )
            yield database
        finally:
            stop(process)


def _program(name: str) -> str:
    if path := shutil.which(name) or shutil.which(name, path=":".join(_FOLDERS)):
        return path
    raise ProgramFailed(MISSING)


def _run(command: list[str], log: Path) -> None:
    with log.open("ab") as stream:
        done = subprocess.run(command, stdout=stream, stderr=stream, check=False)  # noqa: S603  ours
    if done.returncode != 0:
        raise ProgramFailed(failure(command, done.returncode, log))


def _listens(path: Path) -> bool:
    """Return whether a server listens at `path`; PyMySQL leaves its socket open if none does."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0
