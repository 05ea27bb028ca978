"""An index in a file is the same index, shared and safe from those who load it."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ, gr, like, rng
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index
from godwit.tables.matching.index_file import IndexFileError, load, save

FILTERS: dict[int, Filter] = {
    **{n: filter_of(attribute("x", rng(n, n + 10)), attribute("kind", equ(f"k{n % 3}"))) for n in range(200)},
    900: filter_of(attribute("name", like("a%b_c%"))),
    901: filter_of(attribute("x", gr(50))),
}
EVENTS = [{"x": n, "kind": f"k{n % 3}", "name": "axxbyc" if n % 2 else "none"} for n in range(0, 220, 7)]


def made() -> Index:
    index = Index()
    index.add_many(FILTERS.keys(), FILTERS.values())
    return index


def answers(index: Index) -> list[list[int]]:
    batch = index.match_batch(Batch.from_events(EVENTS))
    single = [sorted(index.match(event).tolist()) for event in EVENTS]
    assert [sorted(ids.tolist()) for ids in batch] == single
    return single


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "subscriptions.index"


def test_a_loaded_index_answers_as_the_saved_one(path: Path) -> None:
    index = made()
    save(index, path)
    loaded = load(path)
    wanted = [sorted(n for n, f in FILTERS.items() if f.matches(event)) for event in EVENTS]
    assert answers(loaded) == answers(index) == wanted
    assert len(loaded) == len(FILTERS)


def test_changes_to_a_loaded_index_stay_out_of_the_file(path: Path) -> None:
    save(made(), path)
    before = path.read_bytes()
    loaded = load(path)
    for number in range(200):
        loaded.remove(number)
    loaded.add_many(range(1_000, 6_000), [filter_of(attribute("x", equ(n))) for n in range(5_000)])
    assert sorted(loaded.match({"x": 60}).tolist()) == [901, 1_060]
    assert path.read_bytes() == before
    assert answers(load(path)) == answers(made())


def test_an_empty_index_can_be_saved(path: Path) -> None:
    save(Index(), path)
    loaded = load(path)
    loaded.add(1, filter_of(attribute("x", gr(1))))
    assert loaded.match({"x": 2}).tolist() == [1]


@pytest.mark.parametrize("keep", [0, 10, 30, 5_000])
def test_a_file_that_is_cut_off_or_foreign_is_refused(path: Path, keep: int) -> None:
    save(made(), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(IndexFileError, match=r"subscriptions\.index"):
        load(path)


def test_a_foreign_file_is_refused(path: Path) -> None:
    path.write_bytes(b"something else entirely, and long enough to be read")
    with pytest.raises(IndexFileError, match="no index file"):
        load(path)


def test_a_failed_save_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(made(), path)
    before = path.read_bytes()
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(Index(), path)
    assert path.read_bytes() == before
