#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every case of the catalogue has a test that is named by it, and the table names that test.

Looks for the ids in names of Google Test cases and of Python test functions below tests/, and in
the table of tests/sim/driver/README.md, whose patterns must match such tests.
"""
import fnmatch
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
TABLE = TESTS / "sim" / "driver" / "README.md"
CASES = {"DRV": [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32,
                 34, 35, 37, 38, 40, 41, 43, 44, 46, 47, 49, 50]}
GTEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
PYTHON = re.compile(r"^\s*def (\w+)\(", re.M)
ID = re.compile(r"(?:^|_)(DRV)((?:_\d\d)+)(?:_|$)", re.I)  # DRV_13_14_Name has two
ROW = re.compile(r"^\| *([A-Z]+)-(\d\d) *\|(.*)\|$", re.M)


def ids_of(name):
    match = ID.search(name)
    if not match:
        return set()
    return {(match[1].upper(), int(number)) for number in match[2].split("_")[1:]}


def tests_of(sources):
    """sources: (file's name, text). case -> names of its tests, `Suite.Name` or `file.py:name`."""
    found = {}
    for file, text in sources:
        names = ([f"{file}:{name}" for name in PYTHON.findall(text)] if file.endswith(".py") else
                 [".".join(pair) for pair in GTEST.findall(text)])
        for name in names:
            for case in ids_of(re.split("[.:]", name)[-1]):
                found.setdefault(case, set()).add(name)
    return found


def problems(wanted, tests, table):
    """table: text with a row for each case, the patterns of its tests in backticks."""
    wrong = []

    def add(case, words):
        wrong.append(f"{case[0]}-{case[1]:02}: {words}")

    rows = {(row[0], int(row[1])): re.findall("`([^`]+)`", row[2]) for row in ROW.findall(table)}
    for case in sorted(wanted | rows.keys()):
        have = tests.get(case, set())
        if case not in wanted:
            add(case, "no such case")
        elif not have:
            add(case, "no test has it in its name")
        elif not rows.get(case):
            add(case, "the table names no test")
        for pattern in rows.get(case, []):
            if not fnmatch.filter(have, pattern):
                add(case, f"the table names `{pattern}`, which is no test of that case")
    return wrong


def self_test():
    tests = tests_of([("a_test.cc", "TEST(Tx, DRV_13_14_Chains) {\nTEST_P(A,\n     DRV_05_X) {"),
                      ("a_test.cc", "// DRV_01_\nTEST(A, NoDRV_1) {"),
                      ("b.py", "    def test_DRV_10_a(self):\ndef drv_41_b(x):\n# def DRV_02_x(")])
    assert tests == {("DRV", 13): {"Tx.DRV_13_14_Chains"}, ("DRV", 14): {"Tx.DRV_13_14_Chains"},
                     ("DRV", 5): {"A.DRV_05_X"}, ("DRV", 10): {"b.py:test_DRV_10_a"},
                     ("DRV", 41): {"b.py:drv_41_b"}}, tests
    good = "| DRV-13 | `Tx.DRV_13_*` |\n| DRV-10 | also `b.py:*` |\n"
    wanted = {("DRV", 13), ("DRV", 10)}
    assert problems(wanted, tests, good) == []
    assert len(problems(wanted | {("DRV", 2)}, tests, good)) == 1
    assert len(problems(wanted | {("DRV", 5)}, tests, good)) == 1
    assert len(problems(wanted, tests, good.replace("Tx.", "Rx."))) == 1
    assert len(problems(wanted, tests, good + "| DRV-99 | `A.B` |\n")) == 2


def main():
    self_test()
    sources = [(path.name, path.read_text()) for path in sorted(TESTS.rglob("*"))
               if path.suffix in (".cc", ".py") and path != pathlib.Path(__file__).resolve()]
    wanted = {(group, number) for group, numbers in CASES.items() for number in numbers}
    wrong = problems(wanted, tests_of(sources), TABLE.read_text())
    print("\n".join(wrong + [f"{len(wanted)} cases, {len(wrong)} problems"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
