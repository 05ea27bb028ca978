"""What is said between three sites of twenty brokers, and in one tree of the same: `python benchmarks/sites.py`. Inside
the sites are trees, or rings.

Statements are filters that were said to begin or end: on the uplinks, which are slow or metered, and everywhere, which
counts those inside the sites too. Counts do not depend on the machine. `python benchmarks/sites.py 1 5` has one seed
and five brokers a site.
"""

from __future__ import annotations

import sys

from godwit.sim.fabrics.country import Country, CountryOptions


def main(seeds: int = 3, brokers: int = 20) -> None:
    print("seed  as     events  due  on uplinks  everywhere")
    for seed in range(1, seeds + 1):
        for what, as_sites, rings in (("sites", True, False), ("rings", True, True), ("tree", False, False)):
            found = Country(seed, CountryOptions(as_sites=as_sites, rings=rings, brokers=brokers)).run()
            print(
                f"{seed:4}  {what:5}  {found.events:6}  {found.due:3}  {found.statements:11}"
                f"  {found.statements_everywhere:10}"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
