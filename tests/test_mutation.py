"""The exercises' cases tell small changes of a reference apart; the whole table takes minutes.

`python tests/mutation.py --write` makes the table. Here three exercises are done in full, and the
kept table is held against the exercises that there are.
"""

import dataclasses

import course
import mutation
import pytest
from course.exercises import _registry, get
from course.exercises._report import Report

FULL = ("softmax", "split_heads", "macro_f1")
AGAIN = "run `python tests/mutation.py {} --write`"


@pytest.mark.parametrize("name", FULL)
def test_every_mutant_is_rejected_or_computes_the_same(name):
    result = mutation.examine(name)
    assert [mutant.key for mutant in result.survivors] == []
    assert result.not_survivors == []
    assert result.score == 1.0
    assert result.located_share >= mutation.LOCATED
    assert mutation.row(result) == mutation.kept_table().get(name), AGAIN.format(name)


def test_the_kept_table_has_every_exercise_and_no_other():
    kept, names = set(mutation.kept_table()), set(mutation.exercises())
    assert sorted(names - kept) == [], AGAIN.format(" ".join(sorted(names - kept)))
    assert sorted(kept - names) == []


@pytest.mark.parametrize("name", mutation.exercises())
def test_the_kept_table_is_of_this_reference_and_good_enough(name):
    kept = mutation.kept_table()[name]
    made = [one for one in mutation.mutants(name) if mutation.compiled(one, get(name))]
    assert int(kept["mutants"]) == len(made), f"the reference changed: {AGAIN.format(name)}"
    assert int(kept["mutants"]) >= 3
    assert float(kept["score"].rstrip(" %")) >= 100 * mutation.SCORE
    assert float(kept["located"].rstrip(" %")) >= 100 * mutation.LOCATED


def test_those_left_out_exist_and_are_few():
    assert set(mutation.BY_BEHAVIOR) <= set(course.exercises())
    assert len(mutation.BY_BEHAVIOR) == 2


def test_equivalent_mutants_exist_and_have_a_reason():
    for name, listed in mutation.equivalents().items():
        keys = {mutant.key for mutant in mutation.mutants(name)}
        assert set(listed) - keys == set(), f"{name}: the reference changed"
        assert all(len(reason) > 10 for reason in listed.values()), name


def test_the_same_mutants_each_time_and_no_two_alike():
    once, twice = mutation.mutants("macro_f1"), mutation.mutants("macro_f1")
    assert once == twice
    assert len({mutant.key for mutant in once}) == len({mutant.source for mutant in once})


def test_weak_cases_leave_survivors(monkeypatch):
    weak = dataclasses.replace(get("softmax"), cases=get("softmax").cases[:1])
    monkeypatch.setitem(_registry._exercises, "softmax", weak)
    result = mutation.examine("softmax")
    assert any("removed `highest = np.where" in mutant.key for mutant in result.survivors)
    assert result.score < mutation.SCORE
    assert not result.good


def test_a_loop_that_never_ends_is_stopped_and_told_so():
    endless = next(
        mutant for mutant in mutation.mutants("wordpiece") if mutant.label == "removed `stop -= 1`"
    )
    report = mutation.ask(endless, get("wordpiece"))
    assert "was stopped" in report.message
    assert mutation.is_located(report)


def test_a_bare_wrong_is_not_located():
    bare = Report("softmax", "wrong", "On the case “x”: this is wrong.")
    assert not mutation.is_located(bare)
    placed = dataclasses.replace(bare, message="On the case “x”: at `[0]` yours is 1; expected 2.")
    assert mutation.is_located(placed)
