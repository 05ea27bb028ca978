"""The table behind `make features`: marks name features that exist, and the table shows what proves what."""

from __future__ import annotations

from collections import Counter

import pytest
from tools import features

pytest_plugins = ["pytester"]

SPECS = {"content-routing": 47, "data-gathering": 45, "manet-cbr": 24, "mft-pubsub": 39, "proactive-handoff": 48}


def test_every_mark_names_a_feature_that_exists(request: pytest.FixtureRequest) -> None:
    proofs = features.proofs_of(request.session.items)
    titles = features.read_titles(features.TITLES)
    assert {name: sorted(proofs[name]) for name in features.unknown(titles, proofs)} == {}


def test_every_spec_has_a_title_for_each_of_its_features_in_order() -> None:
    numbers = {spec: list(titles) for spec, titles in features.read_titles(features.TITLES).items()}
    assert numbers == {spec: [f"F{n}" for n in range(1, last + 1)] for spec, last in SPECS.items()}


def test_titles_are_told_apart_and_fit_a_line() -> None:
    titles = [title for spec in features.read_titles(features.TITLES).values() for title in spec.values()]
    assert [title for title in titles if not 0 < len(title) <= 120] == []
    assert [title for title, count in Counter(titles).items() if count > 1] == []


def test_marks_on_module_class_and_parameters_all_count(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.feature("a F1")

        @pytest.mark.feature("a F2", "a F3")
        class TestOne:
            @pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.feature("a F4"))])
            def test_x(self, n): ...

        def test_y(): ...
        """
    )
    items, _ = pytester.inline_genitems()
    proofs = features.proofs_of(items)
    module = "test_marks_on_module_class_and_parameters_all_count.py"
    method, function = f"{module}::TestOne::test_x", f"{module}::test_y"
    assert proofs == {
        "a F1": {method: 3, function: 1},
        "a F2": {method: 3},
        "a F3": {method: 3},
        "a F4": {method: 1},
    }


def test_a_feature_that_no_spec_has_is_named() -> None:
    titles = {"a": {"F1": "one"}}
    assert features.unknown(titles, {"a F1": Counter(), "a F2": Counter(), "b F1": Counter()}) == ["a F2", "b F1"]


def test_the_table_shows_tests_by_module_and_what_has_none() -> None:
    titles = {"a": {"F1": "one", "F2": "two"}}
    proofs = {"a F1": Counter({"tests/test_m.py::test_x": 1, "tests/test_m.py::test_y": 12})}
    assert list(features.report(titles, proofs, 80)) == [
        "a",
        "  F1   one",
        "       tests/test_m.py",
        "         test_x, test_y (12 cases)",
        "  F2   two",
        "       no test",
        "",
        "a                    1 of 2 features have tests",
    ]
