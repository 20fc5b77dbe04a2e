#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rules of STYLE.md that a program can check, one line for each breach; exit status 1 if any."""
import pathlib
import re
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
TOPS = ["lib", "drivers", "apps", "kvs", "bench", "tests", "scripts", ".ci", "docs"]
CPP = {".h", ".cc", ".c"}
SCRIPTS = {".py", ".sh"}
TEXT = {".md", ".txt", ".build", ".yaml", ".yml", ".in"}
LINE_COLUMNS, SHELL_LINE_COLUMNS = 100, 120
FILE_LINES, FORMAT_FILE_LINES = 500, 800  # the second: wire formats, lib/hw

# (pattern, folders or files where it is right, why). Matched on code without comments and strings.
BANNED = [
    (r"rdtsc", ["lib/base/clock.h", "apps", "bench"], "time comes in by an argument (Core::now)"),
    (r"\brandom_device\b", ["tests/support"], "take a seed: tests from test_seed()"),
    (r"\bgetenv\b", ["tests/support", "tests/fake_verbs"],
     "settings come by devargs, config files and options"),
    (r"\breinterpret_cast\b(?!<(std::)?uintptr_t>)",
     ["lib/base/view.h", "lib/sim", "lib/dpdk", "lib/nicmem/nicmem_c.cc", "lib/nicmem/copy.cc",
      "drivers", "apps", "bench", "tests"], "view bytes through base/view.h"),
    (r"\brte_exit\b|\brte_panic\b", [], "return an error; only main ends the program"),
    (r"\busing namespace std\b", [], "name what is used"),
    (r"#\s*ifn?def\s+TEST", [], "faults and test hooks are constructor arguments"),
    (r"#\s*define\s+private\b", ["none"], "test what is public"),
]
OPEN_WORK = re.compile(r"\b(TODO(?!\(#\d+\))|FIXME|XXX)\b")


def within(path, places):
    return any(path == place or path.startswith(place + "/") for place in places)


def code_only(line):
    """The line without its strings, characters and // comment (a rule is about code)."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    line = re.sub(r"'(\\.|[^'\\])'", "''", line)
    return line.split("//")[0]


def check(path, text):
    name = pathlib.PurePosixPath(path)
    lines = text.split("\n")
    script = text.startswith("#!") or name.suffix in SCRIPTS
    cpp = name.suffix in CPP
    columns = LINE_COLUMNS if cpp or name.suffix == ".py" else SHELL_LINE_COLUMNS
    wrong = []

    def breach(number, words):
        wrong.append(f"{path}:{number}: {words}")

    if cpp or script:
        first = lines[1] if text.startswith("#!") and len(lines) > 1 else lines[0]
        if not re.match(r"(//|/\*|#) SPDX-License-Identifier: BSD-3-Clause", first):
            breach(1, "the first line (after #!) must be SPDX-License-Identifier: BSD-3-Clause")
    if not text.endswith("\n") or text.endswith("\n\n"):
        breach(len(lines), "a file ends with exactly one newline")
    limit = FORMAT_FILE_LINES if within(path, ["lib/hw"]) else FILE_LINES
    if (cpp or script) and len(lines) - 1 > limit:
        breach(limit, f"{len(lines) - 1} lines; {limit} are the limit: split it by idea")
    if name.suffix == ".h" and not re.search(r"^#pragma once$|^#ifndef \w+_H_?$", text, re.M):
        breach(1, "a header needs #pragma once")

    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            breach(number, "space at the end of the line")
        if (cpp or script) and "\t" in line:
            breach(number, "a tab")
        if (cpp or script) and len(line) > columns:
            breach(number, f"{len(line)} columns; {columns} are the limit")
        if (cpp or script) and path != "scripts/tidy.py" and OPEN_WORK.search(line):
            breach(number, "open work names its issue: TODO(#123), or is done")
        if cpp:
            code = code_only(line)
            for pattern, places, why in BANNED:
                if re.search(pattern, code) and not within(path, places):
                    breach(number, f"'{re.search(pattern, code).group(0)}': {why}")
    return wrong


def files(repo):
    for top in TOPS:
        for file in sorted((repo / top).rglob("*")):
            if file.is_file() and not file.is_symlink() and "__pycache__" not in file.parts:
                yield file
    for file in sorted(repo.iterdir()):
        if file.is_file():
            yield file


def check_tree(repo):
    wrong, count = [], 0
    for file in files(repo):
        path = file.relative_to(repo).as_posix()
        if file.suffix in CPP | SCRIPTS | TEXT or file.read_bytes()[:2] == b"#!":
            wrong += check(path, file.read_text(encoding="utf-8", errors="replace"))
            count += 1
    return wrong, count


def self_test():
    head = "// SPDX-License-Identifier: BSD-3-Clause\n"
    header = head + "#pragma once\n"
    accepted = [
        ("lib/base/a.h", header + "int x;  // rdtsc in words is fine\n"),
        ("lib/base/a.cc", head + 'const char* s = "getenv";\n// TODO(#12): later\n'),
        ("lib/base/view.h", header + "auto* p = reinterpret_cast<char*>(q);\n"),
        ("lib/hca/a.cc", head + "auto n = reinterpret_cast<uintptr_t>(q);\n"),
        ("bench/a.cc", head + "auto t = __builtin_ia32_rdtsc();\n"),
        ("tests/support/seed.h", header + "std::random_device d;\n"),
        ("scripts/x", "#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\ntrue\n"),
        ("lib/hw/a.h", header + "int x;\n" * 600),
        ("README.md", "x" * 300 + "\n"),
        ("lib/base/w.cc", head + "x" * 100 + "\n"),
    ]
    refused = [
        ("lib/base/a.h", "int x;\n", "SPDX"),
        ("lib/base/a.h", head + "int x;\n", "#pragma once"),
        ("lib/base/a.cc", head + "int x; \n", "end of the line"),
        ("lib/base/a.cc", head + "\tint x;\n", "tab"),
        ("lib/base/a.cc", head + "x" * 101 + "\n", "101 columns"),
        ("lib/base/a.cc", head + "int x;", "newline"),
        ("lib/base/a.cc", head + "int x;\n" * 500, "501 lines"),
        ("lib/hw/a.h", header + "int x;\n" * 800, "802 lines"),
        ("lib/base/a.cc", head + "// TODO: later\n", "TODO(#123)"),
        ("lib/base/a.cc", head + "// FIXME(#1)\n", "TODO(#123)"),
        ("lib/sim/a.cc", head + "auto t = rte_rdtsc();\n", "rdtsc"),
        ("tests/unit/a.cc", head + "std::random_device d;\n", "random_device"),
        ("lib/sim/a.cc", head + 'auto* e = getenv("X");\n', "getenv"),
        ("lib/nf/a.cc", head + "auto* p = reinterpret_cast<char*>(q);\n", "reinterpret_cast"),
        ("scripts/x.py", "#!/usr/bin/env python3\nprint()\n", "SPDX"),
    ]
    for path, text in accepted:
        assert not check(path, text), (path, check(path, text))
    for path, text, words in refused:
        assert any(words in line for line in check(path, text)), (path, words, check(path, text))
    print(f"tidy: self-test passed ({len(accepted)} accepted, {len(refused)} refused)")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    wrong, count = check_tree(REPO)
    print("\n".join(wrong + [f"tidy: {count} files, {len(wrong)} breaches"]))
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
