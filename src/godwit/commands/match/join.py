"""The work of `godwit match`: every event of one file against every subscription of another."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from godwit.commands.console import Bar, InputError, Reports, print_json, printable, shortened
from godwit.commands.match.deliveries import STDOUT, Deliveries
from godwit.commands.match.lines import STDIN
from godwit.commands.match.match import MatchOptions
from godwit.commands.match.matcher import make_ready
from godwit.commands.match.sources import Events, read_events
from godwit.commands.match.subscriptions import Subscription, read_subscriptions
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index

FINISHED, BAD_LINES, UNREADABLE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

PIECE_ROWS_MIN, PIECE_ROWS_MAX = 1 << 8, 1 << 16
PIECE_PAIRS = 1 << 26
"""Events go to the index so many at a time that no more pairs can come back, should all match all: 512 MiB."""

TOP = 5


@dataclass(slots=True)
class Tally:
    """What has been done so far; true at any moment, also when the work breaks off."""

    wanted: NDArray[np.int64]
    events: int = 0
    unwanted: int = 0
    deliveries: int = 0
    started: float = field(default_factory=time.monotonic)

    def count(self, offsets: NDArray[np.int64], subscriptions: NDArray[np.int64]) -> None:
        self.events += len(offsets) - 1
        self.deliveries += len(subscriptions)
        self.unwanted += int(np.count_nonzero(np.diff(offsets) == 0))
        self.wanted += np.bincount(subscriptions, minlength=len(self.wanted))


def joined(options: MatchOptions) -> int:
    """Match, write, report; the exit status."""
    if options.subscriptions == options.events == STDIN:
        raise InputError("subscriptions and events cannot both come from stdin")
    if options.as_json and options.out == STDOUT:
        raise InputError("--json and --out - would both go to stdout; name a file with --out")
    reports = Reports()
    subscriptions = read_subscriptions(options.subscriptions, reports)
    if not subscriptions:
        raise InputError(f"{options.subscriptions}: no subscription to match with")
    make_ready(reports.say)
    index = Index()
    index.add_many(range(len(subscriptions)), (one.filters for one in subscriptions))
    deliveries = None if options.out is None else Deliveries(options.out, [one.id for one in subscriptions])
    tally = Tally(np.zeros(len(subscriptions), np.int64))
    needed = {name for one in subscriptions for part in one.filters for own in part for name in own.names()}
    events = _limited(read_events(options.events, needed, reports), options.limit)
    status = _matched(index, events, deliveries, tally, reports)
    if deliveries is not None and status != FINISHED and (partial := deliveries.abandon()) is not None:
        reports.say(f"the deliveries found so far are in {partial}")
    if status != PIPE_CLOSED:
        _tell(tally, subscriptions, reports, options)
    return status or (BAD_LINES if reports.bad else FINISHED)


def _matched(
    index: Index, source: Iterable[Events], deliveries: Deliveries | None, tally: Tally, reports: Reports
) -> int:
    try:
        with Bar(reports.console, "matching") as bar:
            for events in _pieces(source, len(tally.wanted)):
                content = events.content
                batch = Batch.from_events(content) if isinstance(content, list) else Batch.from_arrow(content)
                matches = index.match_batch(batch)
                # Counted first: Ctrl-C may come at any moment, and what is in the file is in the account.
                tally.count(matches.offsets, matches.ids)
                if deliveries is not None:
                    deliveries.write(events, matches.offsets, matches.ids)
                bar.update(events.share, f"{tally.events:,} events, {tally.deliveries:,} deliveries")
        if deliveries is not None:
            deliveries.finish()
    except InputError as error:
        reports.say(f"godwit: {error}")
        return UNREADABLE
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:
        reports.say(f"godwit: deliveries cannot be written: {error.strerror}")
        return UNREADABLE
    except KeyboardInterrupt:
        reports.say("interrupted; this is how far it came:")
        return INTERRUPTED
    return FINISHED


def _pieces(source: Iterable[Events], subscriptions: int) -> Iterator[Events]:
    rows = int(np.clip(PIECE_PAIRS // subscriptions, PIECE_ROWS_MIN, PIECE_ROWS_MAX))
    for events in source:
        for at in range(0, len(events), rows):
            yield events.slice(at, at + rows)


def _limited(source: Iterable[Events], limit: int | None) -> Iterator[Events]:
    left = sys.maxsize if limit is None else limit
    for events in source:
        yield events.slice(0, left)
        left -= len(events)
        if left <= 0:
            return


def _tell(tally: Tally, subscriptions: Sequence[Subscription], reports: Reports, options: MatchOptions) -> None:
    account = {
        "events": tally.events,
        "subscriptions": len(subscriptions),
        "deliveries": tally.deliveries,
        "unwanted": tally.unwanted,
        "silent": int(np.count_nonzero(tally.wanted == 0)),
        "seconds": max(time.monotonic() - tally.started, 1e-9),
        "bad_lines": reports.bad,
        "most": _most_wanted(tally, subscriptions),
    }
    if options.as_json:
        print_json(account)
        return
    stream = sys.stderr if options.out == STDOUT else sys.stdout
    stream.write("".join(f"{printable(line)}\n" for line in _lines(account, options.out)))
    stream.flush()


def _lines(account: dict[str, Any], out: str | None) -> Iterator[str]:
    """The account for people."""
    yield "{events:,} events, {subscriptions:,} subscriptions: {deliveries:,} deliveries".format(**account)
    yield "events that nobody wanted: {unwanted:,}; subscriptions without a delivery: {silent:,}".format(**account)
    rate = account["events"] / account["seconds"]
    yield f"read and matched in {account['seconds']:.1f} s: {rate:,.0f} events/s"
    if account["bad_lines"]:
        yield f"bad lines, left out: {account['bad_lines']:,}"
    if most := account["most"]:
        yield "most deliveries:"
        names = [shortened(str(one["id"]), 24) for one in most]
        width = max(map(len, names))
        for one, name in zip(most, names, strict=True):
            yield f"  {one['deliveries']:>12,}  {name:<{width}}  {shortened(one['filter'], 72)}"
    if out is None:
        yield "No deliveries were written: --out FILE writes them, --out - prints them."


def _most_wanted(tally: Tally, subscriptions: Sequence[Subscription]) -> list[dict[str, Any]]:
    top = [at for at in np.argsort(-tally.wanted, kind="stable")[:TOP] if tally.wanted[at]]
    return [
        {"id": subscriptions[at].id, "deliveries": int(tally.wanted[at]), "filter": subscriptions[at].text}
        for at in top
    ]
