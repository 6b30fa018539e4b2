#!/usr/bin/env python3
"""Writes the pictures of the documents.

    draw.py            write all
    draw.py --check    say which files differ from what this script writes; exit status 1 if any does
    draw.py --list     list the files

drawing.py has the shapes. The others draw: streams.py, queues.py, ranks.py, layers.py, and plots.py, which
reads docs/measurements. The output depends on nothing else. docs/concepts/overview.md shows what they say.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import layers  # noqa: E402
import plots  # noqa: E402
import queues  # noqa: E402
import ranks  # noqa: E402
import streams  # noqa: E402

ROOT = HERE.parent.parent
# File, relative to the root of the tree, and what draws it.
PICTURES = {
    "docs/concepts/one-stream.svg": streams.one_stream,
    "docs/layers.svg": layers.layers,
    "docs/pictures/coherence.svg": queues.coherence,
    "docs/pictures/conveyor.svg": ranks.conveyor,
    "docs/pictures/dependences.svg": streams.dependences,
    "docs/pictures/events.svg": streams.events,
    "docs/pictures/eviction.svg": streams.eviction,
    "docs/pictures/graph.svg": queues.graph,
    "docs/pictures/halo.svg": ranks.halo,
    "docs/pictures/links.svg": ranks.links,
    "docs/pictures/model.svg": streams.model,
    "docs/pictures/pipeline.svg": queues.pipeline,
    "docs/pictures/plot-actions.svg": plots.actions,
    "docs/pictures/plot-balance.svg": plots.balance,
    "docs/pictures/plot-factorisations.svg": plots.factorisations,
    "docs/pictures/plot-papers.svg": plots.papers,
    "docs/pictures/plot-pipelines.svg": plots.pipelines,
    "docs/pictures/plot-puts.svg": plots.puts,
    "docs/pictures/plot-tasks.svg": plots.tasks,
    "docs/pictures/poison.svg": streams.poison,
    "docs/pictures/policy.svg": queues.policy,
    "docs/pictures/rank-domains.svg": ranks.rank_domains,
    "docs/pictures/regions.svg": streams.regions,
    "docs/pictures/share.svg": queues.share,
    "docs/pictures/stencil.svg": queues.stencil,
    "docs/pictures/task-queue.svg": queues.task_queue,
    "docs/pictures/virtual-time.svg": streams.virtual_time,
    "docs/pictures/windows.svg": ranks.windows,
}


def written():
    """The text of each file."""
    return {name: draw().svg() for name, draw in PICTURES.items()}


def differences(texts):
    """Yields which files are not what this script writes."""
    for name, text in texts.items():
        path = ROOT / name
        if not path.exists():
            yield f"{name}: missing"
        elif path.read_text(encoding="utf-8") != text:
            yield f"{name}: differs from what docs/pictures/draw.py writes"
    for path in sorted(HERE.glob("*.svg")):
        name = path.relative_to(ROOT).as_posix()
        if name not in texts:
            yield f"{name}: docs/pictures/draw.py does not write it"


def main(arguments):
    if arguments not in ([], ["--check"], ["--list"]):
        sys.exit(__doc__)
    if arguments == ["--list"]:
        print(*PICTURES, sep="\n")
        return 0
    try:
        texts = written()
    except ValueError as error:
        sys.exit(str(error))
    if arguments == ["--check"]:
        found = list(differences(texts))
        print(*found, f"pictures: {len(texts)}, {len(found)} to write again", sep="\n")
        return 1 if found else 0
    for name, text in texts.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
