#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles every header of lib/, drivers/, apps/ and kvs/ on its own, with the flags of its folder.

usage: headers_alone.py BUILD_FOLDER

The flags come from compile_commands.json: those of a source in the same folder, else in the nearest
folder above, else of lib/base. A header that guards C++ by __cplusplus is compiled as C, too.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
DROP = {"-c", "-MD", "-MMD"}
DROP_WITH_VALUE = {"-o", "-MQ", "-MF", "-MT"}


def flags_of(command, source):
    """Compiler and flags of a compile command, without its input and outputs."""
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in DROP_WITH_VALUE:
            next(words)
        elif word not in DROP and word != source:
            kept.append(word)
    return kept


def read_commands(build):
    """folder -> (working folder, flags), for C++ sources, relative to the repository."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if source.suffix == ".cc" and source.is_relative_to(REPO):
            folder = source.parent.relative_to(REPO)
            flags = flags_of(entry["command"], entry["file"])
            commands.setdefault(folder, (entry["directory"], flags))
    return commands


def flags_for(header, commands):
    for folder in header.parents:
        if folder in commands:
            return commands[folder]
    return commands[pathlib.Path("lib/base")]


def compile_alone(header, commands):
    directory, flags = flags_for(header, commands)
    text = f'#include "{REPO / header}"\n'
    runs = [flags + ["-x", "c++"]]
    if "__cplusplus" in (REPO / header).read_text():
        includes = [f for f in flags if f.startswith(("-I", "-isystem"))]
        runs.append(["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *includes,
                     "-x", "c"])
    for run in runs:
        done = subprocess.run([*run, "-fsyntax-only", "-"], input=text, text=True, cwd=directory,
                              capture_output=True, check=False)
        if done.returncode != 0:
            return f"FAILED {header} as {run[-1]}\n{done.stderr}"
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    commands = read_commands(pathlib.Path(sys.argv[1]))
    headers = sorted(h.relative_to(REPO) for top in ("lib", "drivers", "apps", "kvs")
                     for h in (REPO / top).rglob("*.h"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [f for f in pool.map(lambda h: compile_alone(h, commands), headers) if f]
    print("\n".join(failures + [f"{len(headers)} headers, {len(failures)} do not compile alone"]))
    return 1 if failures or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
