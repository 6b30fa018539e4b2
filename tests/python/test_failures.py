"""Failures, threads, signals, and the ends of things."""

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref

import numpy as np
import pytest
import weir


def test_an_exception_poisons_only_the_actions_that_depend_on_it(runtime, stream):
    x = np.zeros(3)
    cells = runtime.wrap(x)

    def check(cell, value):
        if value < 0:
            raise ValueError("negative weight")
        cell[0] = value

    kernel = runtime.kernel("check", check)
    for i in range(3):
        stream.upload(cells[i:i + 1])
    stream.compute(kernel, [weir.readwrite(cells[0:1])], [-1], name="cell 0")
    dependent = stream.compute(kernel, [weir.readwrite(cells[0:1])], [1], name="cell 0 again")
    independent = stream.compute(kernel, [weir.readwrite(cells[1:2])], [2])
    independent.wait()
    with pytest.raises(weir.PoisonedError, match="'cell 0' .*negative weight") as poisoned:
        dependent.wait()
    with pytest.raises(weir.KernelError, match="'cell 0' .*ValueError: negative weight") as failed:
        stream.synchronize()
    assert (failed.value.status, dependent.status) == ("kernel_error", "poisoned")
    for caught in (poisoned, failed):
        cause = caught.value.__cause__
        assert isinstance(cause, ValueError) and str(cause) == "negative weight"
        assert "in check" in "".join(traceback.format_tb(cause.__traceback__))
    stream.compute(kernel, [weir.readwrite(cells[0:1])], [3])
    stream.download(cells)
    stream.synchronize()
    assert (x[0], x[1]) == (3, 2)


def test_destroying_an_old_exception_may_raise_another_one():
    """The newest 256 are kept. What the oldest holds runs code when it goes, which fails."""
    raised = []

    class Failure(Exception):
        pass

    class Last:
        def __del__(self):
            queue.submit(nothing, [])

    def choose(task, candidates):
        raise LookupError("no place")

    def fail(number):
        failure = Failure(Last() if number == 0 else number)
        raised.append(weakref.ref(failure))
        raise failure

    with weir.Runtime("host:cores=1,sim:cores=1") as runtime:
        places = [domain.place() for domain in runtime.domains]
        stream = places[0].stream()
        runtime.policy("raises", choose)
        queue = runtime.queue(policy="raises", places=places)
        nothing = runtime.kernel("nothing", lambda: None)
        kernel = runtime.kernel("fail", fail)
        for number in range(256):
            stream.compute(kernel, [], [number])
        newest = stream.compute(kernel, [], [256])
        with pytest.raises(weir.KernelError) as failed:
            newest.wait()
        assert failed.value.__cause__.args == (256,)
        assert [each() is None for each in raised[:3]] == [True, True, False]
        with pytest.raises(weir.KernelError):
            stream.synchronize()
        with pytest.raises(weir.InvalidArgumentError, match="raised LookupError: no place"):
            queue.synchronize()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StopIteration, MemoryError])
def test_any_exception_fails_the_action(runtime, stream, error):
    def raise_it():
        raise error

    stream.compute(runtime.kernel("raise", raise_it), [])
    with pytest.raises(weir.KernelError) as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, error)


def test_a_kernel_with_a_missing_argument_fails_with_a_type_error(runtime, stream):
    stream.compute(runtime.kernel("two", lambda x, y: None), [], [1])
    with pytest.raises(weir.KernelError) as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, TypeError)


def test_long_messages_with_newlines_and_percent_signs_are_reported(runtime, stream):
    def fail():
        raise RuntimeError("100 %s\nof\0 it " + "x" * 5000)

    stream.compute(runtime.kernel("fail", fail), [])
    with pytest.raises(weir.KernelError, match="100 %s of") as caught:
        stream.synchronize()
    assert len(str(caught.value.__cause__)) > 5000


@pytest.mark.parametrize("shift", range(2))
def test_long_messages_cut_within_a_letter_are_reported(runtime, stream, shift):
    def fail():
        raise ValueError("x" * shift + "\u00e9" * 600)

    future = stream.compute(runtime.kernel("fail", fail), []).future()
    with pytest.raises(weir.KernelError) as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, ValueError)
    assert isinstance(future.exception(30), weir.KernelError), "the future has the failure"


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [Unprintable(), ValueError("half a letter: \udcff")])
def test_an_exception_that_cannot_be_printed_is_reported_by_its_type(runtime, stream, error):
    def fail():
        raise error

    stream.compute(runtime.kernel("fail", fail), [])
    with pytest.raises(weir.KernelError, match=type(error).__name__) as caught:
        stream.synchronize()
    assert caught.value.__cause__ is error


def test_buffers_kernels_and_events_of_another_runtime_are_refused(card):
    with weir.Runtime("host:cores=1") as other:
        stream = card.domain().place(1).stream()
        mine, theirs = card.buffer(4), other.buffer(4)
        kernel = other.kernel("nothing", lambda *operands: None)
        event = other.domain().place().stream().mark()
        for attempt in (lambda: stream.upload(theirs),
                        lambda: stream.compute(kernel, [weir.read(mine)]),
                        lambda: stream.compute("mem.set", [weir.write(theirs)], [0]),
                        lambda: stream.wait(event)):
            with pytest.raises(weir.InvalidArgumentError):
                attempt()
    with pytest.raises(weir.InvalidArgumentError):
        stream.compute(kernel, [weir.read(mine)])


def test_a_closed_place_ends_its_streams(runtime):
    place = runtime.domain().place(1)
    stream = place.stream()
    event = stream.mark()
    place.close()
    event.wait()
    with pytest.raises(weir.InvalidArgumentError):
        stream.barrier()
    for attempt in (place.stream, lambda: place.name):
        with pytest.raises(weir.InvalidArgumentError):
            attempt()
    runtime.synchronize()  # which does not ask it
    stream.close()


def test_the_runtime_reports_the_first_failure_once(runtime):
    stream = runtime.domain().place(1).stream()
    fail = runtime.kernel("fail", lambda number: [][number])
    for number in (1, 2):
        stream.compute(fail, [], [number], name=f"number {number}")
    with pytest.raises(weir.KernelError, match="number 1"):
        runtime.synchronize()
    runtime.synchronize()


def test_a_kernel_that_waits_fails_with_a_busy_error(runtime, stream):
    @runtime.kernel
    def wait():
        stream.synchronize()

    stream.compute(wait, [])
    with pytest.raises(weir.KernelError) as caught:
        stream.synchronize()
    assert isinstance(caught.value.__cause__, weir.BusyError)


@pytest.mark.parametrize("user", ["queue", "share", "pipeline"])
def test_a_place_in_use_cannot_be_closed(runtime, user):
    if user == "pipeline" and runtime.domain().name != "host":
        pytest.skip("a stage of Python runs on host cores")
    place = runtime.domain().place(1, "narrow")
    made = {"queue": lambda: runtime.queue(places=[place]),
            "share": lambda: runtime.share(4, lambda chunk: chunk.stream.mark(), places=[place]),
            "pipeline": lambda: runtime.pipeline(place=place)}[user]()
    with pytest.raises(weir.BusyError, match="place 'narrow' is used by a queue, a share"):
        place.close()
    made.close()
    place.close()
    place.close()


def test_a_kernel_that_closes_a_buffer_or_stream_gets_a_busy_error(runtime, stream):
    x = np.ones(8)
    data, refused = runtime.wrap(x), []

    @runtime.kernel
    def close():
        for each in (data, stream):
            try:
                each.close()
            except weir.BusyError as error:
                refused.append(error)

    stream.compute(close, []).wait()
    assert len(refused) == 2
    stream.compute("mem.set", [weir.write(data)], [0]).wait()
    stream.download(data)
    stream.synchronize()
    assert not x.any()


def test_kernels_may_enqueue(runtime, stream):
    x = runtime.buffer(2)
    inner = []

    @runtime.kernel
    def outer():
        inner.append(stream.compute("mem.set", [weir.write(x)], [0]))

    stream.compute(outer, []).wait()
    inner[0].wait()


def test_buffers_can_be_destroyed_inside_a_kernel(runtime, stream):
    """Objects whose end would wait on a worker are destroyed later."""
    made = [runtime.buffer(8)]
    cycle = [runtime.buffer(8)]
    cycle.append(cycle)

    @runtime.kernel
    def drop():
        made.clear()
        cycle.clear()
        gc.collect()

    stream.compute(drop, [])
    stream.synchronize()
    runtime.buffer(8)


def test_waiting_for_a_cancelled_action_raises_a_cancelled_error():
    with weir.Runtime("host:cores=1") as runtime:
        stream = runtime.domain().place().stream()
        running, go = threading.Event(), threading.Event()
        x = runtime.buffer(2)

        @runtime.kernel
        def block(part):
            running.set()
            go.wait(30)

        held = stream.compute(block, [weir.write(x)])
        event = stream.compute("mem.set", [weir.write(x)], [0])
        running.wait(30)
        stream.cancel()
        go.set()
        held.wait()
        with pytest.raises(weir.CancelledError):
            event.wait()


def test_actions_that_four_threads_enqueue_all_run(runtime):
    place = runtime.domain().place(1)
    streams = [place.stream() for _ in range(4)]
    x = np.zeros((4, 10))
    rows = runtime.wrap(x)
    add = runtime.kernel("add", lambda part: np.add(part, 1, out=part))
    errors = []

    def program(stream, row):
        try:
            stream.upload(row)
            for _ in range(50):
                stream.compute(add, [weir.readwrite(row)])
            stream.download(row)
            stream.synchronize()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=program, args=(streams[i], rows[i])) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and (x == 50).all()


def test_a_with_statement_raises_an_unreported_failure_at_its_end():
    with pytest.raises(weir.KernelError, match="division"):
        with weir.Runtime("host:cores=1") as runtime:
            stream = runtime.domain().place().stream()
            stream.compute(runtime.kernel("fail", lambda: 1 / 0), [])
    assert runtime.closed
    with pytest.raises(KeyError):
        with weir.Runtime("host:cores=1") as runtime:
            raise KeyError
    assert runtime.closed


@pytest.mark.parametrize("end", ["runtime.close()", "del stream", "pass"])
def test_an_unreported_failure_is_printed_once(end):
    program = run_program(f"""
        import weir
        def fail():
            raise ValueError("negative weight")
        runtime = weir.Runtime("host:cores=1")
        stream = runtime.domain().place().stream()
        stream.compute(runtime.kernel("fail", fail), [])
        {end}
        """)
    output, errors = program.communicate(timeout=60)
    assert (output, program.returncode) == ("", 0)
    assert errors.count("action 'fail'") == 1 and "ValueError: negative weight" in errors, errors


def test_calls_of_a_closed_runtime_are_refused_as_closed():
    runtime = weir.Runtime("host:cores=1")
    stream = runtime.domain().place().stream()
    event, x = stream.mark(), runtime.buffer(4)
    queue = runtime.queue(models=False, places=[runtime.domain().place(1, oversubscribe=True)])
    domain = runtime.domain()
    runtime.close()
    runtime.close()
    for attempt in (runtime.synchronize, stream.synchronize, event.wait, lambda: event.done,
                    lambda: stream.upload(x), lambda: runtime.buffer(4), queue.synchronize,
                    lambda: runtime.kernel("mem.set"), lambda: domain.name, domain.place,
                    lambda: runtime.wait([event]), runtime.stats, runtime.describe):
        with pytest.raises(weir.InvalidArgumentError, match="closed"):
            attempt()
    assert repr(runtime) == "<weir.Runtime, closed>"


@pytest.mark.parametrize("thing", ["runtime", "buffer", "pipeline", "share"])
def test_closing_an_object_waits_for_the_end_of_a_runtime_that_is_closing(thing):
    """Until then the runtime may use its memory."""
    ending, go, ended, about = (threading.Event() for _ in range(4))

    class Late:
        def __call__(self):
            pass

        def __del__(self):  # in the end of the runtime
            ending.set()
            go.wait(30)
            ended.set()

    runtime = weir.Runtime("host:cores=1")
    made = {"runtime": lambda: runtime, "buffer": lambda: runtime.buffer(8),
            "pipeline": runtime.pipeline,
            "share": lambda: runtime.share(1, lambda chunk: chunk.stream.mark())}[thing]()
    runtime.kernel("late", Late())
    seen = []

    def close():
        about.set()
        made.close()
        seen.append(ended.is_set())

    threads = [threading.Thread(target=each) for each in (runtime.close, close)]
    threads[0].start()
    assert ending.wait(30)
    threads[1].start()
    assert about.wait(30)
    go.set()
    for thread in threads:
        thread.join()
    assert seen == [True]


def test_threads_that_wait_return_when_the_runtime_is_closed(runtime):
    """They get an error, and nothing that they use is destroyed before they have returned."""
    go, holding = threading.Event(), threading.Event()
    stream = runtime.domain().place(1).stream()

    @runtime.kernel
    def block():
        holding.set()
        go.wait(30)

    event, told = stream.compute(block, []), []
    waiting = threading.Semaphore(0)

    def wait(attempt):
        waiting.release()
        try:
            attempt()
            told.append("over")
        except weir.InvalidArgumentError as error:
            told.append("closed" if "closed" in str(error) else str(error))

    threads = [threading.Thread(target=wait, args=(each,))
               for each in (event.wait, stream.synchronize, runtime.synchronize, runtime.close)]
    for thread in threads:
        thread.start()
        assert waiting.acquire(timeout=30)
    if not runtime.domain().virtual_time:
        assert holding.wait(30)
    go.set()
    runtime.close()
    for thread in threads:
        thread.join()
    assert len(told) == 4 and set(told) <= {"over", "closed"}


@pytest.mark.parametrize("domains", ["host:cores=1", "host:cores=1,sim:cores=1"])
def test_threads_that_wait_return_when_the_queue_is_closed(domains):
    """They get an error, and it is destroyed when they have returned."""
    go, holding, told = threading.Event(), threading.Event(), []
    waiting = threading.Semaphore(0)
    with weir.Runtime(domains) as runtime:
        queue = runtime.queue(models=False)

        @runtime.kernel
        def block():
            holding.set()
            go.wait(30)

        queue.submit(block, [])
        assert holding.wait(30)

        def wait():
            waiting.release()
            try:
                queue.synchronize()
                told.append("over")
            except weir.InvalidArgumentError as error:
                told.append("closed" if "closed" in str(error) else str(error))

        threads = [threading.Thread(target=wait) for _ in range(4)]
        for thread in threads:
            thread.start()
            assert waiting.acquire(timeout=30)
        threads.append(threading.Thread(target=queue.close))
        threads[-1].start()
        go.set()
        for thread in threads:
            thread.join()
    assert len(told) == 4 and set(told) <= {"over", "closed"}


@pytest.mark.parametrize("seconds", [float("nan"), -1, -float("inf")])
def test_nan_and_negative_times_are_refused_and_infinity_is_accepted(runtime, stream, seconds):
    for wait in (stream.synchronize, runtime.synchronize, stream.mark().wait):
        with pytest.raises(ValueError, match="is not a time"):
            wait(seconds)
    stream.synchronize(float("inf"))


def run_program(text, **options):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


INTERRUPTED = """
    import sys
    import threading
    import time
    import numpy as np
    import weir
    never = threading.Event()
    main_waits = True
    def block(part):
        while not main_waits: pass
        try:
            print("running\\n", end="", flush=True)
            never.wait(60)
        except KeyboardInterrupt:  # it came between the two, so nothing waits yet
            never.wait(60)
    def spin(part):
        print("running\\n", end="", flush=True)
        while True: pass
    def main():
        {opened}
            runtime.kernel("work", {kernel})
            place = runtime.domain().place(1)
            stream = place.stream()
            data = runtime.wrap(np.zeros(4))
            stream.compute("work", [weir.readwrite(data)])
            {waits}
    {call}
"""


@pytest.mark.parametrize("kernel", ["block", "spin"])
@pytest.mark.parametrize("opened", ["with weir.Runtime('host:cores=1') as runtime:",
                                    "for runtime in [weir.Runtime('host:cores=1')]:"])
@pytest.mark.parametrize("waits", ["stream.synchronize()", "time.sleep(60)", "pass"])
def test_ctrl_c_ends_a_program_whose_kernel_keeps_running(kernel, opened, waits):
    """As any program of Python ends: by the signal, and with a traceback."""
    program = run_program(INTERRUPTED.format(kernel=kernel, opened=opened, waits=waits, call="main()"))
    assert program.stdout.readline() == "running\n"
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate(timeout=30)  # the kernel takes longer
    assert output == ""
    if (kernel, waits) == ("spin", "pass"):  # the interrupt ends the kernel, and Python
        assert program.returncode in (0, -signal.SIGINT), errors  # ignores it in its own end
    else:
        assert program.returncode == -signal.SIGINT, errors
    if waits != "pass":
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors


@pytest.mark.parametrize("kernel", ["block", "spin"])
@pytest.mark.parametrize("thing", ["stream", "place", "data", "queue", "runtime"])
def test_ctrl_c_ends_a_program_that_destroys_what_a_kernel_uses(kernel, thing):
    """What is destroyed alone, or first: the others follow, as the program ends."""
    waits = {
        "stream": "del stream",
        "place": "place.close()",
        "data": "del data",
        "queue": """queue = runtime.queue()
            queue.submit("work", [weir.readwrite(runtime.wrap(np.zeros(4)))])
            del queue""",
        "runtime": "del data, place, runtime, stream",
    }[thing]
    program = run_program(INTERRUPTED.format(
        kernel=kernel, opened="for runtime in [weir.Runtime('host:cores=2')]:",
        waits=waits + "\n            while True: time.sleep(0.01)", call="main()"))
    for _ in range(2 if thing == "queue" else 1):
        assert program.stdout.readline() == "running\n"
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate(timeout=30)
    assert program.returncode == -signal.SIGINT, errors
    assert "\nKeyboardInterrupt\n" in errors, errors  # the log may name the kernel after that


@pytest.mark.parametrize("thing", ["stream", "place", "data", "runtime"])
def test_after_an_interrupt_closing_does_not_wait_for_a_kernel(thing):
    """The program goes on, closes what it likes, and ends while the kernel runs."""
    call = """try:
        main()
    except KeyboardInterrupt:
        print("interrupted", flush=True)"""
    # The kernel reads main_waits while it holds the interpreter's lock, which the main thread, having
    # set it, gives back in the wait. An event would let the kernel go on before the wait: its set()
    # is a call, after which the interpreter may change threads.
    program = run_program(INTERRUPTED.format(
        kernel="block",
        opened="globals()['main_waits'] = False\n        for runtime in [weir.Runtime('host:cores=1')]:",
        waits=f"""try: globals()['main_waits'] = True; stream.synchronize()
            finally: {thing}.close()""", call=call))
    assert program.stdout.readline() == "running\n"
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate(timeout=30)
    assert (output, errors, program.returncode) == ("interrupted\n", "", -signal.SIGINT)


def test_a_program_that_handles_an_interrupt_can_open_a_new_runtime():
    program = run_program("""
        import weir
        runtime = weir.Runtime("host:cores=1")
        stream = runtime.domain().place().stream()
        def work():
            print("running", flush=True)
            while True: pass
        stream.compute(runtime.kernel("work", work), [])
        try:
            stream.synchronize()
        except KeyboardInterrupt:
            runtime.close()
        with weir.Runtime("host:cores=1") as runtime:
            runtime.domain().place().stream().compute(
                runtime.kernel("more", lambda: print("more", flush=True)), [])
        """)
    assert program.stdout.readline() == "running\n"
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate(timeout=30)
    assert (output, errors, program.returncode) == ("more\n", "", 0)


HOLDING = """
    import time
    import weir
    runtime = weir.Runtime("{domains}")
    stream = runtime.domain().place(1).stream()
    end = []
    def block():
        print("running", flush=True)
        while not end:
            time.sleep(0.01)
    try:
        event = stream.compute(runtime.kernel("block", block), [])
        {wait}
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    end.append(1)
"""


@pytest.mark.parametrize("wait", ["stream.synchronize()", "event.wait()", "runtime.synchronize()",
                                  "runtime.close()", "runtime.wait([event])"])
def test_ctrl_c_ends_a_wait(wait):
    program = run_program(HOLDING.format(domains="host:cores=1", wait=wait))
    assert program.stdout.readline() == "running\n"
    program.send_signal(signal.SIGINT)
    output, errors = program.communicate(timeout=60)
    assert (output, errors, program.returncode) == ("interrupted\n", "", 0)


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "import sys; sys.exit()"])
def test_enqueued_work_runs_when_a_program_ends_without_closing(end, tmp_path):
    """Work that is enqueued runs; nothing crashes when Python goes first."""
    program = run_program(f"""
        import os, time
        import numpy as np
        import weir
        runtime = weir.Runtime("host:cores=1,sim:cores=1")
        streams = [domain.place().stream() for domain in runtime.domains]
        x = runtime.buffer(8)
        @runtime.kernel
        def late(part):
            time.sleep(0.01)
            if part[0] == 9:
                os.write(1, b"done\\n")  # one piece, beside another thread
            part += 1
        for stream in streams:
            for _ in range(10):
                stream.compute(late, [weir.readwrite(x)]).future()
            stream.mark().on_complete(lambda *what: None)
        cycle = [runtime, streams, x]
        cycle.append(cycle)
        {end}
        """)
    output, errors = program.communicate(timeout=60)
    assert (program.returncode, errors) == (0, "")
    assert output == "done\ndone\n"


def test_the_function_of_a_kernel_is_released_when_its_runtime_closes(card):
    """Functions, buffers and exceptions go with what holds them."""
    import weakref

    class Payload:
        pass

    payload = Payload()
    alive = weakref.ref(payload)
    with weir.Runtime("host:cores=1") as runtime:
        stream = runtime.domain().place().stream()
        runtime.kernel("held", lambda held=payload: None)
        stream.compute("held", [])
        stream.synchronize()
        del payload
        assert alive() is not None
    gc.collect()
    assert alive() is None
