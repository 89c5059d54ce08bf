#!/usr/bin/env python3
"""Draws test error against iteration from `lssvm train --json` files, as SVG.

Usage: curves.py OUT.svg TITLE NAME=FILE.json ...
"""
import json
import math
import sys

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 130, 44, 48
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]
TICKS = [1, 1.2, 1.5, 2, 3, 4, 5, 7, 10]


def main(out, title, *series):
    curves = []
    for item in series:
        name, path = item.split("=", 1)
        history = json.load(open(path))["history"]
        curves.append((name, [(h["iteration"], h["error_percent"]) for h in history]))
    last = max(x for _, points in curves for x, _ in points)
    errors = [y for _, points in curves for _, y in points]
    low = max(t for t in TICKS if t <= min(errors))
    high = min(t for t in TICKS if t >= max(errors))
    inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    px = lambda x: LEFT + inner_w * (x - 1) / max(last - 1, 1)
    py = lambda y: TOP + inner_h * (1 - math.log(y / low) / math.log(high / low))
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold">{title}</text>',
    ]
    for tick in (t for t in TICKS if low <= t <= high):
        y = py(tick)
        svg.append(f'<path d="M{LEFT} {y:.1f}H{LEFT + inner_w}" stroke="#ddd"/>')
        svg.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick} %</text>')
    step = 10 if last > 20 else 1
    for tick in [1, *range(step, last + 1, step)]:
        x, y = px(tick), TOP + inner_h + 18
        svg.append(f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{tick}</text>')
    svg.append(f'<text x="{LEFT + inner_w / 2}" y="{HEIGHT - 8}" text-anchor="middle">iteration</text>')
    labels = []
    for (name, points), colour in zip(curves, COLOURS):
        path = "L".join(f"{px(x):.1f} {py(y):.1f}" for x, y in points)
        svg.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        labels.append([py(points[-1][1]), f"{name} {points[-1][1]:.2f} %", colour])
    labels.sort()
    for before, after in zip(labels, labels[1:]):
        after[0] = max(after[0], before[0] + 16)
    for y, text, colour in labels:
        svg.append(f'<text x="{LEFT + inner_w + 8}" y="{y + 4:.1f}" fill="{colour}">{text}</text>')
    open(out, "w").write("\n".join([*svg, "</svg>", ""]))


main(*sys.argv[1:])
