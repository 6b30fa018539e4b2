"""Pictures of task queues, shares and pipelines."""

from drawing import Picture

# ---- Task queues --------------------------------------------------------------------------------


def coherence():
    p = Picture(900, 316, "Which memories have the newest contents of a region",
                "A table: the memories of the host and of two devices, and the tasks of a queue. A task that reads makes "
                "a further valid copy. A task that writes leaves one valid copy, the one in its own memory. acquire "
                "copies the newest contents back to the host.")
    steps = (("start", "", (2, 0, 0), ()),
             ("task 1 on sim:0", "read(x)", (2, 2, 0), ((0, 1),)),
             ("task 2 on sim:0", "readwrite(x)", (1, 2, 0), ()),
             ("task 3 on sim:1", "read(x)", (1, 2, 2), ((1, 2),)),
             ("task 4 on sim:1", "write(x)", (1, 1, 2), ()),
             ("the program", "acquire(x)", (2, 1, 2), ((2, 0),)))
    names = ("host memory", "memory of sim:0", "memory of sim:1")
    states = ((None, ""), ("grey", "out of date"), ("green", "valid"))
    rows = (78, 138, 198)
    for y, name in zip(rows, names):
        p.text(16, y + 18, name, 12)
    for index, (title, call, valid, copies) in enumerate(steps):
        x = 134 + index * 127
        p.text(x + 48, 24, title, 12, "middle", bold=True, room=124)
        p.text(x + 48, 46, call, 12, "middle", mono=True)
        for y, state in zip(rows, valid):
            hue, words = states[state]
            if hue:
                p.box(x, y, 96, 36, words, hue, 12)
            else:
                p.rect(x, y, 96, 36, "grey", 6, dash=True)
        for start, end in copies:
            here = x + 108
            p.arrow([(x + 96, rows[start] + 18), (here, rows[start] + 18), (here, rows[end] + 18),
                     (x + 98, rows[end] + 18)], "teal", width=2)
    p.arrow([(20, 262), (52, 262)], "teal", width=2)
    p.text(60, 262, "a copy that the queue enqueues before the task", 12)
    p.rect(400, 254, 26, 16, "grey", 4, dash=True)
    p.text(434, 262, "no copy there yet", 12)
    p.note(16, 294, "Two simulated devices copy directly. Where devices cannot reach each other, the copy goes "
                    "through host memory, which then is valid, too.")
    return p


def task_queue():
    p = Picture(936, 380, "The path of a task",
                "The program submits tasks in order. Submitted tasks wait in the queue until its owner binds each to a "
                "place: the policy chooses, coherence enqueues the copies, the stream of the place runs the task. "
                "Completed tasks return to the owner, which updates the performance model.")
    p.frame(16, 40, 150, 230, "program")
    for index, call in enumerate(("submit(A)", "submit(B)", "submit(C)", "acquire(x)")):
        p.text(28, 88 + 28 * index, call, 12, mono=True)
    p.note(28, 214, "any thread may\nsubmit", 12)

    p.frame(222, 16, 404, 300, "queue", "purple")
    p.box(240, 48, 122, 60, "submitted\ntasks, in order", "grey", 12)
    p.box(240, 140, 122, 60, "tasks without\na place", "grey", 12)
    p.box(440, 48, 166, 60, "policy: choose\na place", "blue", 12)
    p.box(440, 140, 166, 60, "coherence: enqueue\nthe copies it needs", "teal", 12)
    p.box(440, 238, 166, 60, "performance model:\nmeasured times", "blue", 12)
    p.box(240, 238, 122, 60, "completion list", "grey", 12)
    p.note(16, 362, "The queue has no thread of its own: a thread that submits or completes a task does this work, one "
                    "thread at a time.")

    for index, (name, hue) in enumerate((("host/p0", "orange"), ("sim:0/p0", "orange"), ("sim:1/p0", "orange"))):
        y = 40 + 92 * index
        p.frame(688, y, 232, 80, f"place {name}", hue)
        p.box(700, y + 32, 66, 34, "copies", "teal", 12)
        p.box(774, y + 32, 62, 34, "task", "grey", 12)
        p.box(844, y + 32, 62, 34, "task", "grey", 12)
    p.arrow([(166, 78), (238, 78)])
    p.text(194, 66, "submit", 12, "middle")
    p.arrow([(301, 108), (301, 138)])
    p.arrow([(362, 170), (400, 170), (400, 78), (438, 78)])
    p.text(408, 124, "bind", 12, hue="purple", bold=True)
    p.arrow([(523, 108), (523, 138)])
    for y in (80, 172, 264):
        p.arrow([(606, 170), (656, 170), (656, y), (686, y)])
    p.arrow([(804, 304), (804, 338), (301, 338), (301, 300)], "green")
    p.text(812, 324, "complete", 12, hue="green")
    p.arrow([(362, 268), (438, 268)], "green")
    p.arrow([(616, 238), (616, 78), (608, 78)], "blue")
    p.arrow([(240, 284), (194, 284), (194, 300), (91, 300), (91, 272)], "green")
    p.text(100, 288, "event", 12, hue="green")
    return p


def graph():
    p = Picture(900, 326, "A graph: calls recorded once, launched many times",
                "Six kernel calls on regions A, B and C are recorded in program order. Two cores get lists of three calls "
                "each. Call 5 on core 1 reads A, which call 3 on core 0 writes: it waits until core 0 has completed two "
                "calls. Each launch is one task of the queue, and may use other buffers or other parameters.")
    p.frame(16, 16, 226, 250, "recorded once")
    calls = ("write(A)", "write(B)", "readwrite(A)", "readwrite(B)", "read(A), readwrite(B)", "read(A), write(C)")
    for index, call in enumerate(calls):
        y = 60 + 34 * index
        p.circle(40, y, 11, "blue" if index + 1 in (1, 3, 6) else "orange", str(index + 1))
        p.text(60, y, call, 12, mono=True)
    p.arrow([(242, 141), (284, 141)])
    p.frame(286, 16, 330, 250, "one list for each core", "purple")
    for top, core, numbers, hue in ((52, "core 0", (1, 3, 6), "blue"), (164, "core 1", (2, 4, 5), "orange")):
        p.text(302, top + 21, core, 12, bold=True)
        for step, number in enumerate(numbers):
            p.box(360 + 84 * step, top, 56, 42, str(number), hue, 14, bold=True)
            if step:
                p.arrow([(332 + 84 * step, top + 21), (358 + 84 * step, top + 21)], "grey")
    p.arrow([(472, 94), (472, 129), (556, 129), (556, 162)], "red", width=2)
    p.text(302, 118, "position of core 0: 2", 12, hue="red")
    p.text(500, 146, "wait", 12, "middle", "red", bold=True)
    p.note(302, 232, "All other dependences follow from the lists.", 12)
    p.arrow([(616, 141), (658, 141)])
    p.frame(660, 16, 224, 250, "launched many times", "green")
    for index, (words, hue) in enumerate((("launch", "green"), ("another task that uses A", "grey"),
                                          ("launch, A and B exchanged", "green"), ("launch, parameter 0 = 2", "green"))):
        y = 46 + 54 * index
        p.box(674, y, 196, 38, words, hue, 12)
        if index:
            p.arrow([(772, y - 16), (772, y - 2)])
    p.note(16, 292, "Call 5 reads what call 3 writes on the other core: it waits until core 0 has completed two calls. "
                    "Call 4 needs call 2, which is\nearlier in its list. A launch is one task of the queue. Its operands "
                    "are the buffers of all calls, and it uses all cores of the place.")
    return p


# A task and three places: when a core is free, how long its copies take, how long it runs; in ms.
PLACES = (("host/p0", 1, 0, 12), ("sim:0/p0", 5, 1, 3), ("sim:1/p0", 0, 3, 3))
COPY_WEIGHT = 4  # EarliestFinish::kCopies


def policy():
    p = Picture(820, 322, "The policy `finish` chooses a place",
                "Three rows, one for each place, with the time until a core is free, the copies, and the run of the "
                "task. The cost of a place is its predicted completion plus four times the time of its copies. The "
                "place with the lowest cost gets the task.")
    x0, width = 112, 430

    def at(ms):
        return x0 + ms / 14 * width

    p.text(16, 24, "When would each place complete the task?", bold=True)
    p.text(560, 48, "completes", 12, "start", bold=True)
    p.text(650, 48, "+ 4 x copies", 12, "start", bold=True)
    p.text(760, 48, "cost", 12, "start", bold=True)
    p.axis(x0, 246, width, 44, [(ms, str(ms)) for ms in range(0, 15, 2)], "ms from now", at)
    costs = [max(free, copies) + run + COPY_WEIGHT * copies for _, free, copies, run in PLACES]
    for index, (name, free, copies, run) in enumerate(PLACES):
        y = 62 + 62 * index
        start, end = max(free, copies), max(free, copies) + run
        best = costs[index] == min(costs)
        p.text(16, y + 22, name, 12, bold=best)
        if free:
            p.box(at(0), y, at(free) - at(0), 20, "busy", "grey", 11, 3)
        if copies:
            p.box(at(0), y + 22, at(copies) - at(0), 20, "copies" if copies > 1 else "", "teal", 11, 3)
        p.box(at(start), y, at(end) - at(start), 42, "task", "green" if best else "orange", 12, 3)
        p.text(600, y + 22, f"{end} ms", 12, "middle")
        p.text(690, y + 22, f"+ {COPY_WEIGHT * copies} ms", 12, "middle")
        p.text(776, y + 22, f"{costs[index]} ms", 12, "middle", "green" if best else None, best)
    chosen = PLACES[costs.index(min(costs))][0]
    p.note(16, 292, f"An example: the policy chooses {chosen}. The time of copies (teal) counts four times besides the "
                    "wait for them, because\ndata that has moved once often moves again. weir measures the times of kernels "
                    "while the program runs.")
    return p


# ---- Shares -------------------------------------------------------------------------------------

# Chunks of a share of 60 items over sim:0 (1 ms an item) and sim:1 (a third of it), policy `learned`, in
# virtual time with clock=virtual,latency_us=0: (place, items), in the order of the visits to the counter.
CHUNKS = [(0, 1), (1, 1), (1, 2), (1, 2), (0, 2), (0, 2)] + [(1, 1)] * 6 + [(0, 1)] + [(1, 1)] * 6 + [(0, 1)] \
    + ([(1, 1)] * 3 + [(0, 1)]) * 8 + [(1, 1)] * 4
ITEM_MS = (1, 1 / 3)


def share():
    p = Picture(820, 316, "Two places take chunks from one counter",
                "60 items in a row, each coloured by the place that computed it, and a timeline of both places. The place "
                "that is three times as fast takes three times as many items, and both end at the same time.")
    items = sum(count for _, count in CHUNKS)
    hues, names = ("blue", "orange"), ("sim:0", "sim:1")
    p.text(16, 24, f"{items} items, coloured by the place that took them", bold=True)
    x0, width, first = 92, 704, 0
    step = width / items
    p.text(16, 58, "items", 12)
    for place, count in CHUNKS:
        p.rect(x0 + first * step, 46, count * step, 24, hues[place], 1, stroke=0.8)
        first += count
    p.arrow([(x0 + 3, 86), (x0 + width - 3, 86)], "purple")
    p.text(x0 + width / 2, 100, "the counter: each visit adds the size of the chunk", 12, "middle", "purple")
    free, done = [0.0, 0.0], [0, 0]
    spans = []
    for place, count in CHUNKS:
        spans.append((place, free[place], free[place] + count * ITEM_MS[place]))
        free[place] += count * ITEM_MS[place]
        done[place] += count
    end = max(free)

    def at(ms):
        return x0 + ms / end * width

    p.text(16, 140, "When each chunk runs", bold=True)
    p.axis(x0, 236, width, 152, [(ms, str(ms)) for ms in range(0, 16, 3)], "virtual time in ms", at)
    for place, start, stop in spans:
        p.rect(at(start), 160 + 36 * place, at(stop) - at(start), 26, hues[place], 2, stroke=0.8)
    for place in (0, 1):
        p.text(16, 173 + 36 * place, names[place], 12)
    p.note(16, 282, f"{names[0]} needs 1 ms for an item and gets {done[0]}; {names[1]} is three times as fast and gets "
                    f"{done[1]}. Both end after {end:.0f} ms.\nEqual halves would end after "
                    f"{items / 2 * ITEM_MS[0]:.0f} ms. A chunk has one item at first; then measured speeds decide.")
    return p


# ---- Pipelines ----------------------------------------------------------------------------------

def tunnel(p, x, y, filled, words, hue="teal"):
    """A bounded queue of six items, the last ones filled."""
    for index in range(6):
        p.rect(x + 13 * index, y, 13, 26, hue if index >= 6 - filled else "grey", 0, stroke=0.9)
    p.text(x + 39, y - 12, words, 12, "middle", "teal")


def pipeline():
    p = Picture(936, 366, "A pipeline of four stages",
                "A source, a stage on the cores of the host, a stage that is a kernel on a device, and a last stage, "
                "connected by tunnels. The device has several batches in flight. A full tunnel makes the source wait. "
                "Counts of created and completed items prove the end.")
    y = 74
    p.box(16, y - 22, 96, 70, "source\ncamera", "purple", 13)
    p.box(246, y - 22, 112, 70, "stage edges\nhost workers", "blue", 13)
    p.frame(490, 20, 206, 168, "kernel stage on a device", "orange", 12)
    p.box(830, y - 22, 92, 70, "stage show\nworkers = 1", "blue", 12)
    tunnel(p, 140, y, 4, "frames")
    tunnel(p, 386, y, 3, "parts")
    tunnel(p, 724, y, 2, "results")
    for start, end in ((112, 138), (218, 244), (358, 384), (464, 488), (696, 722), (802, 828)):
        p.arrow([(start, y + 13), (end, y + 13)])
    for index, (words, hue) in enumerate((("batch 3: copy in", "teal"), ("batch 2: kernel", "green"),
                                          ("batch 1: copy out", "purple"))):
        p.box(504 + 12 * index, 50 + 34 * index, 156, 28, words, hue, 12)
    p.note(593, 166, "slots in a fixed order", 11.5, "middle")

    p.line([(16, 206), (920, 206)], rule=True)
    columns = ((16, "Workers",
                "A worker takes items in this order:\nits own, downstream stages first;\ntunnels, downstream first; "
                "sources.\nIt never waits for room in a tunnel."),
               (328, "Backpressure",
                "A full tunnel: workers keep what\nthey have put and work downstream.\nOnly the source has to wait.\n"
                "A device gets full batches, or what\nthere is when it has less than two."),
               (640, "End",
                "A stage counts the items that it\ncreated before it counts its input\nas complete. The pipeline ends "
                "when\nsources have ended and created =\ncompleted. No timeout is involved."))
    for x, title, words in columns:
        p.text(x, 228, title, bold=True)
        p.note(x, 254, words, 12)
    p.note(16, 346, "A stage may also put items into its own tunnel or an earlier one: a loop ends by the same counts.")
    return p


def stencil():
    p = Picture(860, 356, "A stencil computes tiles while values are still being set",
                "A matrix in regions: some are copied to the device, some are being set, some are empty. A tile of the "
                "device is computed as soon as the regions that it reads have arrived: nine with corners, five for a "
                "cross.")
    size, columns, rows = 44, 6, 5
    copied = {(c, r) for r in range(3) for c in range(6)} | {(0, 3)}
    setting = {(c, 3) for c in range(1, 5)}
    ready = {(c, r) for r in range(2) for c in range(6)}
    hue = {"copied": "teal", "set": "orange", "empty": "grey"}
    p.text(16, 22, "Host: regions of the matrix", bold=True)
    p.cells(16, 40, size, columns, rows,
            lambda c, r: hue["copied"] if (c, r) in copied else hue["set"] if (c, r) in setting else hue["empty"])
    p.text(380, 22, "Device: tiles of the first sweep", bold=True)
    p.cells(380, 40, size, columns, rows, lambda c, r: "green" if (c, r) in ready else "grey")
    p.arrow([(286, 150), (374, 150)], "teal", width=2)
    p.text(330, 136, "each value", 12, "middle", "teal")
    p.text(330, 166, "once", 12, "middle", "teal")
    p.rect(380 + 2 * size, 40 + size, size, size, "green", 0, stroke=3)
    p.text(380 + 2.5 * size, 40 + 1.5 * size, "T", 13, "middle", bold=True)
    for index, (words, name) in enumerate((("copied to the device", "teal"), ("being set", "orange"),
                                           ("no value yet", "grey"))):
        p.rect(16 + (0, 160, 262)[index], 274, 16, 14, name, 3)
        p.text(38 + (0, 160, 262)[index], 281, words, 12)
    p.rect(400, 274, 16, 14, "green", 3)
    p.text(422, 281, "can be computed", 12)
    p.text(672, 22, "What tile T reads", bold=True)
    for x, corners, words in ((672, True, "corners"), (770, False, "cross")):
        p.cells(x, 44, 26, 3, 3, lambda c, r, corners=corners: "green" if (c, r) == (1, 1) else
                "teal" if corners or 1 in (c, r) else "grey")
        p.text(x + 39, 57 + 26, "T", 12, "middle", bold=True)
        p.text(x + 39, 136, words, 12, "middle")
    p.note(672, 164, "A region counts the values\nthat it misses, a tile the\nregions that it reads. The\nthread that brings a\n"
                     "count to 0 passes it on.", 12)
    p.note(16, 316, "With several sweeps a tile starts the next sweep when the tiles that it reads have completed this "
                    "one:\nno barrier between sweeps. Two matrices on the device are enough for any number of sweeps.")
    return p
