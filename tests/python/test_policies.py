"""Policies of task queues that are functions of Python."""

import contextlib
import weakref

import pytest
import weir


@pytest.fixture
def machine():
    with weir.Runtime("host:cores=1,sim:cores=1") as made:
        yield made


def tasks_of(queue):
    return [each["tasks"] for each in queue.shares()]


def fill(queue, buffers, name="fill"):
    return [queue.submit("mem.set", [weir.write(x)], [1], name=name) for x in buffers]


def test_a_python_function_chooses_the_place_of_each_task(machine):
    seen = []

    def second(task, candidates):
        seen.append((task, [each.place for each in candidates]))
        assert all(each.cores == 1 and each.free_s >= 0 for each in candidates)
        assert candidates[1].run_s is None or candidates[1].run_s >= 0
        return 1

    places = [machine.domain(0).place(name="here"), machine.domain(1).place(name="there")]
    with machine.queue(second, places, models=False) as queue:
        fill(queue, [machine.buffer(100) for _ in range(5)])
        queue.synchronize()
        assert tasks_of(queue) == [0, 5] and queue.policy.startswith("second#")
    assert set(task for task, _ in seen) == {"fill"}
    assert all(names == ["here", "there"] for _, names in seen)


def test_policies_are_found_by_name_and_wrong_names_are_refused(machine):
    @machine.policy
    def first(task, candidates):
        return 0

    machine.policy("last", lambda task, candidates: len(candidates) - 1)
    assert {"first", "last"} <= {each["name"] for each in machine.describe()["policies"]}
    for name, share in (("first", [3, 0]), ("last", [0, 3])):
        with machine.queue(name, models=False) as queue:
            fill(queue, [machine.buffer(10) for _ in range(3)])
            queue.synchronize()
            assert tasks_of(queue) == share
    with pytest.raises(weir.InvalidArgumentError):
        machine.policy("first", first)
    with pytest.raises(weir.NotFoundError):
        machine.queue("none")


def test_a_closed_runtime_releases_its_policies():
    class Choose:
        def __init__(self, runtime):
            self.runtime = runtime

        def __call__(self, task, candidates):
            return 0

    runtime = weir.Runtime("host:cores=1")
    choose = Choose(runtime)
    seen = weakref.ref(choose)
    runtime.policy("mine", choose)
    runtime.close()
    del choose
    assert seen() is None


def test_tasks_that_a_policy_defers_run_one_after_another(machine):
    """The second task is deferred until the first one is over."""
    running = []

    def one_at_a_time(task, candidates):
        running.append(sum(each.tasks for each in candidates))
        return 0 if running[-1] == 0 else None

    with machine.queue(one_at_a_time) as queue:
        fill(queue, [machine.buffer(10) for _ in range(4)])
        queue.synchronize()
        assert queue.completed == 4
    assert running.count(0) == 4


@pytest.mark.parametrize("choose, cause, words", [
    (lambda task, candidates: 1 / 0, ZeroDivisionError, "division"),
    (lambda task, candidates: "there", TypeError, "integer"),
    (lambda task, candidates: -1, IndexError, "candidate -1"),
    (lambda: 0, TypeError, "argument"),
])
def test_an_error_of_a_policy_fails_its_task(machine, choose, cause, words):
    with machine.queue(choose) as queue:
        event = fill(queue, [machine.buffer(10)], "unlucky")[0]
        with pytest.raises(weir.InvalidArgumentError, match="for task 'unlucky'") as caught:
            queue.synchronize()
        assert isinstance(caught.value.__cause__, cause)
        assert words in str(caught.value.__cause__)
        with pytest.raises(weir.InvalidArgumentError):
            event.wait()


def test_policies_of_one_name_in_two_runtimes_raise_their_own_errors():
    """Those of two runtimes: each failure has the exception of its own."""
    errors = (LookupError("no place"), OSError("no machine"))
    with contextlib.ExitStack() as stack:
        events, queues = [], []
        for error in errors:
            def choose(task, candidates, error=error):
                raise error

            runtime = stack.enter_context(weir.Runtime("host:cores=1,sim:cores=1"))
            runtime.policy("mine", choose)
            queues.append(runtime.queue("mine"))
            events += fill(queues[-1], [runtime.buffer(10)])
        for event in events:
            with pytest.raises(weir.InvalidArgumentError):
                event.wait()
        for queue, error in zip(queues, errors):
            words = f"policy 'mine' raised {type(error).__name__}: {error} for task 'fill'"
            with pytest.raises(weir.InvalidArgumentError, match=words) as caught:
                queue.synchronize()
            assert caught.value.__cause__ is error


def test_a_policy_that_raises_for_300_tasks_is_reported_with_its_error(machine):
    """The failure that is reported is the first."""
    with machine.queue(lambda task, candidates: 1 / 0) as queue:
        fill(queue, [machine.buffer(10) for _ in range(300)])
        with pytest.raises(weir.InvalidArgumentError) as caught:
            queue.synchronize()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_policy_that_chooses_no_candidate_fails_the_queue(machine):
    with machine.queue(lambda task, candidates: 7) as queue:
        fill(queue, [machine.buffer(10)])
        with pytest.raises(weir.InvalidArgumentError, match="chose candidate 7 of 2") as caught:
            queue.synchronize()
        assert caught.value.__cause__ is None
    with machine.queue(lambda task, candidates: None) as queue:
        fill(queue, [machine.buffer(10)])
        with pytest.raises(weir.InvalidArgumentError, match="deferred task"):
            queue.synchronize()


def test_a_policy_that_is_not_a_function_is_refused(machine):
    with pytest.raises(TypeError):
        machine.policy("name")
    with pytest.raises(TypeError):
        machine.policy("name", 3)
