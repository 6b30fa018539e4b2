"""A row of a report: a figure of weir, that of a peer, and the target."""

from dataclasses import dataclass, replace
from statistics import median
from typing import Optional, Union

from harness.command import Failed, Figure, NotBuilt, Sum

# Of any other unit less is better.
HIGHER_IS_BETTER = {"GFLOP/s", "GB/s", "MB/s", "steps/s", "M items/s", "M tasks/s"}


@dataclass(frozen=True)
class Target:
    """A bound on one figure of the row: "ours" or "ratio"."""

    figure: str
    relation: str
    bound: float

    def __str__(self):
        return f"{self.figure} {self.relation} {self.bound:g}"

    def met(self, value):
        return value <= self.bound if self.relation == "<=" else value >= self.bound


def at_most(bound):
    """weir's own figure is at most `bound`."""
    return Target("ours", "<=", bound)


def at_least(bound):
    """weir's own figure is at least `bound`."""
    return Target("ours", ">=", bound)


def ratio_at_least(bound):
    """weir is at least `bound` times as good as the peer."""
    return Target("ratio", ">=", bound)


@dataclass(frozen=True)
class Row:
    """What to measure for a row. Without a peer the ratio is null, without a target ok is."""

    name: str
    unit: str
    ours: Figure
    peer: Union[Figure, Sum, None] = None
    peer_name: Optional[str] = None
    target: Optional[Target] = None

    def commands(self):
        return self.ours.commands() + (self.peer.commands() if self.peer else [])


def against(rows, build, known):
    """Returns the rows for what weir's own programs in another build print, each figure once: `known`
    collects those that have a row. Only figures of one command have one."""
    compared = []
    for row in rows:
        if isinstance(row.ours, Figure) and row.ours not in known:
            known.add(row.ours)
            other = replace(row.ours, command=replace(row.ours.command, build=build))
            compared.append(replace(row, peer=other, peer_name="the other build", target=None))
    return compared


def report_row(row, outputs):
    """Makes the row of the report. `outputs`: what each command printed, or an exception."""
    report = {
        "name": row.name,
        "ours": None,
        "peer": None,
        "peer_name": row.peer_name,
        "unit": row.unit,
        "ratio": None,
        "target": str(row.target) if row.target else None,
        "ok": None,
    }
    ours = read_side(report, "ours", row.ours, outputs)
    peer = read_side(report, "peer", row.peer, outputs) if row.peer else []
    if "reason" in report:
        return report
    if peer:
        rounds = [sides for sides in zip(ours, peer) if None not in sides]
        ratios = [ratio(row.unit, *sides) for sides in rounds]
        if not ratios:
            report["reason"] = "no round has a figure of both sides"
        elif None in ratios:
            report["reason"] = f"a figure is 0 {row.unit}: there is no ratio"
        else:
            report["ratio"] = median(ratios)
    if row.target and report[row.target.figure] is not None:
        report["ok"] = row.target.met(report[row.target.figure])
    return report


def ratio(unit, ours, peer):
    """Above 1 when ours is better; None when it would be divided by a figure of 0."""
    above, below = (ours, peer) if unit in HIGHER_IS_BETTER else (peer, ours)
    return above / below if below else None


def read_side(report, side, figure, outputs):
    """Returns the values of a figure, one for each round, and enters their median and spread. A value
    of None is that of a round without a figure.

    When its command gave none, enters the reason: a program that failed fails the row.
    """
    try:
        values = figure.values(outputs)
    except (NotBuilt, Failed) as problem:
        report["reason"] = str(problem)
        if isinstance(problem, Failed):
            report["ok"] = False
        return []
    known = [value for value in values if value is not None]
    report[side] = median(known)
    report.setdefault("spread", {})[side] = [min(known), max(known)]
    report["runs"] = len(known)
    ran = figure.configuration(outputs)
    if ran is not None:
        report.setdefault("config", {})[side] = ran
    return values
