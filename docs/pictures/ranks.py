"""Pictures of ranks: launchers and links, windows, conveyors, grids."""

from drawing import Picture


def rank(p, x, y, words, link, width=108, hue="blue"):
    """A rank: the program, its port and its link."""
    p.frame(x, y, width, 132, words, hue, 12)
    p.box(x + 8, y + 30, width - 16, 28, "program", "grey", 12)
    p.box(x + 8, y + 62, width - 16, 28, "port", "purple", 12)
    p.box(x + 8, y + 94, width - 16, 28, link, "teal", 12)


def links():
    p = Picture(936, 358, "Three ways to start the ranks of a program",
                "Simulated ranks are threads of one process and exchange packets in memory. Ranks of weir run --ranks are "
                "processes of one machine that share a segment of memory. Ranks of mpirun are processes on one machine or "
                "many, and communicate by UCX or MPI. The program is the same.")
    p.text(16, 22, "weir_fabric_simulate()", 12.5, mono=True)
    p.frame(16, 38, 268, 236, "one process", "orange")
    rank(p, 28, 70, "rank 0", "inproc")
    rank(p, 164, 70, "rank 1", "inproc")
    p.box(40, 228, 220, 32, "packets in memory", "grey", 12)
    p.note(16, 296, "Threads, for tests and debuggers.\nA seed decides the order of messages.")

    p.text(318, 22, "weir run APP --ranks 2", 12.5, mono=True)
    p.frame(318, 38, 268, 236, "one machine", "orange")
    rank(p, 330, 70, "process 0", "shm")
    rank(p, 466, 70, "process 1", "shm")
    p.box(342, 228, 220, 32, "segment: rings, windows", "grey", 12)
    p.note(318, 296, "Processes without MPI. Puts and gets\ncopy from process to process.")

    p.text(620, 22, "mpirun -n 2 ./program", 12.5, mono=True)
    p.frame(620, 38, 140, 172, "machine A", "orange")
    p.frame(780, 38, 140, 172, "machine B", "orange")
    rank(p, 636, 70, "process 0", "ucx")
    rank(p, 796, 70, "process 1", "ucx")
    p.box(650, 228, 240, 32, "UCX, or Open MPI or MPICH", "grey", 12)
    p.note(620, 296, "Processes on one machine or many.\nThe program does not change.")
    for x in (82, 218, 384, 520, 690, 850):
        p.arrow([(x, 192), (x, 226)], "teal", both=True)
    p.note(16, 342, "Started alone, a program has one rank and needs no link. WEIR_TRANSPORT forces a transport.")
    return p


def rank_domains():
    p = Picture(900, 312, "Ranks as domains of rank 0",
                "Rank 0 runs the program and has streams on the domains of ranks 1 and 2, which serve. Rank 0 sends the "
                "actions. Copies between ranks 1 and 2 go directly.")
    p.frame(16, 24, 230, 216, "rank 0: runs the program", "blue")
    p.box(32, 60, 198, 44, "stream of domain rank:1", "purple", 12)
    p.box(32, 116, 198, 44, "stream of domain rank:2", "purple", 12)
    p.box(32, 172, 198, 52, "host memory:\ninstances of buffers", "green", 12)
    for index, y in enumerate((24, 148)):
        p.frame(470, y, 414, 104, f"rank {index + 1}: serve()", "orange")
        p.box(486, y + 34, 190, 56, "keeps the order of actions,\nruns the kernels", "blue", 12)
        p.box(692, y + 34, 176, 56, "memory of the domain:\ninstances", "green", 12)
    p.arrow([(230, 82), (350, 82), (350, 66), (468, 66)], "purple", width=2, both=True)
    p.arrow([(230, 138), (350, 138), (350, 190), (468, 190)], "purple", width=2, both=True)
    p.text(358, 104, "actions", 12, hue="purple")
    p.text(358, 134, "completions", 12, hue="purple")
    p.arrow([(780, 116), (780, 180)], "teal", both=True, width=2)
    p.text(770, 138, "copies between ranks", 12, "end", "teal")
    p.arrow([(230, 214), (468, 214)], "teal", both=True)
    p.text(350, 230, "uploads, downloads", 12, "middle", "teal")
    p.note(16, 276, "Rank 0 sends the actions of a domain in the order of enqueueing; the rank resolves their dependences "
                    "itself.\nDependences between domains are events and cost a round trip.")
    return p


def windows():
    p = Picture(860, 372, "One-sided operations on a window",
                "A sequence: rank 0 puts twice into the window of rank 1, flushes, and sends a message; after it rank 1 "
                "reads its memory. Rank 0 adds one to a counter of rank 1 and gets the old value.")
    columns = ((110, "rank 0: program", "blue"), (420, "window of rank 1: memory", "green"),
               (730, "rank 1: program", "orange"))
    for x, words, hue in columns:
        p.box(x - 96, 14, 192, 30, words, hue, 12, bold=True)
        p.line([(x, 44), (x, 318)], dash=True, width=1)
    y = 72
    for words, end, hue in (("put(1, 0, a)", 420, "teal"), ("put(1, 1, b)", 420, "teal")):
        p.arrow([(110, y), (end, y)], hue, width=2)
        p.text(265, y - 10, words, 12, "middle", mono=True)
        y += 34
    p.box(16, 128, 188, 28, "flush(1): waits", "grey", 12)
    p.note(440, 142, "both puts are in the memory")
    p.arrow([(110, 182), (730, 182)], "purple", width=2)
    p.text(265, 172, "message, or a barrier", 12, "middle")
    p.box(640, 200, 180, 28, "reads a and b", "grey", 12)
    p.line([(16, 246), (844, 246)], rule=True)
    p.arrow([(110, 276), (420, 276)], "teal", width=2)
    p.text(265, 266, "fetch_add(1, 2, 1)", 12, "middle", mono=True)
    p.arrow([(420, 304), (112, 304)], "teal", width=2)
    p.text(265, 294, "the old value", 12, "middle")
    p.note(440, 276, "atomic: no other rank\ngets the same value")
    p.note(16, 340, "The program of rank 1 takes no part in puts, gets and atomic operations. Over shared memory, puts and "
                    "gets are copies.\nOver MPI they travel as packets, which the port of rank 1 executes when it makes "
                    "progress.")
    return p


def conveyor():
    p = Picture(900, 322, "A conveyor sends many small items in few messages",
                "A producer on rank 0 puts small items for three ranks. One open block for each rank collects them. A full "
                "block travels as one message and is applied at the other rank, to its memory or by a handler.")
    hues = ("blue", "orange", "green")
    p.frame(16, 24, 186, 216, "rank 0: producer")
    calls = (("add(1, bin, 1)", 0), ("put(2, at, v)", 1), ("add(1, bin, 1)", 0), ("send(3, h, i)", 2),
             ("put(2, at, v)", 1), ("add(1, bin, 1)", 0))
    for index, (words, target) in enumerate(calls):
        p.box(30, 56 + 29 * index, 158, 23, words, hues[target], 11.5, 4, mono=True)
    p.arrow([(202, 130), (250, 130)])
    for index, count in enumerate((12, 7, 3)):
        y = 40 + 70 * index
        p.text(256, y - 8, f"block for rank {index + 1}", 12)
        p.rect(256, y, 196, 30, "grey", 3)
        for item in range(count):
            p.rect(260 + 16 * item, y + 4, 13, 22, hues[index], 2, stroke=0.8)
        p.arrow([(456, y + 15), (632, y + 15)], hues[index], index > 0, 2.4 if index == 0 else 1.4)
        p.box(640, y - 8, 244, 46, ("rank 1: adds to its memory", "rank 2: writes to its memory",
                                    "rank 3: calls handler h")[index], hues[index], 12)
    p.text(544, 40, "one message", 12, "middle", "blue")
    p.text(544, 112, "later", 12, "middle", "grey")
    p.text(544, 182, "later", 12, "middle", "grey")
    p.note(16, 264, "A block is sent when it is full (63 KiB, over MPI 504 KiB), a millisecond old, or flushed. Items of one "
                    "producer for one rank keep\ntheir order. At most 8 blocks are in flight to a rank: a producer that "
                    "puts more waits. Where addresses repeat, items are combined\nbefore they are sent, if that is worth "
                    "the search.")
    return p


def halo():
    p = Picture(860, 380, "Halo exchange of a grid",
                "A grid in four blocks on four ranks. Each block has a rim, the halo, that holds cells of its neighbours. "
                "Edges of the blocks are sent into the halos of the neighbours. Interior cells are computed meanwhile.")
    size, n = 20, 6
    corner = {"0": (36, 44), "1": (216, 44), "2": (36, 224 - 4), "3": (216, 224 - 4)}
    hues = {"0": "blue", "1": "orange", "2": "green", "3": "purple"}

    def hue_of(name, column, row):
        inner_column, inner_row = 1 <= column <= n - 2, 1 <= row <= n - 2
        if inner_column and inner_row:
            return hues[name]
        sideways = {"0": (n - 1, "1"), "1": (0, "0"), "2": (n - 1, "3"), "3": (0, "2")}[name]
        upright = {"0": (n - 1, "2"), "1": (n - 1, "3"), "2": (0, "0"), "3": (0, "1")}[name]
        if inner_row and column == sideways[0]:
            return hues[sideways[1]]
        if inner_column and row == upright[0]:
            return hues[upright[1]]
        if column == sideways[0] and row == upright[0]:
            return hues[str(3 - int(name))]
        return "grey"

    for name, (x, y) in corner.items():
        p.cells(x, y, size, n, n, lambda c, r, name=name: hue_of(name, c, r))
        p.rect(x + size, y + size, (n - 2) * size, (n - 2) * size, f"{hues[name]}-line", 0, stroke=2.5)
        p.text(x + 3 * size, y + 2.5 * size, f"rank {name}", 12, "middle", bold=True)
    for y in (104, 280):
        p.arrow([(128, y - 12), (224, y - 12)], "blue" if y == 104 else "green", width=2)
        p.arrow([(244, y + 12), (148, y + 12)], "orange" if y == 104 else "purple", width=2)
    for x in (96, 276):
        p.arrow([(x - 12, 136), (x - 12, 228)], "blue" if x == 96 else "orange", width=2)
        p.arrow([(x + 12, 248), (x + 12, 156)], "green" if x == 96 else "purple", width=2)
    p.text(16, 20, "A block (bold) and its halo", bold=True)
    p.note(36, 358, "Corners travel only with corners = true; rims at a border keep what the program wrote.")

    x0 = 400
    p.text(x0, 20, "One step of each rank", bold=True)
    steps = (("1  compute the edges", 0, 110, "orange", 0), ("2  start(): edges are sent", 110, 60, "teal", 1),
             ("3  compute the interior", 170, 170, "blue", 0), ("4  finish(): halo is filled", 340, 40, "teal", 1))
    p.text(x0, 62, "core", 12)
    p.text(x0, 102, "network", 12)
    base = x0 + 60
    for words, start, width, hue, _ in steps:
        p.rect(base + start, 48, width, 28, hue, 3)
        p.text(base + start + width / 2, 62, words[0], 12, "middle", bold=True)
    p.box(base + 150, 88, 170, 28, "edges travel", "purple", 12, 3)
    p.arrow([(base, 132), (base + 380, 132)])
    p.text(base + 380, 146, "time", 11, "end", "grey")
    for index, (words, _, _, _, _) in enumerate(steps):
        p.text(x0, 176 + 24 * index, words, 12)
    p.note(x0, 288, "All ranks make the plan once, with weir_halo_create().\nSeveral fields for one neighbour travel "
                    "together.\nA rank can be one step ahead of its neighbours, never two.")
    return p
