"""What is run: one setting for each point of a published curve and each replication."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from godwit.lab.workloads import Predicates, Script, Workload, draw, interface_name
from godwit.sim.streams import Streams
from godwit.tables.table import Interface

EXPERIMENTS = {
    "E1": "local clients",
    "E2": "variable interfaces",
    "E3": "hierarchical routing",
    "E4": "peer-to-peer forwards",
    "E5": "peer-to-peer with local clients",
    "E12": "one-shot merging",
    "E13": "dynamic root-set merging",
}

SHAPES: dict[str, tuple[int, int, Predicates]] = {
    "2D": (2, 2, Predicates.RANGES),
    "3D": (3, 3, Predicates.RANGES),
    "1-3D": (1, 3, Predicates.RANGES),
    "2 mixed": (2, 2, Predicates.MIXED),
    "3 mixed": (3, 3, Predicates.MIXED),
    "1-3 mixed": (1, 3, Predicates.MIXED),
}
"""Schemas: the least and the most constraints of a filter, and their predicates. The most is also how many names."""

NEIGHBORS_E5 = 4
STEPS_E13 = 100


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One replication of one point. `interfaces` counts the neighbors where there are any, 0 means one a filter.

    `clients` are interfaces of local clients beside them.
    """

    experiment: str
    schema: str
    filters: int
    interfaces: int = 0
    clients: int = 0
    replication: int = 0
    seed: int = 1

    def __str__(self) -> str:
        clients = f" and {self.clients} local" if self.clients else ""
        return (
            f"{self.experiment} with {self.filters} filters {self.schema} on {self.interfaces or self.filters}"
            f" interfaces{clients}, replication {self.replication}, seed {self.seed}"
        )

    @property
    def neighbors(self) -> frozenset[Interface]:
        """The interfaces that are routers, where the experiment is about routing between them."""
        return frozenset(interface_name(number) for number in range(self.interfaces))

    def script(self, *, events: int, steps: int | None = None) -> Script:
        """What happens in it; as many filters are replaced as there are, unless told otherwise (spec 6.3, item 13).

        Schema, replication and seed decide the filters: points of one curve differ in nothing but what the curve is
        about.
        """
        least, most, predicates = SHAPES[self.schema]
        workload = Workload(
            filters=self.filters,
            attributes_min=least,
            attributes_max=most,
            names=most,
            predicates=predicates,
            interfaces=self.interfaces + self.clients or None,
            replacements=self.filters if steps is None else steps,
            events=events,
        )
        return draw(workload, Streams(self.seed).child(self.schema, self.replication))


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that differ in size, interfaces and clients; every combination is run."""

    experiment: str
    schemas: tuple[str, ...]
    filters: tuple[int, ...]
    interfaces: tuple[int, ...] = (0,)
    clients: tuple[int, ...] = (0,)
    replications: int = 10

    def settings(self, seed: int, replications: int | None) -> Iterable[Setting]:
        return (
            Setting(
                experiment=self.experiment,
                schema=schema,
                filters=filters,
                interfaces=interfaces,
                clients=clients,
                replication=replication,
                seed=seed,
            )
            for replication in range(replications or self.replications)
            for schema in self.schemas
            for filters in self.filters
            for interfaces in self.interfaces
            for clients in self.clients
        )


RANGES = ("2D", "3D", "1-3D")
MIXED = ("1-3 mixed", "2 mixed", "3 mixed")

FULL = (
    Sweep(experiment="E1", schemas=RANGES, filters=(100, 200, 300, 400, 500)),
    Sweep(experiment="E2", schemas=("2D",), filters=(500,), interfaces=(1, 2, 5, 10, 25, 50, 100, 250, 500)),
    Sweep(experiment="E3", schemas=RANGES, filters=(1000,), interfaces=(3, 6, 9, 12, 15)),
    Sweep(experiment="E4", schemas=RANGES, filters=(1000,), interfaces=(3, 6, 9, 12, 15), clients=(0, 1)),
    Sweep(
        experiment="E5",
        schemas=("2D",),
        filters=(1000,),
        interfaces=(NEIGHBORS_E5,),
        clients=(1, 10, 50, 100, 250, 500),
    ),
    Sweep(
        experiment="E12",
        schemas=("1-3 mixed",),
        filters=(50, 100, 150, 200, 250, 300, 350, 400, 450, 500),
        interfaces=(3,),
        replications=60,
    ),
    Sweep(
        experiment="E12",
        schemas=("1-3 mixed",),
        filters=(500,),
        interfaces=(10, 25, 50, 100, 250),
        replications=60,
    ),
    Sweep(experiment="E12", schemas=("2 mixed", "3 mixed"), filters=(500,), interfaces=(3,), replications=40),
    Sweep(experiment="E13", schemas=MIXED, filters=(100, 200, 300, 400, 500), replications=20),
)
"""The published parameters. Where the text gives no points, those that show the shape of the curve."""

QUICK = (
    Sweep(experiment="E1", schemas=RANGES, filters=(60, 120, 240), replications=2),
    Sweep(experiment="E2", schemas=("2D",), filters=(250,), interfaces=(1, 5, 25, 100, 250), replications=2),
    Sweep(experiment="E3", schemas=RANGES, filters=(300,), interfaces=(3, 15), replications=2),
    Sweep(experiment="E4", schemas=RANGES, filters=(300,), interfaces=(3, 15), clients=(0, 1), replications=2),
    Sweep(
        experiment="E5",
        schemas=("2D",),
        filters=(250,),
        interfaces=(NEIGHBORS_E5,),
        clients=(1, 25, 125),
        replications=2,
    ),
    Sweep(experiment="E12", schemas=("1-3 mixed",), filters=(100, 250, 500), interfaces=(3,), replications=4),
    Sweep(experiment="E12", schemas=("1-3 mixed",), filters=(500,), interfaces=(25, 100, 250), replications=4),
    Sweep(experiment="E12", schemas=("2 mixed", "3 mixed"), filters=(500,), interfaces=(3,), replications=4),
    Sweep(experiment="E13", schemas=MIXED, filters=(100, 200, 400), replications=2),
)
"""Smaller sets and few replications: about a minute, and the same conclusions where they are clear."""


def planned(sweeps: Iterable[Sweep], seed: int, replications: int | None, only: Collection[str]) -> list[Setting]:
    """All settings, whole replications first, so that an interrupted run has something of everything."""
    settings = [
        setting
        for sweep in sweeps
        if not only or sweep.experiment in only
        for setting in sweep.settings(seed, replications)
    ]
    return sorted(settings, key=lambda setting: setting.replication)
