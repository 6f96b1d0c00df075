"""Defines all settings in one table: name, unit, default, reason.

A setting is read from the environment variable of its name, in `from_environment` and nowhere else.
docs/reference/settings.md shows the same table; a test compares the two.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

from backend.base.errors import InvalidSetting
from backend.chain.block import MAX_DIFFICULTY_BITS
from backend.serving.host_policy import names_in, require_host

PREFIX = "FLIGHTCHAIN_"
AUTO = "auto"
NO_WITNESS = "none"
NO_CLUSTER = "none"
PROJECT = Path(__file__).resolve().parents[2]


def _number(
    default: float, minimum: float, maximum: float, unit: str, reason: str
) -> "int":  # dataclasses.field() is typed as the field's own type
    metadata = {"minimum": minimum, "maximum": maximum, "unit": unit, "reason": reason}
    return field(default=default, metadata=metadata)  # type: ignore[return-value]


def _text(default: str, reason: str, check: Callable[[str], object] = str) -> str:
    """Return a setting that is a text. check: raises ValueError for a text that does not fit."""
    return field(default=default, metadata={"unit": "", "reason": reason, "check": check})


def require_http(url: str) -> None:
    """Raise ValueError unless a URL of HTTP names a server that there may be."""
    if not url.startswith(("https://", "http://")):
        raise ValueError("must begin with https:// or http://")
    try:
        parts = urlsplit(url)
        can_be_asked = parts.hostname and parts.port != 0
    except ValueError:  # no IPv6 address in brackets, or no port
        can_be_asked = False
    if not can_be_asked:
        raise ValueError("must have a host; a port must be from 1 to 65535")


def require_whole_path(text: str) -> None:
    """Raise ValueError for a path that nobody means as it is written."""
    if not text:
        raise ValueError("must not be empty")
    if text == "~" or text.startswith("~/"):
        raise ValueError("begins with ~, which only a shell replaces; write the whole path")


def _require_backends(urls: str) -> None:
    for url in () if urls == AUTO else urls.split(","):
        require_http(url.strip())


def _choice(choices: tuple[str, ...], reason: str) -> str:
    metadata = {"unit": "", "reason": f"{reason}: {', '.join(choices)}", "choices": choices}
    return field(default=choices[0], metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings. The variable of each is FLIGHTCHAIN_ and its name in capitals."""

    dir: str = _text(str(PROJECT / "chain_data"), "folder of the ledger", require_whole_path)
    data: str = _text(
        "nycflights",
        "flights that scripts/run imports into an empty chain: "
        "`nycflights`, months of BTS as `bts:2024-01..2024-12`, a file, `generate:N` or `none`",
        require_whole_path,
    )
    bts_url: str = _text(
        "https://transtats.bts.gov/PREZIP/",
        "address from which the months of `bts:` are downloaded",
        require_http,
    )
    host: str = _text("127.0.0.1", "address the service listens on", require_host)
    port: int = _number(8000, 1, 65535, "", "port of the service")
    frontend_host: str = _text("127.0.0.1", "address the pages listen on", require_host)
    frontend_port: int = _number(5000, 1, 65535, "", "port of the pages")
    backend_url: str = _text(
        AUTO,
        "address at which the pages find the service; `auto`: on this machine, at the service's "
        "port. In a cluster, addresses of several nodes, separated by commas: pages ask them in "
        "turn, and add flights by the first",
        _require_backends,
    )
    hosts: str = _text(
        "localhost",
        "further host names that service and pages answer to, separated by commas; `*` for every "
        "name. They always answer to loopback, to the address they listen on and, if others can "
        "reach them, to the name that this machine had when they started",
        names_in,
    )
    lab_dir: str = _text(
        str(PROJECT / "loadtests" / "results"),
        "folder of the lab's results that the pages show, besides the examples that come with it",
        require_whole_path,
    )
    workers: int = _number(
        2, 1, 64, "processes", "workers that answer requests; two leave room in a Pi's memory"
    )
    threads: int = _number(
        8, 1, 256, "threads", "threads for requests that may wait for the disk, per worker"
    )
    lane_threads: int = _number(
        1,
        1,
        256,
        "threads",
        "threads for each kind of long request (questions with options, reads, scans, exports, "
        "batches), per worker; more make these no faster and quick requests slower",
    )
    lane_queue: int = _number(
        8,
        0,
        100_000,
        "requests",
        "requests of each kind (scans, exports, batches, waits for a block) that may wait for a "
        "thread, per worker; the next is answered 503",
    )
    worker_type: str = _choice(
        ("asgi", "gthread", "sync"),
        "how workers serve; `gthread`, and `sync` with one thread, are for comparison",
    )
    mine_interval_s: float = _number(60, 0.1, 86400, "s", "time between blocks, as in the study")
    mine_empty: int = _number(0, 0, 1, "0 or 1", "1 seals a block even when nothing is pending")
    cache_bytes: int = _number(
        20_000_000, 0, 2**40, "bytes", "both block caches together, as in the study; per worker"
    )
    answer_cache_bytes: int = _number(
        12_000_000, 0, 2**40, "bytes", "cache of answers at the newest block; per worker"
    )
    block_bodies_bytes: int = _number(
        4_000_000,
        0,
        2**40,
        "bytes",
        "cache of blocks as JSON: whole blocks compressed, and short pages; per worker",
    )
    unpacked_bytes: int = _number(
        4_000_000, 0, 2**40, "bytes", "cache of unpacked blocks; per worker"
    )
    read_run_blocks: int = _number(
        19, 1, 10_000, "blocks", "adjacent blocks read at once on a cache miss, as in the study"
    )
    difficulty_bits: int = _number(
        8, 0, MAX_DIFFICULTY_BITS, "bits", "zero bits of a block hash; fixed when a chain is made"
    )
    block_file_bytes: int = _number(
        64 * 2**20, 1, 2**40, "bytes", "size after which a new block file is begun"
    )
    mempool_transactions: int = _number(
        100_000, 1, 10**9, "transactions", "most pending flights; further posts are answered 503"
    )
    min_free_bytes: int = _number(
        64 * 2**20, 0, 2**50, "bytes", "free disk below which nothing is accepted or sealed"
    )
    max_body_bytes: int = _number(
        16 * 2**20,
        2**16,
        2**30,
        "bytes",
        "largest batch, and largest file that the pages take in one piece",
    )
    require_token: int = _number(
        0, 0, 1, "0 or 1", "1 requires a token for every write, even on loopback, as behind a proxy"
    )
    scrub_hours: float = _number(
        24,
        0,
        8760,
        "h",
        "time in which everything on the disk is read and checked once; 0 checks nothing",
    )
    commit_wait_s: float = _number(
        70,
        0,
        3600,
        "s",
        "longest wait of mode=commit before it answers 202; longer than one mining interval",
    )
    clock_wait_s: float = _number(
        120,
        0,
        86400,
        "s",
        "time for which nothing is written when the clock is a day ahead of the newest time on "
        "record; 0 trusts every clock",
    )
    access_log: int = _number(
        0, 0, 1, "0 or 1", "1 writes a line of JSON on standard error for each request"
    )
    metrics_dir: str = _text(
        AUTO,
        "folder, best in memory, where processes keep their counts for `/metrics`; "
        "`auto` makes one for each run",
        require_whole_path,
    )
    witnesses: str = _text(
        NO_WITNESS,
        "witnesses that are asked to cosign each checkpoint, as `KEY URL`, separated by commas",
    )
    cluster: str = _text(
        NO_CLUSTER,
        "folder of the consensus engine, if the ledger belongs to a cluster",
        require_whole_path,
    )
    lab: str = _choice(
        ("no", "yes"),
        "`yes` allows what only the lab may do; use the service for nothing else then",
    )
    emulated_disk: int = _number(
        0,
        0,
        100_000,
        "K",
        "for the lab: reading a block from a file takes the time of the study's disk, divided by "
        "K; 0 is off",
    )

    @property
    def folder(self) -> Path:
        return Path(self.dir)

    @property
    def engine_home(self) -> Path | None:
        """The folder of the consensus engine; None for a ledger that belongs to no cluster."""
        return None if self.cluster == NO_CLUSTER else Path(self.cluster).absolute()


def most_commit_waiters(settings: Settings) -> int:
    """Return how many requests of one worker may wait for a block: half as many as threads."""
    return max(1, settings.threads // 2)


def variable(name: str) -> str:
    """Return the environment variable of setting `name`."""
    return PREFIX + name.upper()


def absolute_folders(settings: Settings) -> dict[str, str]:
    """Return the variables that name folders for a process whose working folder is another one."""
    folders = {"dir": settings.dir, "lab_dir": settings.lab_dir}
    if settings.cluster != NO_CLUSTER:
        folders["cluster"] = settings.cluster
    return {variable(name): str(Path(text).absolute()) for name, text in folders.items()}


def from_environment(environment: Mapping[str, str]) -> Settings:
    """Read the settings from `environment`; the rest have their defaults.

    Raises InvalidSetting for a value that does not fit and for an unknown FLIGHTCHAIN_ variable, so
    that a typing mistake is not silently ignored.
    """
    known = {variable(f.name): f for f in fields(Settings)}
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX)}
    for name, text in given.items():
        if name not in known:
            raise InvalidSetting(
                name, text, "is not a setting; docs/reference/settings.md lists all settings"
            )
    values = {known[name].name: _parsed(name, known[name], text) for name, text in given.items()}
    return Settings(**values)  # type: ignore[arg-type]


def _parsed(name: str, setting: "Field[object]", text: str) -> object:
    if "minimum" not in setting.metadata:
        if not text:
            raise InvalidSetting(name, text, "must not be empty")
        choices = setting.metadata.get("choices", (text,))
        if text not in choices:
            raise InvalidSetting(name, text, f"must be one of {', '.join(choices)}")
        try:
            setting.metadata.get("check", str)(text)
        except ValueError as error:
            raise InvalidSetting(name, text, str(error)) from None
        return text
    kind = float if setting.type is float else int
    low, high = setting.metadata["minimum"], setting.metadata["maximum"]
    try:
        number = kind(text)
    except ValueError:
        raise InvalidSetting(
            name, text, f"must be a {'' if kind is float else 'whole '}number from {low} to {high}"
        ) from None
    if not low <= number <= high:
        raise InvalidSetting(name, text, f"must be between {low} and {high}")
    return number
