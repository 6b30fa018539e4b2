"""Reports as a table for people, as Markdown and as JSON."""

import json
import re
from pathlib import Path

from harness.plot import efficiency_plot

COLUMNS = ("name", "ours", "peer", "unit", "peer_name", "ratio", "target", "ok")
NUMERIC = {"ours", "peer", "ratio"}


def machine_line(report):
    machine = report["machine"]
    device = ""
    if "device" in machine:
        device = f", {machine['device']}, driver {machine['driver']}, commit {machine['commit']}"
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"{machine['kernel']}, {machine['compiler']}, {machine['blas']}, weir {machine['weir']}"
        f"{device}"
    )


def cell(row, column):
    value = row[column]
    if column == "ok":
        return {True: "yes", False: "NO", None: "-"}[value]
    if value is None:
        return "-"
    if column not in NUMERIC:
        return str(value)
    number = f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return number + spread_note(row, column)


def spread_note(row, column):
    """Half the distance of the extremes, in per cent of the median."""
    extremes = row.get("spread", {}).get(column)
    if not extremes or not row[column]:
        return ""
    return f" ±{50 * (extremes[1] - extremes[0]) / abs(row[column]):.0f}%"


def table(report):
    """Returns the table as lines of aligned text."""
    lines = [COLUMNS] + [tuple(cell(row, c) for c in COLUMNS) for row in report["rows"]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
    text = [f"{report['suite']}, {report['date']}", machine_line(report), ""]
    for line in lines:
        aligned = [
            value.rjust(width) if column in NUMERIC else value.ljust(width)
            for column, value, width in zip(COLUMNS, line, widths)
        ]
        text.append("  ".join(aligned).rstrip())
    return "\n".join(text + notes(report))


def notes(report):
    """What the suite remarks, and the reasons of what could not be measured."""
    lines = [*report.get("notes", []), *reasons_of(report)]
    return ["", *lines] if lines else []


def reasons_of(report):
    rows = (row for row in report["rows"] if "reason" in row)
    return list({f"{row['name']}: {row['reason']}": True for row in rows})


def markdown(report):
    lines = [
        f"# Measurements: {report['suite']}",
        "",
        f"{report['date']}. {machine_line(report)}.",
        "",
        "Medians of interleaved runs, ± half the distance of the extremes. "
        "A ratio above 1 means that weir is better.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| " + " | ".join("---:" if c in NUMERIC else "---" for c in COLUMNS) + " |",
    ]
    lines += [
        "| " + " | ".join(cell(row, column) for column in COLUMNS) + " |"
        for row in report["rows"]
    ]
    lines += ["", *report["notes"]] if report.get("notes") else []
    text = "Efficiency over the length of a task, a curve for each program"
    lines += [line for title in report.get("curves", {})
              for line in ("", f"![{text}: {title}]({plot_name(report, title)})")]
    lines += ["", "## Configurations", ""] + configurations(report)
    reasons = reasons_of(report)
    if reasons:
        lines += ["", "## Not measured", ""] + [f"* {reason}" for reason in reasons]
    return "\n".join(lines) + "\n"


def configurations(report):
    found = {}
    for row in report["rows"]:
        for side, config in row.get("config", {}).items():
            source = "weir" if side == "ours" else row["peer_name"]
            found[f"* {row['name']}, {source}: {config}"] = True
    return list(found)


def plot_name(report, title):
    """Returns the file of a plot, beside the report."""
    words = re.sub(r"[^a-z0-9_]+", "-", title.lower()).strip("-")
    return f"{report['suite']}-{words.removeprefix(report['suite']).strip('-')}.svg"


def save(report, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = report["suite"]
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(report), encoding="utf-8")
    for title, curves in report.get("curves", {}).items():
        plot = efficiency_plot(title, curves)
        (folder / plot_name(report, title)).write_text(plot, encoding="utf-8")
