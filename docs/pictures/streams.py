"""Pictures of the model: domains, streams, dependences, failures, memory."""

from drawing import Picture


def cores(picture, x, y, count, hue, size=22):
    for index in range(count):
        picture.box(x + index * (size + 6), y, size, size, str(index), hue, 11, 3)


# ---- The model ----------------------------------------------------------------------------------

def model():
    p = Picture(936, 440, "The objects of a weir program",
                "A program enqueues actions into a stream. The stream belongs to a place, a set of cores of a "
                "domain. Each domain has a memory. A buffer has one instance in each memory that uses it, and "
                "transfers copy between the instances. An event completes when its action has completed.")
    p.frame(16, 16, 206, 408, "program")
    p.note(28, 52, "one thread, or many", 12)
    calls = ("stream.upload(x);", "stream.compute(k,", "    {readwrite(x)});", "stream.download(x);",
             "event.wait();")
    for index, call in enumerate(calls):
        p.text(28, 98 + 30 * index, call, 12, mono=True)
    p.note(28, 262, "Each call returns an event\nat once; only the last one\nwaits.")
    p.box(28, 330, 100, 34, "event", "teal")
    p.note(28, 380, "completes once,\nwith a status", 12)

    p.frame(304, 16, 616, 262, "domain sim:0: a device with its memory", "orange")
    p.frame(322, 52, 190, 208, "stream", "purple")
    p.note(334, 90, "a queue of actions", 12)
    for index, words in enumerate(("upload x", "compute k(x)", "download x")):
        p.box(334, 108 + 48 * index, 166, 36, words, "grey", 13)
    p.frame(568, 52, 334, 86, "place: cores that run kernels", "blue")
    cores(p, 582, 86, 4, "grey", 30)
    p.frame(568, 158, 334, 102, "memory of the device", "grey")
    p.box(766, 192, 124, 52, "instance of x", "green")
    p.note(582, 198, "zero-filled when\nan action first\nuses it")

    p.frame(304, 306, 616, 118, "domain host: the cores and memory of the machine", "orange")
    p.frame(322, 338, 190, 74, "place", "blue")
    cores(p, 376, 364, 4, "grey", 26)
    p.frame(568, 338, 334, 74, "memory of the program", "grey")
    p.box(766, 362, 124, 40, "instance of x", "green")
    p.note(582, 376, "buffer x: an instance\nin each memory", 12)

    p.arrow([(204, 98), (272, 98), (272, 126), (332, 126)], "purple")
    p.text(264, 84, "1 enqueue", 12, "middle", "purple")
    p.arrow([(500, 174), (540, 174), (540, 100), (566, 100)], "blue")
    p.text(540, 84, "2 run", 12, "middle", "blue")
    p.arrow([(828, 138), (828, 190)], "green", both=True)
    p.text(818, 126, "operands", 12, "end", "blue")
    p.arrow([(828, 246), (828, 360)], "green", both=True, width=2)
    p.text(806, 292, "transfers: upload, download", 12, "end", "green")
    p.arrow([(417, 260), (417, 292), (272, 292), (272, 347), (130, 347)], "teal")
    p.text(263, 278, "3 complete", 12, "middle", "teal")
    return p


# ---- One stream ---------------------------------------------------------------------------------

LATENCY_US, GBPS, BLOCK_BYTES, KERNEL_US, BLOCKS = 10, 6, 512 * 1024, 168, 4


def one_stream():
    """The schedule of four blocks behind a full-duplex link; `weir` on sim:clock=virtual ends at 866.8 us."""
    copy = LATENCY_US + BLOCK_BYTES / (GBPS * 1e3)
    uploads, kernels, downloads = [], [], []
    for block in range(BLOCKS):
        uploads.append(block * copy)
        kernels.append(max(uploads[block] + copy, kernels[-1] + KERNEL_US if kernels else 0))
        downloads.append(max(kernels[block] + KERNEL_US, downloads[-1] + copy if downloads else 0))
    end = downloads[-1] + copy
    serial = BLOCKS * (2 * copy + KERNEL_US)
    p = Picture(760, 196, "One stream executes four blocks",
                f"A timeline with three rows: copies in, kernels and copies out. The kernels of the four "
                f"blocks follow each other without a gap, {KERNEL_US} us each. The copies run at the same time, so "
                f"that all ends after {end:.0f} us instead of {serial:.0f}.")
    x0, width = 98, 636

    def at(us):
        return x0 + us / 900 * width

    p.axis(x0, 130, width, 12, [(us, f"{us}") for us in range(0, 900, 200)], "time in µs", at)
    hues = ("blue", "orange", "green", "purple")
    for row, (words, starts, length) in enumerate((("copies in", uploads, copy), ("kernels", kernels, KERNEL_US),
                                                   ("copies out", downloads, copy))):
        y = 16 + 36 * row
        p.text(12, y + 14, words)
        for block, start in enumerate(starts):
            p.box(at(start), y, at(start + length) - at(start), 28, f"block {block}", hues[block], 12, 3)
    p.line([(at(end), 12), (at(end), 130)], "red", True)
    p.text(at(end), 142, f"{end:.0f}", 11, "middle", "red", True)
    p.note(12, 178, f"Blocks of 512 KiB over a link of {GBPS} GB/s. One after the other, copies and kernels would "
                    f"take {serial:.0f} µs.")
    return p


# ---- Dependences --------------------------------------------------------------------------------

def dependences():
    p = Picture(820, 306, "Operands decide what runs at the same time",
                "Five actions of one stream in program order, the dependences that follow from their operands, "
                "and when they run: 1, 2 and 5 at once, then 3, then 4.")
    actions = (("1  set(write c0)", "blue"), ("2  set(write c1)", "blue"), ("3  add(read c0, readwrite c1)", "orange"),
               ("4  set(write c0)", "green"), ("5  set(write c2)", "blue"))
    p.text(16, 22, "The program enqueues", bold=True)
    for index, (words, hue) in enumerate(actions):
        p.rect(16, 40 + 44 * index, 250, 34, hue)
        p.text(26, 57 + 44 * index, words, 12, mono=True, room=236)
    p.note(16, 276, "c0, c1, c2: cells of a buffer")

    p.text(300, 22, "Dependences", bold=True)
    where = {1: (330, 66), 2: (330, 138), 3: (450, 102), 4: (540, 102), 5: (330, 220)}
    for name, (x, y) in where.items():
        p.circle(x, y, 17, actions[name - 1][1], str(name), 13)
    p.arrow([(346, 72), (433, 97)])
    p.arrow([(346, 132), (433, 107)])
    p.arrow([(467, 102), (521, 102)])
    p.note(394, 60, "3 reads c0")
    p.note(388, 144, "3 changes c1")
    p.note(494, 128, "4 overwrites c0,\nwhich 3 reads")
    p.note(356, 220, "5 shares no byte with\nthe others")
    p.note(300, 262, "A conflict: a common byte, and one\nof the two writes it.")

    p.text(630, 22, "What runs", bold=True)
    for name, x, y in ((1, 630, 60), (2, 630, 100), (5, 630, 140), (3, 688, 80), (4, 746, 80)):
        p.box(x, y, 50, 32, str(name), actions[name - 1][1], bold=True)
    p.arrow([(630, 196), (800, 196)])
    p.text(715, 212, "time", 11, "middle", "grey")
    p.note(630, 240, "three cores")
    return p


# ---- Events -------------------------------------------------------------------------------------

def events():
    p = Picture(820, 330, "Two streams and an event",
                "The stream `consumer` waits for an event of the stream `producer`. A wait that names a region "
                "delays only the action that uses the region; a wait without a region delays everything later.")

    def timeline(top, title, calls, rest, part, note):
        p.text(16, top, title, bold=True)
        p.note(16, top + 24, calls, 11.5, mono=True, hue=None)
        x = 420
        p.text(x - 12, top + 30, "producer", 12, "end")
        p.text(x - 12, top + 74, "consumer", 12, "end")
        p.box(x, top + 16, 190, 28, "fill part", "blue", 12, 3)
        p.box(x + rest, top + 60, 100, 28, "fill rest", "purple", 12, 3)
        p.box(x + part, top + 60, 80, 28, "print part", "green", 12, 3)
        p.arrow([(x + 190, top + 30), (x + 204, top + 30), (x + 204, top + 60)], "teal")
        p.text(x + 212, top + 30, "event", 12, hue="teal")
        p.note(x, top + 106, note)

    timeline(24, "A wait with a region",
             "e = producer.compute(fill, write(part))\nconsumer.wait(e, part)\nconsumer.compute(fill, write(rest))\n"
             "consumer.compute(print, read(part))", 0, 192,
             "Only the action that uses part waits; fill rest runs at once.")
    p.line([(16, 158), (804, 158)], rule=True)
    timeline(184, "A wait without a region: a barrier",
             "e = producer.compute(fill, write(part))\nconsumer.wait(e)\nconsumer.compute(fill, write(rest))\n"
             "consumer.compute(print, read(part))", 192, 296,
             "Everything later in the stream waits. On a place with more cores\nthe two actions then run side by side.")
    return p


# ---- Poison -------------------------------------------------------------------------------------

def poison():
    p = Picture(900, 356, "Which actions a failure reaches",
                "Action 1 fails. Actions that use what it was to write are poisoned and never run: 2 and 4. Actions "
                "3 and 6 run. In the other stream the wait for action 4 and the read behind it are poisoned. After "
                "synchronize, which reports the failure, the stream works again.")
    x, w, gap = 104, 96, 14
    first = (("1 compute\nwrite c0", "red", "fails"), ("2 compute\nupdate c0", "orange", "poisoned"),
             ("3 compute\nwrite c1", "green", "runs"), ("4 compute\nc0 to y", "orange", "poisoned"),
             ("5 mark", "orange", "event only"), ("6 compute\nread c1", "green", "runs"),
             ("7 compute\nwrite c0", "green", "runs"))
    p.text(16, 70, "stream s1", bold=True)
    for index, (words, hue, outcome) in enumerate(first):
        here = x + index * (w + gap) + (26 if index == 6 else 0)
        p.box(here, 48, w, 46, words, hue, 12)
        p.text(here + w / 2, 108, outcome, 12, "middle", hue, True)
    at = [x + index * (w + gap) + w / 2 for index in range(7)]
    p.arrow([(at[0], 48), (at[0], 30), (at[1] - 10, 30), (at[1] - 10, 46)], "red")
    p.arrow([(at[1] + 10, 48), (at[1] + 10, 30), (at[3], 30), (at[3], 46)], "red")
    bar = x + 6 * (w + gap) + 6
    p.line([(bar, 20), (bar, 126)], "teal", True, 2)
    p.text(890, 142, "synchronize: reports the failure of 1 and clears the poison", 12, "end", "teal")

    p.text(16, 224, "stream s2", bold=True)
    second = ((0, "compute\nupdate z", "green", "runs"), (3, "wait(e4, y)", "orange", "poisoned"),
              (4, "compute\nread y", "orange", "poisoned"), (5, "compute\nupdate z", "green", "runs"))
    for index, words, hue, outcome in second:
        p.box(x + index * (w + gap), 202, w, 46, words, hue, 12)
        p.text(at[index], 262, outcome, 12, "middle", hue, True)
    p.arrow([(at[3] - 20, 118), (at[3] - 20, 200)], "red")
    p.text(at[3] - 28, 170, "event e4", 12, "end", "red", halo=True)
    p.arrow([(at[3] + w / 2, 225), (at[4] - w / 2 - 2, 225)], "red")
    for index, (hue, words) in enumerate((("green", "runs"), ("red", "fails: status kernel_error, with the kernel's message"),
                                          ("orange", "poisoned: never runs; the message names action 1"))):
        p.rect(16 + (0, 90, 470)[index], 298, 18, 14, hue, 3)
        p.text(40 + (0, 90, 470)[index], 305, words, 12)
    p.note(16, 336, "A barrier after a failure is poisoned, and with it everything later in its stream. "
                    "The outcome does not depend on timing.")
    return p


# ---- Regions ------------------------------------------------------------------------------------

def regions():
    p = Picture(820, 300, "Regions of a buffer and when they conflict",
                "Four 8 by 8 matrices with regions A and B. Neighbouring tiles and interleaved columns share no byte "
                "and run at the same time; overlapping tiles share bytes and are ordered when one of them is written.")
    size, top = 19, 52

    def tile(column, row, x0, y0, x1, y1):
        return x0 <= column < x1 and y0 <= row < y1

    panels = (
        ("Neighbouring tiles", "run at the same time", "green",
         lambda c, r: "blue" if tile(c, r, 0, 0, 4, 4) else "orange" if tile(c, r, 4, 0, 8, 4) else "grey",
         ((1, 1, "A"), (5, 1, "B")), "tile(0, 0, 4, 4, 8)\ntile(0, 4, 4, 4, 8)"),
        ("Interleaved rows", "run at the same time", "green",
         lambda c, r: "blue" if r % 2 == 0 else "orange",
         ((3, 0, "A"), (3, 1, "B")), "rows at a stride:\n{row, rows}, {row_stride}"),
        ("Overlapping tiles", "ordered, if one is written", "red",
         lambda c, r: "red" if tile(c, r, 3, 3, 5, 5) else "blue" if tile(c, r, 0, 0, 5, 5) else
         "orange" if tile(c, r, 3, 3, 8, 8) else "grey",
         ((1, 1, "A"), (6, 6, "B")), "tile(0, 0, 5, 5, 8)\ntile(3, 3, 5, 5, 8)\nred: bytes of both"),
        ("A range of bytes", "elements<T>(first, count)", "grey",
         lambda c, r: "purple" if 12 <= r + 8 * c < 45 else "grey",
         ((2, 3, "A"),), "a matrix is stored\ncolumn by column"),
    )
    for index, (title, verdict, hue, hue_of, labels, how) in enumerate(panels):
        x = 20 + index * 202
        p.text(x, 24, title, bold=True, room=190)
        p.cells(x, top, size, 8, 8, hue_of)
        for column, row, words in labels:
            p.text(x + (column + 0.5) * size, top + (row + 0.5) * size, words, 12 if len(words) > 1 else 13, "middle",
                   bold=True)
        p.text(x, top + 8 * size + 20, verdict, 12, hue=hue, bold=True, room=190)
        p.note(x, top + 8 * size + 42, how, 11.5)
    return p


# ---- Eviction -----------------------------------------------------------------------------------

def eviction():
    p = Picture(860, 322, "What happens when a device memory is full",
                "A device memory of 1 MiB and two buffers of 600 KiB. When buffer b needs room, weir copies instance a, "
                "the least recently used, to shadow memory on the host. When a is used again, b leaves and a returns: "
                "1800 KiB are moved.")
    steps = (("1  compute writes a", ("a", None), ""), ("2  compute writes b", ("b", "a"), "600 KiB moved"),
             ("3  download a", ("a", "b"), "1200 KiB moved, 1800 KiB in all"))
    p.text(16, 106, "device memory", 12)
    p.text(16, 122, "1 MiB", 12, hue="grey")
    p.text(16, 206, "shadow memory", 12)
    p.text(16, 222, "on the host", 12, hue="grey")
    for index, (title, (inside, outside), moved) in enumerate(steps):
        x = 140 + index * 240
        p.text(x, 24, title, bold=True)
        p.rect(x, 66, 200, 80, "grey")
        p.box(x + 6, 74, 116, 64, f"instance of {inside}\n600 KiB", "blue" if inside == "a" else "orange", 12)
        p.note(x + 161, 98, "424 KiB\nfree", 12, "middle")
        p.rect(x, 184, 200, 58, "grey", dash=True)
        if outside:
            p.box(x + 78, 190, 116, 46, f"contents of {outside}\n600 KiB", "blue" if outside == "a" else "orange", 12)
            p.arrow([(x + 152, 146), (x + 152, 188)], "red", width=2)
            p.text(x + 160, 166, "evict", 12, hue="red")
            p.text(x, 262, moved, 12, bold=True, room=220)
        if index == 2:
            p.arrow([(x + 40, 184), (x + 40, 140)], "green", width=2)
            p.text(x + 48, 166, "restore", 12, hue="green")
    p.note(16, 294, "Of the instances that no action uses, the least recently used one leaves. A clean one is dropped "
                    "without a copy.\nThe host instance of a buffer is never evicted, and eviction never changes it.")
    return p


# ---- Virtual time -------------------------------------------------------------------------------

def virtual_time():
    copy = LATENCY_US + BLOCK_BYTES / (GBPS * 1e3)
    p = Picture(860, 372, "How virtual time advances",
                "A thread that waits runs a loop: start what can start, enter its end into the agenda, take the earliest "
                "entry, set the clock to its time. A timeline shows the clock jumping from event to event.")
    p.text(16, 24, "A thread that waits drives the simulation", bold=True)
    boxes = ((16, "start every job\nthat can start"), (226, "enter its end in the\nagenda: now + cost"),
             (436, "set the clock to the\nearliest entry"), (646, "complete the job:\nothers become ready"))
    for index, (x, words) in enumerate(boxes):
        p.box(x, 44, 180, 46, words, ("blue", "purple", "teal", "green")[index], 12)
        if index < 3:
            p.arrow([(x + 180, 67), (x + 208, 67)])
    p.arrow([(736, 90), (736, 110), (106, 110), (106, 92)])
    p.note(421, 124, "until the awaited event is complete", anchor="middle")
    p.note(16, 148, "A kernel really runs when it starts, on this thread; its end in virtual time follows from its cost "
                    "(or the time that it took).\nCopies take latency + bytes / bandwidth. Nothing sleeps.")

    x0, width, end = 110, 720, 2 * copy + KERNEL_US

    def at(us):
        return x0 + us / 400 * width

    times = (0, copy, copy + KERNEL_US, end)
    p.axis(x0, 312, width, 196, [(us, f"{us:.0f}") for us in times], "virtual time in µs", at)
    for row, words in enumerate(("link, in", "core", "link, out")):
        p.text(16, 212 + 32 * row, words, 12)
    p.box(at(0), 200, at(copy) - at(0), 24, "upload", "blue", 12, 3)
    p.box(at(copy), 232, at(copy + KERNEL_US) - at(copy), 24, "kernel", "orange", 12, 3)
    p.box(at(copy + KERNEL_US), 264, at(end) - at(copy + KERNEL_US), 24, "download", "green", 12, 3)
    for start, stop in zip(times, times[1:]):
        p.arrow([(at(start) + 3, 302), (at(stop) - 3, 302)], "teal", width=2)
    p.text(16, 302, "clock", 12, hue="teal")
    p.note(16, 354, "The clock jumps from one event to the next. A program whose kernels have costs takes the same virtual time in each run.")
    return p
