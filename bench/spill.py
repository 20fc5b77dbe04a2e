#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what split rings leave on the card: runs bench/spill/spill_bench (the single-stepped model:
counted, the same on every machine, not hardware), writes an SVG and prints a Markdown table.

    bench/spill.py --program build/bench/spill/spill_bench --svg docs/spill.svg
"""
import argparse
import csv
import math
import os
import subprocess
import sys

FORMS = ("sw", "hw")
WIDTH, HEIGHT, GAP, LEFT, TOP = 250, 170, 60, 70, 70
# One hue from light to dark: ring sizes are an order, not categories.
SHADES = ("#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08306b")
EAL = ["-l", "0", "--no-huge", "-m", "512", "--no-pci", "--no-telemetry", "--log-level", "4",
       "--file-prefix", f"spill{os.getpid()}"]


def measure(program):
    output = subprocess.run([program, *EAL], check=True, capture_output=True, text=True).stdout
    lines = output.splitlines()
    header = next(i for i, line in enumerate(lines) if line.startswith("sram_kib,"))
    rows = [{key: value if key == "form" else int(value) for key, value in row.items()}
            for row in csv.DictReader(lines[header:])]
    lost = [row for row in rows if row["lost"]]
    if lost:
        sys.exit(f"frames were lost, which the wire of this measurement never does: {lost[0]}")
    return rows


def values_of(rows, key):
    return sorted({row[key] for row in rows})


class Panel:
    """Axes with a logarithmic x of SRAM sizes; y runs from `low` to `high`."""

    def __init__(self, column, row, title, sizes, low, high, ticks, label, log=False):
        self.x0 = LEFT + column * (WIDTH + GAP)
        self.y0 = TOP + row * (HEIGHT + GAP)
        self.sizes, self.low, self.high, self.log = sizes, low, high, log
        self.parts = [text(self.x0, self.y0 - 8, title, "start", bold=True)]
        for tick in ticks:
            y = self.y(tick)
            self.parts.append(line([(self.x0, y), (self.x0 + WIDTH, y)], "#ddd", 1))
            self.parts.append(text(self.x0 - 6, y + 4, str(tick), "end"))
        for size in sizes:
            name = f"{size}" if size < 1024 else "1024"
            self.parts.append(text(self.x(size), self.y0 + HEIGHT + 16, name, "middle"))
        middle = self.y0 + HEIGHT / 2
        self.parts.append(f'<text transform="translate({self.x0 - 44} {middle}) rotate(-90)" '
                          f'text-anchor="middle">{label}</text>')

    def x(self, size):
        first, last = math.log2(self.sizes[0]), math.log2(self.sizes[-1])
        return self.x0 + WIDTH * (math.log2(size) - first) / (last - first)

    def y(self, value):
        scale = math.log2 if self.log else float
        low, high = scale(self.low), scale(self.high)
        return self.y0 + HEIGHT * (1 - (scale(value) - low) / (high - low))

    def curve(self, points, colour, dashed=False):
        self.parts.append(line([(self.x(x), self.y(y)) for x, y in points], colour, 2, dashed))


def text(x, y, words, anchor, bold=False):
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{words}</text>'


def line(points, colour, width, dashed=False):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
            f'{dash}/>')


def draw(rows):
    sizes, rings, loads = (values_of(rows, key) for key in ("sram_kib", "ring", "held"))
    found = {(r["form"], r["held"], r["ring"], r["sram_kib"]): r for r in rows}
    parts = []
    for column, held in enumerate(loads):
        for number, form in enumerate(FORMS):
            panel = Panel(column, number, f"spill={form}, {held} packets held", sizes, 0, 100,
                          (0, 25, 50, 75, 100), "payload on the card, %")
            for ring, colour in zip(rings, SHADES):
                panel.curve([(s, found[form, held, ring, s]["share_permille"] / 10)
                             for s in sizes], colour)
            parts += panel.parts
        panel = Panel(column, 2, f"both forms, {held} packets held", sizes, 32, 2048,
                      (32, 64, 128, 256, 512, 1024, 2048), "largest burst without loss", log=True)
        for ring, colour in zip(rings, SHADES):
            for form in FORMS:
                panel.curve([(s, found[form, held, ring, s]["largest_burst"]) for s in sizes],
                            colour, dashed=form == "sw")
        parts += panel.parts
    width = LEFT + len(loads) * (WIDTH + GAP)
    height = TOP + 3 * (HEIGHT + GAP) + 40
    parts.append(text(LEFT, 24, "Split rings: frames of 1,000 B, header 128 B. Counted with the "
                      "single-stepped model, not measured on hardware.", "start", bold=True))
    x = LEFT
    for ring, colour in zip(rings, SHADES):
        parts.append(line([(x, 40), (x + 22, 40)], colour, 3))
        parts.append(text(x + 28, 44, f"ring of {ring}", "start"))
        x += 115
    parts.append(text(x, 44, "bursts: dashed sw, solid hw", "start"))
    parts.append(text(width / 2, height - 16, "memory of the card, KiB", "middle"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif" font-size="11" fill="#222">\n'
            f'<rect width="{width}" height="{height}" fill="#fff"/>\n' + "\n".join(parts) +
            "\n</svg>\n")


def table(rows, sizes=(64, 128, 256, 1024), rings=(64, 256, 1024)):
    found = {(r["form"], r["held"], r["ring"], r["sram_kib"]): r for r in rows}
    lines = ["| card, KiB (buffers) | ring | held | share on the card, sw | sw, auto | hw | "
             "largest burst, sw | sw, auto | hw |", "|---|---|---|---|---|---|---|---|---|"]
    for size in sizes:
        for ring in rings:
            for held in values_of(rows, "held"):
                sw, auto, hw = (found[form, held, ring, size] for form in ("sw", "auto", "hw"))
                lines.append(f"| {size} ({sw['card_buffers']}) | {ring} | {held} | "
                             f"{sw['share_permille'] / 10:.1f} % | "
                             f"{auto['share_permille'] / 10:.1f} % | "
                             f"{hw['share_permille'] / 10:.1f} % | {sw['largest_burst']} | "
                             f"{auto['largest_burst']} | {hw['largest_burst']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/bench/spill/spill_bench")
    parser.add_argument("--svg", default="docs/spill.svg")
    options = parser.parse_args()
    rows = measure(options.program)
    with open(options.svg, "w", encoding="utf-8") as file:
        file.write(draw(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
