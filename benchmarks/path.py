#!/usr/bin/env python3
"""Leave-one-out errors by `lssvm path` beside those of a factorisation for each c alone.

Usage: path.py --lssvm PROGRAM --mnist DIR --small DIR

Two tables in Markdown, for docs/tuning.md: what a path of 50 values costs, in units of one exact training of the
same rows, and how far its errors are from the exact ones. DIR of --small holds satimage.dat and a9a
(docs/small-data.md).
"""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

CS = [0.01, 0.1, 1, 10, 100, 1000]


def run(program, folder, *line):
    line = [str(part) for part in line]
    done = subprocess.run([program, *line, "--json", "out.json"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lssvm {' '.join(line)}: {done.stderr}")
    return json.loads((folder / "out.json").read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lssvm", type=Path, required=True)
    parser.add_argument("--mnist", type=Path, required=True)
    parser.add_argument("--small", type=Path, required=True)
    args = parser.parse_args()
    program, small = args.lssvm.resolve(), args.small.resolve()
    sets = {
        "MNIST": (args.mnist.resolve() / "train-images-idx3-ubyte.gz", 10_000, []),
        "satimage": (small / "satimage.dat", 6_435, ["--label", "-1"]),
        "a9a": (small / "a9a", 10_000, []),
    }
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        print("| data | rows | one exact training s | leave-one-out and 50 values of c s | ratio | memory GB |")
        print("|---|---:|---:|---:|---:|---:|", flush=True)
        for name, (data, rows, reading) in sets.items():
            common = [data, "--train-rows", rows, *reading]
            fit = run(program, folder, "train", *common, "--method", "exact")
            path = run(program, folder, "path", *common)
            print(f"| {name} | {rows:,} | {fit['seconds']:.2f} | {path['seconds']:.2f} "
                  f"| {path['seconds'] / fit['seconds']:.2f} | {path['peak_memory_bytes'] / 1e9:.2f} |", flush=True)
        print("\n| data | " + " | ".join(f"c = {c:g}" for c in CS) + " |")
        print("|---|" + "---:|" * len(CS), flush=True)
        for name, (data, rows, reading) in sets.items():
            common = [data, "--train-rows", rows, *reading]
            path = run(program, folder, "path", *common, "--from", CS[0], "--to", CS[-1], "--values", len(CS))
            cells = []
            for c, point in zip(CS, path["points"]):
                exact = run(program, folder, "train", *common, "--loo", "--c", c)["leave_one_out"]["error_percent"]
                cells.append(f"{point['error']:.2f} ({exact:.2f})")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
