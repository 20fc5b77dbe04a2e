#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turns this machine's apt sources into source-package ones, in a folder of their own.

usage: apt_sources.py CODENAME FOLDER

Reads sources.list and sources.list.d (one-line and deb822 forms) where apt reads them. Takes the
distribution's own suites (CODENAME, CODENAME-updates, stable ...); if none is named so, all.
"""
import pathlib
import re
import subprocess
import sys


def apt_path(variable):
    out = subprocess.run(["apt-config", "shell", "X", f"{variable}"], check=True,
                         capture_output=True, text=True).stdout
    match = re.match(r"X='(.*)'", out)
    return pathlib.Path(match.group(1)) if match else None


def ours(suite, codename):
    base = re.split("[-/]", suite)[0]
    return base in {codename, "stable", "oldstable"}


def deb822(text):
    """Stanzas as lists of [field, whole text of the field]; comments are dropped."""
    for block in re.split(r"\n\s*\n", text):
        fields = []
        for line in block.splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line[0] in " \t" and fields:
                fields[-1][1] += "\n" + line
            elif ":" in line:
                fields.append([line.split(":", 1)[0].strip().lower(), line])
        if fields:
            yield fields


def value(fields, name):
    for field, text in fields:
        if field == name:
            return text.split(":", 1)[1].split()
    return []


def main():
    codename, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    files = [apt_path("Dir::Etc::sourcelist/f")]
    parts = apt_path("Dir::Etc::sourceparts/d")
    if parts and parts.is_dir():
        files += sorted(parts.iterdir())

    lines, stanzas = [], []  # (is the distribution's own, text)
    for path in files:
        if path is None or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".sources":
            for fields in deb822(text):
                if "deb" not in value(fields, "types") or value(fields, "enabled") == ["no"]:
                    continue
                body = "\n".join("Types: deb-src" if f == "types" else t for f, t in fields)
                own = any(ours(s, codename) for s in value(fields, "suites"))
                stanzas.append((own, body))
        elif path.suffix == ".list":
            for line in text.splitlines():
                match = re.match(r"\s*deb\s+((\[[^]]*\]\s+)?\S+\s+(\S+).*)", line)
                if match:
                    lines.append((ours(match.group(3), codename), "deb-src " + match.group(1)))
    if not lines and not stanzas:
        sys.exit(f"apt_sources: no package source in {files[0]} and {parts}")

    only_own = any(own for own, _ in lines + stanzas)
    keep = lambda entries: [text for own, text in entries if own or not only_own]
    (folder / "src.list").write_text("\n".join(keep(lines)) + "\n")
    (folder / "src.sources").write_text("\n\n".join(keep(stanzas)) + "\n")


if __name__ == "__main__":
    main()
