#!/usr/bin/env python3
"""Trains on more and more rows of MNIST, and draws seconds against rows beside N².

Usage: scaling.py PROGRAM OUT.svg [ROWS ...]

Standard library only. The seconds are those of the whole run as `lssvm train --json` tells them; the
points are also printed as a Markdown table.
"""
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

MNIST = Path(__file__).resolve().parent.parent / "data" / "mnist"
ROWS = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000]
METHOD = "pcg"

# The picture, in pixels.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 420, 60, 30, 40, 50
# Okabe and Ito's blue for us and grey for the line.
OURS, LINE = "#0072B2", "#8a8a8a"


def train(program, rows):
    """What a run says of itself."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, "train", MNIST, "--train-rows", rows, "--method", METHOD, "--follow", 0, "--json", out.name]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(Path(out.name).read_text())


def table(points):
    print("| rows | seconds | iterations | residual | seconds / N², 10⁻⁹ |\n|---:|---:|---:|---:|---:|")
    for rows, run in points:
        ratio = 1e9 * run["seconds"] / rows**2
        print(f"| {rows:,} | {run['seconds']:.1f} | {run['iterations']} | {run['relative_residual']:.1e} | {ratio:.1f} |")


def svg(points):
    """Both axes logarithmic; the grey line is N² through the last point."""
    xs, ys = [rows for rows, _ in points], [run["seconds"] for _, run in points]
    last = (xs[-1], ys[-1])
    square = lambda rows: last[1] * (rows / last[0]) ** 2
    low, high = min(*ys, square(xs[0])) / 1.3, max(ys) * 1.3
    at = lambda value, first, end, start, stop: start + (stop - start) * math.log(value / first) / math.log(end / first)
    x = lambda rows: at(rows, xs[0] / 1.1, xs[-1] * 1.1, LEFT, WIDTH - RIGHT)
    y = lambda seconds: at(seconds, low, high, HEIGHT - BOTTOM, TOP)
    text = lambda px, py, words, more="": f'<text x="{px:.1f}" y="{py:.1f}" {more}>{words}</text>'
    body = [text(LEFT, 22, "MNIST: seconds to a relative residual of 10⁻³, by rows", 'font-size="15" font-weight="bold"')]
    for rows in xs:
        body.append(f'<path class="grid" d="M{x(rows):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        body.append(text(x(rows), HEIGHT - BOTTOM + 18, f"{rows:,}", 'text-anchor="middle"'))
    ticks = [m * 10**e for e in range(-1, 5) for m in (1, 2, 5)]
    for seconds in (tick for tick in ticks if low <= tick <= high):
        body.append(f'<path class="grid" d="M{LEFT} {y(seconds):.1f}H{WIDTH - RIGHT}"/>')
        body.append(text(LEFT - 6, y(seconds) + 4, f"{seconds:g} s", 'text-anchor="end"'))
    body.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "training rows", 'text-anchor="middle"'))
    body.append(f'<path d="M{x(xs[0]):.1f} {y(square(xs[0])):.1f}L{x(last[0]):.1f} {y(last[1]):.1f}" stroke="{LINE}" stroke-dasharray="5 4"/>')
    body.append(text(x(xs[0]) + 22, y(square(xs[0])) - 16, "N²"))
    path = "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in zip(xs, ys))
    body.append(f'<path d="M{path}" stroke="{OURS}" stroke-width="2" fill="none"/>')
    for a, b in zip(xs, ys):
        body.append(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="4" fill="{OURS}"/>')
        body.append(text(x(a) - 6, y(b) - 10, f"{b:.1f}", 'text-anchor="end"'))
    style = (
        "svg { color: #1a1a1a } .ground { fill: #fff } text { fill: currentColor } "
        ".grid { stroke: currentColor; stroke-opacity: 0.15 } "
        "@media (prefers-color-scheme: dark) { svg { color: #e6e6e6 } .ground { fill: #161b22 } }"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img">'
    ground = f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
    return "\n".join([head, "<title>Seconds against training rows</title>", f"<style>{style}</style>", ground, *body, "</svg>", ""])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, out, *rows = sys.argv[1:]
    points = []
    for count in [int(count) for count in rows] or ROWS:
        points.append((count, train(program, count)))
        print(f"{count} rows: {points[-1][1]['seconds']:.1f} s", file=sys.stderr, flush=True)
    Path(out).write_text(svg(points))
    table(points)


if __name__ == "__main__":
    main()
