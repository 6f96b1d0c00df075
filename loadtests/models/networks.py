"""Solves networks of queues with several classes of customers: closed, open, and mixed, exactly.

Networks must have a product form: exponential service in order of arrival with one mean for all
classes, or any service with a shared processor or at a delay. Other networks differ from it.

Closed classes are solved by mean value analysis over all populations n up to N, with the arrival
theorem: a customer of class r that arrives meets the queue of the network without it, n − e_r. With
a station's demand D_r, its rate α(j) with j customers there (min(j, m) for m servers), and p(j) the
probability of j there:

    R_r(n) = D_r · Σ_{j≥1} j/α(j) · p(j−1 | n−e_r)
    X_r(n) = n_r/(Z_r + Σ R_r(n)),   p(j | n) = Σ_r X_r·D_r/α(j) · p(j−1 | n−e_r)

Textbooks take p(0 | n) as 1 less all others; once a station is saturated, that is a difference of
nearly equal numbers, and results become negative. Here p(0 | n) = p(0 | n−e_r)·X_r(n)/X'_r(n) for
any class r in n, where X' is the throughput of the network without this station, so that nothing
cancels. Its price is that each station whose rate depends on the number of its customers doubles
the number of networks to solve. For the same reason the sum of R_r(n) is taken term by term, but
for the j at which the station works at its last rate, if that is the highest: their p(j) are known
together, by the mean.

Open classes take a share ρ = Σ λ_r·D_r of each station for themselves. To the closed ones it is a
station with the rates α'(n) = α(n)·S(n−1)/S(n), where S(n) = Σ_i C(n+i, i)·ρ^i/(α(n+1)…α(n+i)) adds
up the weights of i open customers beside n closed ones; for one server α' = 1 − ρ.

Sources: M. Reiser and S. S. Lavenberg, Journal of the ACM 27 (1980), for closed classes; M. Reiser,
Performance Evaluation 1 (1981), for p(0); S. C. Bruell, G. Balbo and P. V. Afshari, Performance
Evaluation 4 (1984), for mixed networks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from loadtests.models.domain import count, not_negative, positive

MOST_DEPENDENT = 6  # stations with several servers or rates: 2⁶ = 64 networks are solved
MOST_STEPS = 1_000_000  # populations times networks times stations times classes: half a minute
MOST_TERMS = 50_000_000  # of all S(n): half a minute, too
MOST_SERVERS = 10_000  # of a station
MOST_LOAD = 0.9999  # of open classes at a station: beyond, S(n) would need too many terms
NO_TIME = "a round takes no time: all demands and the think time are 0"
_LEAST_TERM, _LARGE = 1e-17, 1e200

Rates = tuple[float, ...] | None  # α(1), α(2) … of a station, the last for all more; None: a delay


@dataclass(frozen=True, slots=True)
class CustomerClass:
    """Describes customers of a closed class (a number, a think time) or an open one (a rate).

    customers: N of a closed class, 0 of an open one. think_time_s: Z. rate_per_s: λ.
    """

    name: str
    customers: int = 0
    think_time_s: float = 0.0
    rate_per_s: float = 0.0

    def __post_init__(self) -> None:
        count(f"customers of class {self.name!r}", self.customers, least=0)
        not_negative(f"think_time_s of class {self.name!r}", self.think_time_s)
        not_negative(f"rate_per_s of class {self.name!r}", self.rate_per_s)
        if (self.customers > 0) == (self.rate_per_s > 0):
            raise ValueError(
                f"class {self.name!r} needs either customers (closed) or rate_per_s (open), above "
                f"0; it has {self.customers} customers and a rate of {self.rate_per_s:g}"
            )
        if self.is_open and self.think_time_s:
            raise ValueError(f"class {self.name!r} is open and has no think_time_s; leave it out")

    @property
    def is_open(self) -> bool:
        """Return whether its customers come from outside and leave again."""
        return self.customers == 0


@dataclass(frozen=True, slots=True)
class ServiceStation:
    """Describes a station by the demand D = V·S in s of each class, in the order of the classes.

    rates: how many times as fast as with one customer it works with 1, 2 … of them; the last holds
    for all more. None is a delay, where nobody waits.
    """

    name: str
    demands_s: tuple[float, ...]
    rates: Rates = (1.0,)

    def __post_init__(self) -> None:
        for demand_s in self.demands_s:
            not_negative(f"demand_s of station {self.name!r}", demand_s)
        if self.rates is not None:
            count(f"number of rates of station {self.name!r}", len(self.rates))
            for rate in self.rates:
                positive(f"a rate of station {self.name!r}", rate)


def of_servers(servers: int, name: str = "servers") -> tuple[float, ...]:
    """Return the rates of equal servers with one queue. Raises ValueError, with their name."""
    if servers > MOST_SERVERS:
        raise ValueError(f"{name} must be at most {MOST_SERVERS}, is {servers}")
    return tuple(float(n) for n in range(1, count(name, servers) + 1))


# --- closed classes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """Holds the means of closed classes with so many customers each.

    throughputs_per_s: X of each class. residences_s: R of each station, of each class.
    queues: mean customers of each station. idle: p(0), p(1) … of the stations that need it.
    """

    customers: tuple[int, ...]
    throughputs_per_s: tuple[float, ...]
    residences_s: tuple[tuple[float, ...], ...]
    queues: tuple[float, ...]
    idle: tuple[tuple[float, ...], ...]


_Without = dict[frozenset[int], list[tuple[float, ...]]]  # stations left out -> X of each state


def closed_states(
    stations: Sequence[ServiceStation], thinks_s: Sequence[float], customers: Sequence[int]
) -> Iterator[State]:
    """Return the states of all populations up to `customers` in each class, that one last.

    Raises ValueError if it takes too many steps, or a class has a round that takes no time.
    """
    dependent = sum(_depends(station) for station in stations)
    if dependent > MOST_DEPENDENT:
        counted = f"{dependent} stations have several servers or rates"
        raise ValueError(f"{counted}; at most {MOST_DEPENDENT} can be solved")
    size, most = math.prod(number + 1 for number in customers) * 2**dependent, sum(customers)
    work = sum(1 + _number_of_rates(station.rates, most) / 50 for station in stations)
    if size > MOST_STEPS or size * work * len(customers) > MOST_STEPS:  # no float holds any size
        raise ValueError(
            "the network has too many populations to solve; take fewer customers, closed classes "
            f"(here {len(customers)}), or stations with several servers or rates (here {dependent})"
        )
    for at, think_s in enumerate(thinks_s):
        if think_s + math.fsum(station.demands_s[at] for station in stations) == 0:
            raise ValueError(NO_TIME)
    reached = [replace(station, rates=_reached(station.rates, most)) for station in stations]
    return _states(reached, thinks_s, customers, frozenset(), {})


def _number_of_rates(rates: Rates, most: int) -> int:
    """Return how many rates are needed for up to `most` customers: all, or those up to the last."""
    known = (rates or ())[: most + 1]
    return len(known) if not known or max(known) == known[-1] else most + 1


def _reached(rates: Rates, most: int) -> Rates:
    """Return the rates that up to `most` customers reach; all of them if the last is exceeded."""
    if rates is None:
        return None
    needed = _number_of_rates(rates, most)
    return (*rates[:needed], *rates[-1:] * (needed - len(rates)))


def _depends(station: ServiceStation) -> bool:
    return station.rates is not None and len(station.rates) > 1


def _states(
    stations: Sequence[ServiceStation],
    thinks_s: Sequence[float],
    customers: Sequence[int],
    left_out: frozenset[int],
    known: _Without,
) -> Iterator[State]:
    """Yield the states without the stations of the numbers `left_out`, which have no customers."""
    there = [at for at in range(len(stations)) if at not in left_out]
    dependent = [at for at in there if _depends(stations[at])]
    for names in (left_out | {at} for at in dependent):
        if names not in known:
            solved = _states(stations, thinks_s, customers, names, known)
            known[names] = [state.throughputs_per_s for state in solved]
    strides = [math.prod(n + 1 for n in customers[at + 1 :]) for at in range(len(customers))]
    states: list[State] = []
    for index, numbers in enumerate(product(*(range(number + 1) for number in customers))):
        before = [states[index - strides[r]] if n else None for r, n in enumerate(numbers)]
        stays_s = [
            _stay_s(station, at, before) if at in there else (0.0,) * len(customers)
            for at, station in enumerate(stations)
        ]
        x = _throughputs_per_s(numbers, thinks_s, stays_s)
        queues = [
            math.fsum(a * b for a, b in zip(x, stay_s, strict=True) if b) for stay_s in stays_s
        ]
        idle = [
            _idle(stations[at], at, before, x, known[left_out | {at}][index])
            if at in dependent
            else ()
            for at in range(len(stations))
        ]
        state = State(numbers, x, tuple(stays_s), tuple(queues), tuple(idle))
        states.append(state)
        yield state


def _throughputs_per_s(
    numbers: Sequence[int], thinks_s: Sequence[float], stays_s: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    """Return X of each class: its customers over the time of a round."""
    rounds_s = [think_s + math.fsum(s[r] for s in stays_s) for r, think_s in enumerate(thinks_s)]
    return tuple(
        0.0 if n == 0 else n / round_s if round_s else math.inf
        for n, round_s in zip(numbers, rounds_s, strict=True)
    )


def _stay_s(station: ServiceStation, at: int, before: Sequence[State | None]) -> tuple[float, ...]:
    """Return R of each class at the station of number `at`; 0 of a class without customers.

    before: for each class, the state with a customer of it less, which an arriving one meets.
    """
    return tuple(
        0.0 if state is None else _residence_s(station, r, state.queues[at], state.idle[at])
        for r, state in enumerate(before)
    )


def _residence_s(station: ServiceStation, r: int, queue: float, idle: Sequence[float]) -> float:
    """Return R_r of a station whose queue and probabilities an arriving customer meets."""
    demand_s, rates = station.demands_s[r], station.rates
    if rates is None:
        return demand_s
    last = rates[-1] if rates[-1] == max(rates) else math.inf  # inf: all customers are in `idle`
    more = math.fsum(
        j * (1 / rate - 1 / last) * p
        for j, (rate, p) in enumerate(zip(rates, idle, strict=False), start=1)
    )
    return demand_s * ((1 + queue) / last + more)


def _idle(
    station: ServiceStation,
    at: int,
    before: Sequence[State | None],
    x: Sequence[float],
    x_without: Sequence[float],
) -> tuple[float, ...]:
    """Return p(j) of a station, j below its number of rates. before: states with a customer less.

    A class that passes no other station in any time (X infinite) changes nothing here.
    """
    states = [(r, state) for r, state in enumerate(before) if state is not None]
    finite = [(r, state) for r, state in states if math.isfinite(x[r])]
    rates = station.rates or ()
    if not states:
        return (1.0, *[0.0] * (len(rates) - 1))
    if not finite:
        return states[0][1].idle[at]
    r, state = finite[0]
    probabilities = [state.idle[at][0] * x[r] / x_without[r]]
    for j, rate in enumerate(rates[:-1]):
        shares = (x[r] * station.demands_s[r] * state.idle[at][j] for r, state in finite)
        probabilities.append(math.fsum(shares) / rate)
    return tuple(probabilities)


# --- open and mixed networks ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtStation:
    """Holds the means of a class at a station. residence_time_s: R of all visits. customers: X·R.

    utilisation: X·D over the highest rate, its share of all servers; of a delay X·D, those in it.
    """

    name: str
    residence_time_s: float
    customers: float
    utilisation: float


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """Holds the means of a class. response_time_s: R, at all stations, without the think time."""

    name: str
    throughput_per_s: float
    response_time_s: float
    customers: float
    at: tuple[AtStation, ...]


def solve(
    classes: Sequence[CustomerClass], stations: Sequence[ServiceStation]
) -> tuple[ClassMeans, ...]:
    """Return the means of all classes, in their order.

    Raises ValueError if a class visits no station, if open classes bring more work than a station
    can do, if a result is beyond the numbers of a computer, or as `closed_states`.
    """
    _check_times(classes, stations)
    loads = [_open_load(classes, station) for station in stations]
    _check_loads(stations, loads)
    visitors = [_closed_visitors(classes, station) for station in stations]
    if sum(map(_number_of_terms, stations, loads, visitors)) > MOST_TERMS:
        raise ValueError(
            "open classes beside so many closed customers, servers or rates take too long to "
            "solve; take fewer of these, or lower the rates of arrival"
        )
    beside = list(map(_Beside, stations, loads, visitors))
    closed = [at for at, group in enumerate(classes) if not group.is_open]
    of_closed = [
        ServiceStation(station.name, tuple(station.demands_s[at] for at in closed), seen.rates)
        for station, seen in zip(stations, beside, strict=True)
    ]
    thinks_s = [classes[at].think_time_s for at in closed]
    *_, last = closed_states(of_closed, thinks_s, [classes[at].customers for at in closed])
    means = []
    visits = zip(classes, _throughputs_and_stays_s(classes, stations, beside, last), strict=True)
    for at, (group, (x, stays_s)) in enumerate(visits):
        rows = tuple(
            AtStation(
                station.name,
                stay_s,
                x * stay_s,
                x * station.demands_s[at] / max(station.rates or (1.0,)),
            )
            for station, stay_s in zip(stations, stays_s, strict=True)
        )
        response_s = math.fsum(stays_s)
        if not (0 < x < math.inf and response_s < math.inf):
            raise ValueError(
                f"class {group.name!r}: its times are too small or too large to compute"
            )
        means.append(ClassMeans(group.name, x, response_s, x * response_s, rows))
    return tuple(means)


def _check_times(classes: Sequence[CustomerClass], stations: Sequence[ServiceStation]) -> None:
    """Raise ValueError, which names the class, if a round of a class takes no time."""
    for at, group in enumerate(classes):
        if not (group.think_time_s or any(station.demands_s[at] for station in stations)):
            raise ValueError(f"class {group.name!r}: {NO_TIME}; give it a demand at a station")


def _throughputs_and_stays_s(
    classes: Sequence[CustomerClass],
    stations: Sequence[ServiceStation],
    beside: Sequence["_Beside"],
    last: State,
) -> Iterator[tuple[float, list[float]]]:
    """Yield X and R at each station for each class. last: the state of all closed customers."""
    closed = 0
    for at, group in enumerate(classes):
        if group.is_open:
            yield (
                group.rate_per_s,
                [
                    station.demands_s[at] * seen.open_customers(queue, idle)
                    for station, seen, queue, idle in zip(
                        stations, beside, last.queues, last.idle, strict=True
                    )
                ],
            )
        else:
            stays_s = [of_classes[closed] for of_classes in last.residences_s]
            yield last.throughputs_per_s[closed], stays_s
            closed += 1


def _open_load(classes: Sequence[CustomerClass], station: ServiceStation) -> float:
    """Return Σ λ·D of the open classes at a station."""
    both = zip(classes, station.demands_s, strict=True)
    return sum(group.rate_per_s * demand_s for group, demand_s in both if group.is_open)


def _check_loads(stations: Sequence[ServiceStation], loads: Sequence[float]) -> None:
    """Raise ValueError, which names the busiest station, if open classes bring it too much."""
    busy = [
        (load / station.rates[-1], load, station.name, station.rates[-1])
        for station, load in zip(stations, loads, strict=True)
        if station.rates
    ]
    share, load, name, rate = max(busy, default=(0.0, 0.0, "", 1.0))
    if share > MOST_LOAD:
        why = "no steady state" if share >= 1 else f"more than {MOST_LOAD:g} of that is not solved"
        raise ValueError(
            f"open classes bring {load:.6g} s of work a second to station {name!r}, "
            f"which can do {rate:g}: {why}, so lower their rates"
        )


def _closed_visitors(classes: Sequence[CustomerClass], station: ServiceStation) -> int:
    """Return how many closed customers the network has, 0 if none of them visits the station."""
    both = zip(classes, station.demands_s, strict=True)
    is_visited = any(demand_s for group, demand_s in both if not group.is_open)
    return sum(group.customers for group in classes) if is_visited else 0


def _number_of_terms(station: ServiceStation, load: float, closed: int) -> float:
    """Return about how many terms all S(n) have that `_Beside` adds up for a station."""
    rates = station.rates or ()
    if not (rates and load):
        return 0
    sums = min(len(rates), closed + 2)
    return sums * (len(rates) + (sums + 40) / (1 - load / rates[-1]))


class _Beside:
    """Shows a station as closed customers see it beside open ones that bring `load` = Σ λ·D.

    rates: α'. The last of them holds for all more, as the station's own do; those beyond the number
    of closed customers do not matter, and are left out but for one. If none come here, only the
    first is kept, and the station is solved as quickly as a single server.
    """

    def __init__(self, station: ServiceStation, load: float, closed: int) -> None:
        self._load, self._own, self.rates = load, station.rates or (), station.rates
        self._closed = closed
        self._means: list[float] = []  # open customers beside n closed ones, over the load
        if self._own and load:
            sums = [self._sums(n) for n in range(min(len(self._own), closed + 2))]
            self._means = [mean for _, mean in sums]
            pairs = zip(self._own, pairwise(log for log, _ in sums), strict=False)
            slower = (rate * math.exp(before - after) for rate, (before, after) in pairs)
            self.rates = (*slower, self._own[-1] - load)
        if self.rates and not closed:
            self.rates = self.rates[:1]

    def _sums(self, n: int) -> tuple[float, float]:
        """Return ln S(n), and the mean number of open customers over the load."""
        term, total, first, i, log = 1.0, 1.0, 0.0, 0, 0.0
        while term > _LEAST_TERM * total or n + i < len(self._own):
            i += 1
            term *= self._load * (n + i) / (i * self._own[min(n + i, len(self._own)) - 1])
            total += term
            first += i * term
            if total > _LARGE:
                term, total, first = term / _LARGE, total / _LARGE, first / _LARGE
                log += math.log(_LARGE)
        return log + math.log(total), first / total / self._load

    def open_customers(self, queue: float, idle: Sequence[float]) -> float:
        """Return Q/(λ·D) of open classes beside closed ones with this mean and probabilities.

        Beside n closed ones it is (n + 1)/(α − Σ λ·D), if α is the last rate from n + 1 on.
        """
        if not self._means:
            return 1.0
        idle = idle if self._closed else (1.0,)
        free = self._own[-1] - self._load
        beyond = ((n + 1) / free for n in range(len(self._means), len(idle)))
        known = enumerate(zip((*self._means, *beyond), idle, strict=False), start=1)
        return (1 + queue) / free + math.fsum(p * (mean - n / free) for n, (mean, p) in known)
