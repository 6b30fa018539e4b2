"""Stages that are kernels, and stencils: pipelines through the memory of a device."""

import numpy as np
import pytest
import weir

PLATFORMS = ("host:cores=2", "host:cores=1,sim:cores=1", "host:cores=1,sim:cores=1,gbps=1")

SQUARES = """
WEIR_KERNEL(squares, 64, 1, 1, WEIR_GLOBAL const double* WEIR_RESTRICT x,
            WEIR_GLOBAL double* WEIR_RESTRICT y, weir_i64 count, double factor) {
  WEIR_ITEMS_LAST_BELOW(count) { y[WEIR_ITEM_X] = factor * x[WEIR_ITEM_X] * x[WEIR_ITEM_X]; }
}
"""

# Number i becomes i % 3 copies of itself.
COPIES = """
WEIR_KERNEL(copies, 64, 1, 1, WEIR_GLOBAL const weir_i32* x, WEIR_GLOBAL weir_i32* y,
            WEIR_GLOBAL weir_u32* counts, weir_i64 count) {
  WEIR_ITEMS_LAST_BELOW(count) {
    const weir_i64 i = WEIR_ITEM_X;
    counts[i] = x[i] % 3;
    for (weir_i32 copy = 0; copy < x[i] % 3; ++copy) y[2 * i + copy] = x[i];
  }
}
"""

CROSS = """
WEIR_KERNEL(cross, 16, 1, 1, WEIR_GLOBAL double* WEIR_RESTRICT next,
            WEIR_GLOBAL const double* WEIR_RESTRICT now, weir_i32 rows, weir_i32 columns,
            weir_i64 stride, weir_i64 above, weir_i64 left, weir_i64 row, weir_i64 column,
            weir_i64 all_rows, weir_i64 all_columns, double factor) {
  WEIR_ITEMS_LAST_BELOW(columns) {
    const weir_i64 y = WEIR_GROUP_Y, x = WEIR_ITEM_X, at = (y + above) * stride + left + x;
    const weir_i32 border = row + y == 0 || row + y == all_rows - 1 || column + x == 0 ||
                            column + x == all_columns - 1;
    next[y * stride + x] = border ? now[at] : factor * (now[at - 1] + now[at + 1] +
                                                        now[at - stride] + now[at + stride]);
  }
}
"""


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=PLATFORMS)
def machine(request):
    with weir.Runtime(request.param) as made:
        yield made


def card_of(machine):
    return machine.domain(len(machine.domains) - 1).place(1)


def test_a_kernel_stage_between_functions_computes_all_items_in_order(machine):
    kernel, card = machine.portable_kernel(SQUARES, "count"), card_of(machine)
    found = []
    with machine.pipeline() as pipeline:
        numbers, squares = pipeline.tunnel("f8"), pipeline.tunnel("f8")
        pipeline.source((np.arange(64.0 * i, 64.0 * (i + 1)) for i in range(20)), numbers)
        pipeline.kernel_stage(numbers, squares, kernel, [0.5], place=card, batch=100, ordered=True)
        pipeline.stage(squares, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.run()
    np.testing.assert_array_equal(found, 0.5 * np.arange(1280.0)**2)


def test_a_kernel_stage_puts_the_number_of_items_that_it_counts(machine):
    kernel, card = machine.portable_kernel(COPIES, "count"), card_of(machine)
    found = []
    with machine.pipeline() as pipeline:
        numbers, copies = pipeline.tunnel("i4"), pipeline.tunnel("i4")
        pipeline.source([np.arange(1000, dtype="i4")], numbers)
        pipeline.kernel_stage(numbers, [copies], kernel, place=card, most=2, counting=["item"])
        pipeline.stage(copies, function=lambda items: found.extend(items.tolist()), workers=1)
        pipeline.run()
    assert sorted(found) == sorted(n for n in range(1000) for _ in range(n % 3))


LOOKED_UP = """
WEIR_KERNEL(looked_up, 64, 1, 1, WEIR_GLOBAL const weir_i32* x, WEIR_GLOBAL double* y,
            WEIR_GLOBAL const double* table, WEIR_GLOBAL weir_i32* scratch, weir_i64 count) {
  WEIR_ITEMS_LAST_BELOW(count) {
    const weir_i64 i = WEIR_ITEM_X;
    scratch[i] += x[i];
    y[i] = table[scratch[i]];
  }
}
"""


def test_a_kernel_stage_reads_its_table_and_finds_zeros_in_its_scratch(machine):
    """What a batch finds in its scratch is 0, also where another had it before."""
    kernel, card = machine.portable_kernel(LOOKED_UP, "count"), card_of(machine)
    values = machine.wrap(np.arange(20.0)**2)
    found = []
    with machine.pipeline() as pipeline:
        numbers, squares = pipeline.tunnel("i4"), pipeline.tunnel("f8")
        pipeline.source((np.arange(i, i + 10, dtype="i4") % 10 for i in range(200)), numbers)
        pipeline.kernel_stage(numbers, squares, kernel, place=card, batch=64, in_flight=2,
                              tables=[values[5:15]], scratch_bytes=4 * 64, ordered=True)
        pipeline.stage(squares, function=lambda items: found.extend(items.tolist()), workers=1)
        del values
        pipeline.run()
    assert found == [(5 + (i + j) % 10)**2 for i in range(200) for j in range(10)]
    with machine.pipeline() as pipeline, pytest.raises(TypeError, match="sequence of parts"):
        pipeline.kernel_stage(pipeline.tunnel("i4"), [], kernel, place=card, tables=3)


def smooth(matrix, factor, sweeps):
    for _ in range(sweeps):
        new = matrix.copy()
        new[1:-1, 1:-1] = factor * (matrix[1:-1, :-2] + matrix[1:-1, 2:] + matrix[:-2, 1:-1]
                                    + matrix[2:, 1:-1])
        matrix = new
    return matrix


@pytest.mark.parametrize("sweeps", [1, 3])
def test_a_stencil_stage_gives_the_result_of_numpy(machine, sweeps):
    start = np.random.default_rng(sweeps).random((70, 90))
    result, tiles = machine.buffer(start.shape), []
    kernel, card = machine.portable_kernel(CROSS, ("columns", "rows")), card_of(machine)
    with machine.pipeline() as pipeline:
        rows, done = pipeline.tunnel("i8"), pipeline.tunnel(weir.STENCIL_REGION)
        stencil = pipeline.stencil(result, kernel, [0.25], place=card, halo=1, sweeps=sweeps,
                                   region=(16, 32), output=done)
        pipeline.source(np.random.default_rng(0).permutation(70), rows)

        @pipeline.stage(rows, stencil)
        def set_rows(numbers):
            return [(row, 0, start[row]) for row in numbers]

        pipeline.stage(done, function=lambda items: tiles.extend(items.tolist()), workers=1)
        pipeline.run()
        assert stencil.regions == 15 == stencil.regions_copied
        assert stencil.tiles_made == 15 * sweeps and "float64" in repr(stencil)
    np.testing.assert_allclose(result.array, smooth(start, 0.25, sweeps), rtol=1e-14)
    assert sorted(tiles) == [(row, column, min(16, 70 - row), min(32, 90 - column))
                             for row in range(0, 70, 16) for column in range(0, 90, 32)]


@pytest.fixture
def stencil(machine):
    """A pipeline with a stencil over 8 x 8 values, set by a stage that the test adds."""
    kernel, card = machine.portable_kernel(CROSS, ("columns", "rows")), card_of(machine)
    pipeline = machine.pipeline()
    numbers = pipeline.tunnel("i8")
    pipeline.source(range(8), numbers)
    result = machine.buffer((8, 8))
    made = pipeline.stencil(result, kernel, [0.25], place=card, halo=1)
    yield pipeline, numbers, made
    pipeline.close()


@pytest.mark.parametrize("values, error, cause", [
    (lambda n: (n[0], 0, np.zeros((2, 8))), "set", None),
    (lambda n: (n[0], 1, np.zeros(8)), "are not all in", None),
    (lambda n: (n[0], 0, np.zeros((1, 1, 8))), "3 axes", TypeError),
    (lambda n: [(n[0], 0)], "argument", TypeError),
    (lambda n: (-1, 0, np.zeros(8)), "row -1 is in no stencil", IndexError),
    (lambda n: (n[0], 2**64, np.zeros(8)), f"column {2**64} is in no stencil", IndexError),
    (lambda n: None if n[0] == 3 else (n[0], 0, np.zeros(8)), "complete", None),
])
def test_values_that_cannot_be_set_in_a_stencil_end_the_pipeline(stencil, values, error, cause):
    pipeline, numbers, made = stencil
    pipeline.stage(numbers, made, lambda items: values(items[:1]), name="set")
    with pytest.raises(weir.Error, match=error) as caught:
        pipeline.run(20)
    assert cause is None or isinstance(caught.value.__cause__, cause)


def test_wrong_arguments_of_kernel_stages_and_stencils_are_refused(machine):
    card = card_of(machine)
    kernel = machine.portable_kernel(SQUARES, "count")
    function = machine.kernel("function", lambda *parts: None)
    with machine.pipeline() as pipeline:
        numbers, squares = pipeline.tunnel("f8"), pipeline.tunnel("f8")
        for wrong, error, words in (
                (dict(kernel=function), TypeError, "function of Python"),
                (dict(kernel="none"), weir.NotFoundError, "none"),
                (dict(kernel=kernel, counting="some"), ValueError, "'some'"),
                (dict(kernel=kernel, most=[1, 2]), ValueError, "2 options"),
                (dict(kernel=kernel, scalars=[object()]), TypeError, "scalar 0"),
        ):
            with pytest.raises(error, match=words):
                pipeline.kernel_stage(numbers, squares, place=card, **wrong)
        matrix = machine.buffer((8, 8))
        for result in (matrix[1:], matrix[:, :4], machine.buffer(8), machine.buffer((8, 8), order="F")):
            with pytest.raises(ValueError, match="whole buffer"):
                pipeline.stencil(result, kernel, place=card, halo=1)
        with pytest.raises(TypeError, match="not into a"):
            pipeline.stage(numbers, [3], lambda items: None)
        pipeline.cancel()
