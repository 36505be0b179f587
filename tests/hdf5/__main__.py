"""`python -m tests.hdf5`: HDF5's own tests and C tests of ours, against the connector.

Builds what is missing first (minutes, once), then compares. Prints a table, writes it as JSON, and
exits with 0 only if everything passes under the connector that passes natively, but for the
differences that are known and explained in README.md here.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from tests.hdf5 import random_programs, suites, traps, watched
from tests.hdf5.builds import KEPT, VERSIONS, WATCHED, Build, MissingError, build

PARTS = ("api", "traps", "random", "programs")
ASKED = ("tsan",)
"""Parts that are only run when they are named: they need more tools."""

SEEDS = 100
API_PASSED = {"1.14.6": (1074, 28)}
"""Of `h5_api_test`: what passes natively, and in the group `async`, which native HDF5 skips."""

EXPLAINED = {
    "vol": "wants a connector without asynchronous calls",
    "error_test": "forbids plugins, and so the connector",
}
"""Programs that cannot pass under any connector like ours, and why. HDF5 skips them, too."""


STACKED = "alongside under_vol=493;under_info={behind=1;under_vol=0;under_info={}}"
"""Ours below another of ours."""

PASSED_THROUGH = "pass_through under_vol=493;under_info={behind=1;under_vol=0;under_info={}}"
"""Ours below HDF5's own connector that passes everything through."""


def check_api(kinds: list[Build]) -> list[str]:
    """Runs `h5_api_test` natively and under the connector, as it is used and with all behind."""
    wrong = []
    for built in kinds:
        native = suites.api(built, None)
        print(f"h5_api_test {built.kind:<10} native     {native}")
        known = API_PASSED.get(built.version, (native["passed"], 0))
        if native["passed"] != known[0]:
            wrong.append(f"h5_api_test {built.kind}: {native}, not {known[0]}")
        for connector in (traps.USUAL, suites.CONNECTOR, STACKED):
            whole, group = suites.api(built, connector), suites.api(built, connector, "async")
            print(f"h5_api_test {built.kind:<10} {connector} {whole}, async {group}")
            ended = whole["failed"] + whole["code"] + group["failed"] + group["code"]
            if (whole["passed"], group["passed"]) != (sum(known), known[1]) or ended:
                wrong.append(f"h5_api_test {built.kind} {connector}: {whole}, async {group}")
        through = suites.api_without_requests(built, PASSED_THROUGH)
        print(f"h5_api_test {built.kind:<10} {PASSED_THROUGH} {through}, async left out")
        if through["passed"] != known[0] or through["failed"] or through["code"]:
            wrong.append(f"h5_api_test {built.kind} {PASSED_THROUGH}: {through}")
    return wrong


def check_programs(built: Build, only: set[str]) -> list[str]:
    """Runs HDF5's test programs both ways; writes what came of them as JSON."""
    found = suites.compare_programs(built, only)
    kept = KEPT / built.version / f"programs-{built.kind}.json"
    plain = {name: {way: asdict(one) for way, one in both.items()} for name, both in found.items()}
    kept.write_text(json.dumps(plain, indent=1))
    wrong = []
    for name, both in found.items():
        native, ours = both["native"], both["connector"]
        mark = "as native" if native == ours else "DIFFERENT"
        if native != ours and name in EXPLAINED:
            mark = EXPLAINED[name]
        if mark == "DIFFERENT":
            wrong.append(f"{name}: native {native}; connector {ours}")
        print(f"{name:<28} {native} | {ours} | {mark}")
    same = sum(both["native"] == both["connector"] for both in found.values())
    print(f"{len(found)} programs, {same} as native; {kept}")
    return wrong


def check_traps(kinds: list[Build]) -> list[str]:
    """Runs our C tests with every library, and with two of them at once."""
    results = [result for built in kinds for result in traps.run_traps(built)]
    results += traps.run_two(*kinds)
    for result in results:
        if result.was_skipped:
            print(result.name)
    wrong = [f"{result.name}: {result.why}" for result in results if result.why]
    skipped = sum(result.was_skipped for result in results)
    print(f"{len(results)} runs of traps: {len(wrong)} failed, {skipped} were skipped")
    return wrong


def main() -> int:
    """Runs the parts that the command line names."""
    parser = argparse.ArgumentParser(prog="tests.hdf5", description=__doc__)
    parser.add_argument("--version", choices=VERSIONS, default="1.14.6")
    parser.add_argument("--parts", nargs="+", choices=PARTS + ASKED, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random programs to run")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="programs of HDF5, by name")
    chosen = parser.parse_args()
    wrong = []
    try:
        kinds = [build(chosen.version, kind) for kind in ("threadsafe", "plain")]
        if "tsan" in chosen.parts:
            library = build(chosen.version, WATCHED)
            wrong += watched.check(library, chosen.first_seed, chosen.seeds)
    except MissingError as missing:
        print(missing, file=sys.stderr)
        return 1
    if "api" in chosen.parts and kinds[0].has_tests:
        wrong += check_api(kinds)
    if "traps" in chosen.parts:
        wrong += check_traps(kinds)
    if "random" in chosen.parts:
        wrong += random_programs.run_seeds(kinds[0], chosen.first_seed, chosen.seeds)
    if "programs" in chosen.parts and kinds[0].has_tests:
        wrong += check_programs(kinds[0], set(chosen.only))
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
