#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sums up test runs from meson's logs.

usage: summarize_tests.py [--slowest N] BUILD_FOLDER...

Reads meson-logs/testlog.json of each folder. Cases of Google Test programs count one by one, any
other test as one. Every failure and every skip is named, a skip with what is missing. A skip that
is not in scripts/expected_skips.txt is a failure. Exit status: 0, 1 on a failure, 2 on bad usage.
"""
import argparse
import dataclasses
import fnmatch
import io
import json
import pathlib
import re
import sys

EXPECTED_SKIPS = pathlib.Path(__file__).with_name("expected_skips.txt")
CASE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?\.\S+?)(, where .*)? \(\d+ ms( total)?\)$")


@dataclasses.dataclass
class Case:
    name: str
    result: str  # passed, failed, skipped
    detail: str = ""


def gtest_cases(test_name, stdout):
    """The cases a Google Test program printed; the lines before a skip say what is missing."""
    cases, before = [], []
    for line in stdout.splitlines():
        match = CASE.match(line)
        if not match:
            before = [] if line.startswith("[ RUN ") else before + [line.strip()]
            continue
        result = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[match.group(1)]
        words = [w for w in before if w and not w.endswith(": Skipped")]
        cases.append(Case(f"{test_name}/{match.group(2)}", result, " ".join(words)))
        before = []
    return cases


def cases_of(entry):
    name = entry["name"].rsplit(" / ", 1)[-1]  # meson writes "project:suites / name"
    result = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(
        entry["result"], "failed")
    stdout = entry.get("stdout") or ""
    cases = gtest_cases(name, stdout)
    if result == "failed" and not any(c.result == "failed" for c in cases):
        cases.append(Case(name, "failed", f"{entry['result']}, exit status {entry['returncode']}"))
    if not cases:
        reason = re.search(r"^SKIP: *(.*)$", stdout, re.MULTILINE)
        cases = [Case(name, result, reason.group(1) if result == "skipped" and reason else "")]
    return cases


def expected_skips(text):
    """Patterns of case names; the rest of a line says why and is for people."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line.split()[0] for line in lines if line]


def read_log(folder):
    """The tests of a folder's last run, or None if there was none."""
    log = pathlib.Path(folder) / "meson-logs" / "testlog.json"
    if not log.is_file():
        return None
    return [json.loads(line) for line in log.read_text().splitlines() if line.strip()]


def summarize(logs, patterns, slowest=0, out=sys.stdout):
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    bad = False
    for folder, entries in logs:
        if not entries:
            print(f"{folder}: no test ran", file=out)
            bad = True
            continue
        seconds = sum(entry["duration"] for entry in entries)
        counts = dict.fromkeys(totals, 0)
        for entry in entries:
            for case in cases_of(entry):
                counts[case.result] += 1
                if case.result == "failed":
                    bad = True
                    print(f"{folder}: FAILED {case.name}: {case.detail}"[:400], file=out)
                if case.result == "skipped":
                    expected = any(fnmatch.fnmatchcase(case.name, p) for p in patterns)
                    word = "skipped" if expected else "UNEXPECTED SKIP"
                    bad = bad or not expected
                    print(f"{folder}: {word} {case.name}: {case.detail or 'no reason given'}",
                          file=out)
        print(f"{folder}: {len(entries)} programs, {counts['passed']} passed, "
              f"{counts['failed']} failed, {counts['skipped']} skipped, {seconds:.1f} s", file=out)
        for entry in sorted(entries, key=lambda e: -e["duration"])[:slowest]:
            print(f"  {entry['duration']:8.1f} s  {entry['name']}", file=out)
        for key, count in counts.items():
            totals[key] += count
    print(f"{totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped",
          file=out)
    return 1 if bad or totals["failed"] else 0


def self_test():

    def entry(name, result, returncode, *lines):
        return {"name": name, "result": result, "duration": 1.0, "returncode": returncode,
                "stdout": "\n".join(lines)}
    gtest = entry("nicmem:unit / unit", "OK", 0,
                  "[ RUN      ] A.Runs", "[       OK ] A.Runs (0 ms)", "[ RUN      ] A.Skips",
                  "a_test.cc:3: Skipped", "needs 2 MiB hugepages", "",
                  "[  SKIPPED ] A.Skips (0 ms)", "[  PASSED  ] 1 test.")
    failing = entry("f", "FAIL", 1, "[ RUN      ] B.Fails", "f.cc:9: Failure",
                    "[  FAILED  ] B.Fails (2 ms)", "[  FAILED  ] B.Fails")
    crashed = entry("c", "FAIL", -11, "[ RUN      ] C.Ok", "[       OK ] C.Ok (0 ms)",
                    "[ RUN      ] C.Crashes")
    script = entry("s", "SKIP", 77, "SKIP: needs root")
    slow = {"name": "t", "result": "TIMEOUT", "duration": 9.0, "returncode": -9}

    def run(entries, patterns=()):
        out = io.StringIO()
        status = summarize([("b", entries)], patterns, out=out)
        return status, out.getvalue()

    status, text = run([gtest], ["unit/A.Sk*"])
    assert status == 0 and "b: skipped unit/A.Skips: needs 2 MiB hugepages" in text, text
    assert text.endswith("1 passed, 0 failed, 1 skipped\n"), text
    status, text = run([gtest])
    assert status == 1 and "UNEXPECTED SKIP unit/A.Skips" in text, text
    status, text = run([failing])
    assert status == 1 and text.endswith("0 passed, 1 failed, 0 skipped\n"), text
    status, text = run([crashed])
    assert status == 1 and text.endswith("1 passed, 1 failed, 0 skipped\n"), text
    status, text = run([script], ["s"])
    assert status == 0 and "skipped s: needs root" in text, text
    status, text = run([slow])
    assert status == 1 and "TIMEOUT" in text, text
    assert run([])[0] == 1 and run(None)[0] == 1
    assert expected_skips("# none\nunit/A.*  no hugepages in CI # x\n\n") == ["unit/A.*"]
    print("summarize_tests: self-test passed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--slowest", type=int, default=0, metavar="N")
    parser.add_argument("folders", nargs="*")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if not args.folders:
        parser.error("name at least one build folder")
    logs = [(pathlib.Path(f).name, read_log(f)) for f in args.folders]
    return summarize(logs, expected_skips(EXPECTED_SKIPS.read_text()), args.slowest)


if __name__ == "__main__":
    sys.exit(main())
