"""An outcome is a value, and its code carries the consequence."""

import numpy as np
import pytest

from kubenexus.framework.verdict import MAX_REASONS, Code, NodeVerdict, Reason, ReasonTable, Retry, code_of, shared_mask


@pytest.mark.parametrize(
    ("code", "number", "label", "retry", "preemptible"),
    [
        (Code.SUCCESS, 0, "Success", Retry.NEVER, False),
        (Code.ERROR, 1, "Error", Retry.SOON, False),
        (Code.UNSCHEDULABLE, 2, "Unschedulable", Retry.ON_EVENT, True),
        (Code.UNRESOLVABLE, 3, "UnschedulableAndUnresolvable", Retry.ON_EVENT, False),
        (Code.WAIT, 4, "Wait", Retry.NEVER, False),
        (Code.SKIP, 5, "Skip", Retry.NEVER, False),
        (Code.PENDING, 6, "Pending", Retry.ON_EVENT_AT_ONCE, False),
    ],
    ids=lambda value: value.label if isinstance(value, Code) else None,
)
def test_a_code_says_when_to_try_again_and_whether_eviction_helps(
    code: Code, number: int, label: str, retry: Retry, preemptible: bool
) -> None:
    assert (int(code), code.label, code.retry, code.preemptible) == (number, label, retry, preemptible)


def test_every_code_is_in_the_table_above() -> None:
    assert [code.retry for code in Code]
    assert [code.label for code in Code]
    assert len(Code) == 7


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param((), Code.SUCCESS, id="no reason is no refusal"),
        pytest.param((Code.UNSCHEDULABLE,), Code.UNSCHEDULABLE, id="one reason decides"),
        pytest.param((Code.PENDING, Code.UNSCHEDULABLE), Code.UNSCHEDULABLE, id="a refusal outweighs waiting"),
        pytest.param((Code.UNSCHEDULABLE, Code.UNRESOLVABLE), Code.UNRESOLVABLE, id="one hopeless reason is enough"),
        pytest.param((Code.UNRESOLVABLE, Code.ERROR), Code.ERROR, id="an error outweighs everything"),
    ],
)
def test_the_code_of_several_reasons(codes: tuple[Code, ...], expected: Code) -> None:
    assert code_of(tuple(Reason(f"reason {i}", code) for i, code in enumerate(codes))) is expected


RED, BLUE = Reason("red"), Reason("blue", Code.UNRESOLVABLE)


def test_a_row_may_have_several_reasons_and_says_them_in_the_order_they_were_first_given() -> None:
    verdict = NodeVerdict(ReasonTable())
    verdict.reject(np.array([True, False, True]), RED)
    verdict.reject(np.array([True, True, False]), BLUE)
    assert [verdict.table.read(bits) for bits in verdict.bits.tolist()] == [(RED, BLUE), (BLUE,), (RED,)]


def test_rejecting_nobody_costs_nothing() -> None:
    verdict = NodeVerdict(ReasonTable())
    verdict.reject(np.array([False, False]), RED)
    verdict.reject(False, RED)
    assert isinstance(verdict.bits, int)
    assert verdict.bits == 0
    assert verdict.table.reasons == []


def test_a_mask_that_is_shared_is_not_copied_and_stays_as_it_is() -> None:
    mask = np.array([True, False, True])
    shared = shared_mask(mask)
    verdict, another = NodeVerdict(), NodeVerdict()
    verdict.reject_shared(shared, RED)
    another.reject_shared(shared, BLUE)
    assert np.shares_memory(verdict.bits, mask)
    verdict.reject_shared(shared, BLUE)
    assert [verdict.table.read(bits) for bits in verdict.bits.tolist()] == [(RED, BLUE), (), (RED, BLUE)]
    assert [another.table.read(bits) for bits in another.bits.tolist()] == [(BLUE,), (), (BLUE,)]
    assert mask.tolist() == [True, False, True]
    with pytest.raises(ValueError, match="read-only"):
        shared[1] = 1


def test_a_mask_that_is_true_nowhere_need_not_be_shared() -> None:
    assert shared_mask(np.array([False, False])) is None


def test_a_mask_that_changes_later_changes_no_verdict() -> None:
    mask = np.array([True, False])
    window = mask[:]
    window.flags.writeable = False
    for shown in (mask, window):
        verdict = NodeVerdict(ReasonTable())
        mask[:] = True, False
        verdict.reject(shown, RED)
        mask[:] = False
        assert verdict.bits.tolist() == [1, 0]


def test_over_a_single_row_a_bool_will_do() -> None:
    verdict = NodeVerdict(ReasonTable())
    verdict.reject(True, RED)
    verdict.reject(True, BLUE)
    assert verdict.table.read(verdict.row_bits) == (RED, BLUE)


def test_more_reasons_than_bits_share_the_last_one_and_refuse_all_the_same() -> None:
    table = ReasonTable()
    many = [Reason(f"Insufficient example.com/r{i}") for i in range(MAX_REASONS + 10)]
    bits = [table.bit(reason) for reason in many]
    assert all(bit > 0 for bit in bits)
    assert [table.bit(reason) for reason in many] == bits
    assert table.read(bits[0]) == (many[0],)
    assert len({*bits[MAX_REASONS - 1 :]}) == 1
    assert len(table.reasons) == MAX_REASONS
    verdict = NodeVerdict(table)
    verdict.reject(np.array([True]), many[-1])
    assert verdict.bits.tolist() == [1 << (MAX_REASONS - 1)]
