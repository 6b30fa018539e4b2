"""The command line of bench/run."""

import argparse
import importlib
import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

from harness.machine import describe_machine
from harness.measure import measure
from harness.report import save, table
from harness.row import against, report_row

BENCH = Path(__file__).resolve().parent.parent
ROUNDS = 7
QUICK_ROUNDS = 5


def suites():
    return sorted(path.stem for path in (BENCH / "suites").glob("[a-z]*.py"))


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Measures weir beside its peers, in turn, on this machine."
    )
    parser.add_argument("suite", choices=[*suites(), "all"])
    parser.add_argument("--quick", action="store_true", help="smaller problems, within 4 minutes")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, of all a list")
    parser.add_argument("--only", metavar="PATTERN", help="rows whose name matches this expression")
    parser.add_argument("--rounds", metavar="N", type=int,
                        help=f"so many (default: {ROUNDS}, with --quick {QUICK_ROUNDS})")
    parser.add_argument("--save", metavar="DIR", help="also write DIR/SUITE.json, DIR/SUITE.md, plots")
    parser.add_argument(
        "--build",
        metavar="DIR",
        default=str(BENCH.parent / "build" / "bench"),
        help="build folder of the preset 'bench' (default: build/bench)",
    )
    parser.add_argument("--against", metavar="DIR",
                        help="compare with weir in this build folder, in turn, instead of with peers")
    options = parser.parse_args(arguments)
    for option in ("build", "against"):
        folder = getattr(options, option)
        if folder and not (Path(folder) / "bench" / "programs").is_dir():
            parser.error(
                f"no benchmarks in '{folder}': "
                f"configure with the preset 'bench', build, or name another folder with --{option}"
            )
    if options.save and options.against:
        parser.error("--save keeps comparisons with peers: leave it out with --against")
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else ROUNDS
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} measures nothing: at least 1")
    try:
        re.compile(options.only or "")
    except re.error as error:
        parser.error(f"--only '{options.only}' is not a regular expression: {error}")
    return options


def run_suite(name, options):
    """Returns the report of one suite."""
    suite = importlib.import_module(f"suites.{name}")
    groups = suite.groups(options.quick)
    wanted = re.compile(options.only or "", re.IGNORECASE)
    groups = [[row for row in rows if wanted.search(row.name)] for rows in groups]
    if options.against:
        known = set()
        groups = [against(rows, options.against, known) for rows in groups]
    groups = [rows for rows in groups if rows]
    measured = measure(groups, options.rounds, options.build)
    report = {
        "suite": name,
        "machine": describe_machine(options.build),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "rows": [
            report_row(row, outputs) for rows, outputs in zip(groups, measured) for row in rows
        ],
    }
    if hasattr(suite, "complete") and not options.against:
        suite.complete(report, list(zip(groups, measured)))
    return report


def main(arguments):
    options = parse_arguments(arguments)
    failed, reports = False, []
    for name in suites() if options.suite == "all" else [options.suite]:
        report = run_suite(name, options)
        if not report["rows"]:
            continue
        reports.append(report)
        if options.save:
            save(report, options.save)
        if not options.json:
            print(table(report) + "\n", flush=True)
        failed = failed or any(row["ok"] is False and "reason" in row for row in report["rows"])
    if not reports:
        print(f"bench: no row of '{options.suite}' matches '{options.only}'", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(reports if options.suite == "all" else reports[0], indent=1))
    return 1 if failed else 0
