"""Random stream programs give what NumPy gives in order."""

import numpy as np
import pytest
import weir

ROWS, COLUMNS = 6, 8


def random_index(random):
    """A block of a matrix, at times with gaps."""
    def part(length):
        begin = int(random.integers(0, length))
        return slice(begin, int(random.integers(begin + 1, length + 1)), int(random.integers(1, 3)))

    return part(ROWS), part(COLUMNS)


def plan(random, length):
    """A program: (what, index of a matrix, indices of its part, second operand, scalar)."""
    steps = []
    for _ in range(length):
        target, index = int(random.integers(0, 3)), random_index(random)
        source = int(random.integers(0, 3))
        steps.append((random.choice(["scale", "add", "shift"]), target, index, source,
                      int(random.integers(1, 4))))
    return steps


def scale(target, factor):
    target *= factor
    target %= 1009


def add(target, source, factor):
    target += factor * source.sum()
    target %= 1009


def shift(target, factor):
    target[...] = np.roll(target, factor)


def operands_of(step, matrices, use):
    what, target, index, source, _ = step
    given = [use(weir.readwrite, matrices[target], index)]
    if what == "add":
        given.append(use(weir.read, matrices[source], np.s_[:1]))
    return given


def run_sequentially(steps, order):
    matrices = start(order)
    for step in steps:
        given = operands_of(step, matrices, lambda access, matrix, index: matrix[index].copy()
                            if access is weir.read else matrix[index])
        {"scale": scale, "add": add, "shift": shift}[step[0]](*given, step[4])
    return matrices


def start(order):
    return [np.array(np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) * (k + 1), "i8", order=order)
            for k in range(3)]


def overlaps_itself(step):
    """add reads the first row of a matrix that it may be writing: one kernel, one memory."""
    return step[0] == "add" and step[1] == step[3]


@pytest.mark.parametrize("seed", range(40))
def test_random_stream_programs_give_the_result_of_numpy(seed):
    random = np.random.default_rng(seed)
    order = random.choice(["C", "F"])
    domains = ["host:cores=2", "sim:cores=2,gbps=50", "sim:cores=1,clock=virtual"][seed % 3]
    steps = [step for step in plan(random, 40) if not overlaps_itself(step)]
    matrices = start(order)
    with weir.Runtime(domains) as runtime:
        stream = runtime.domain().place(1).stream()
        buffers = [runtime.wrap(matrix) for matrix in matrices]
        kernels = {f.__name__: runtime.kernel(f) for f in (scale, add, shift)}
        for buffer in buffers:
            stream.upload(buffer)
        for step in steps:
            stream.compute(kernels[step[0]],
                           operands_of(step, buffers, lambda access, b, i: access(b[i])), [step[4]])
        for buffer in buffers:
            stream.download(buffer)
        stream.synchronize()
    for found, wanted in zip(matrices, run_sequentially(steps, order)):
        np.testing.assert_array_equal(found, wanted, f"seed {seed}")


@pytest.mark.parametrize("seed", range(40, 70))
def test_random_queue_programs_give_the_result_of_numpy(seed):
    random = np.random.default_rng(seed)
    order = random.choice(["C", "F"])
    steps = [step for step in plan(random, 30) if not overlaps_itself(step)]
    matrices = start(order)
    with weir.Runtime("host:cores=1,sim:cores=1,sim:cores=1") as runtime:
        kept = [runtime.wrap(matrix) for matrix in matrices]
        kernels = {f.__name__: runtime.kernel(f) for f in (scale, add, shift)}
        with runtime.queue(models=False) as queue:
            for step in steps:
                queue.submit(kernels[step[0]],
                             operands_of(step, kept, lambda access, b, i: access(b[i])), [step[4]])
    for found, wanted in zip(matrices, run_sequentially(steps, order)):
        np.testing.assert_array_equal(found, wanted, f"seed {seed}")
