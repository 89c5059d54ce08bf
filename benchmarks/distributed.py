#!/usr/bin/env python3
"""What several ranks take on this machine, and what a cluster would take.

    distributed.py measure --program target/release/lssvm-mpi     writes distributed.json
    distributed.py model                                          prints tables, writes the figure

`measure` trains by `mp` on made-up rows with 1 and 2 ranks of one thread each: the same rows on both (strong scaling),
and as many rows a rank (weak scaling); then by each method, for the bytes that it communicates. `model` takes from that how fast a core does each part of a step, checks itself
on the measurements, and reckons steps of a cluster. Standard library only.
"""
import argparse
import json
import math
import random
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "distributed.json"
FIGURE = HERE.parent / "docs" / "figures" / "distributed.svg"

VALUE = 4
"""Bytes of a number in f32."""

CORES = 32
"""Cores of a node of the cluster, each as fast as one here."""

EFFICIENCY = 0.8
"""What 32 cores do together, as a share of 32 times one; and what a message gets of a network's rate."""

LATENCY = {10: 20e-6, 100: 3e-6}
"""Seconds a message takes at least, by Gbit/s: Ethernet, and InfiniBand or the like."""

RANK = 200
CENTERS = 500
"""Of `pcg`'s preconditioner, and of `centers`."""

METHODS = {
    "mp": [],
    "kaczmarz": [],
    "kaczmarz-mp": [],
    "nystrom": [],
    "pcg": ["--rank", str(RANK)],
    "gauss-seidel": [],
    "centers": ["--centers", str(CENTERS)],
}

CLUSTER = {"n": 10**7, "m": 10**3, "j": 10**4, "k": 10}
NODES = [4, 8, 16, 32, 64, 128, 256]


def write_rows(path: Path, rows: int, features: int) -> None:
    """An NPY file of noise around ten centres, with the class as its last column."""
    generator = random.Random(1)
    centres = [[generator.gauss(0, 1) for _ in range(features)] for _ in range(10)]
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {features + 1}), }}"
    length = -(-(10 + len(head) + 1) // 64) * 64 - 10
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + head.ljust(length - 1).encode() + b"\n")
        noise = [generator.gauss(0, 1) for _ in range(9973)]
        for i in range(rows):
            c = i % 10
            row = [v + noise[(i * 131 + j * 17) % 9973] for j, v in enumerate(centres[c])]
            file.write(struct.pack(f"<{features + 1}f", *row, c))


def run(program: str, ranks: int, data: Path, options: list[str]) -> dict:
    """The results of a run, with the memory of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), program, "train", str(data)]
        command += ["--label", "-1", "--threads", "1", "--json", str(out), *options]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results = json.loads(out.read_text())
    memory = [line for line in said.splitlines() if line.startswith("ranks")]
    return {
        "ranks": ranks,
        "shape": results["shape"],
        "block_size": results["config"]["block-size"],
        "iterations": results["iterations"],
        "seconds": results["history"][-1]["seconds"] - results["history"][0]["seconds"],
        "phases": results["phases"],
        "communicated": results.get("communicated"),
        "peak_memory_bytes": results["peak_memory_bytes"],
        "said": memory,
    }


def measure(args: argparse.Namespace) -> None:
    options = ["--method", "mp", "--block-size", str(args.block), "--iterations", str(args.iterations), "--tolerance", "0"]
    found = {"strong": [], "weak": [], "methods": {}}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.npy"
        write_rows(data, args.rows, args.features)
        for ranks in [1, 2]:
            found["strong"].append(run(args.program, ranks, data, options))
            half = [*options, "--train-rows", str(args.rows // 2 * ranks)]
            found["weak"].append(run(args.program, ranks, data, half))
        for method, more in METHODS.items():
            few = ["--method", method, "--block-size", str(args.block), "--iterations", "3", "--tolerance", "0", *more]
            found["methods"][method] = run(args.program, 2, data, few)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def step_bytes(shape: dict) -> tuple[float, float]:
    """What a step of `mp` gathers, and what it sums."""
    m, j, k = shape["m"], shape["j"], shape["k"]
    return VALUE * j * m, VALUE * (j * (j + 1) / 2 + j * k)


def method_bytes(method: str, shape: dict) -> float:
    """What docs/distributed.md says of an iteration of each method, for classes, the kernel matrix kept."""
    n, m, j, k = (shape[key] for key in "nmjk")
    block = j * m + j * (j + 1) / 2 + j * k
    return {
        "mp": VALUE * block,
        "kaczmarz": VALUE * (block + j * k),
        "kaczmarz-mp": VALUE * (block + 3 * j * k),
        "nystrom": VALUE * (block + j * j),
        "pcg": (VALUE + 8) * n * k + VALUE * RANK * k,
        "gauss-seidel": VALUE * n * (k + 1),
        "centers": 8 * CENTERS * k,
    }[method]


def step_flops(shape: dict) -> dict:
    """Operations of a step: those that are shared, and the factor, which every rank makes."""
    n, m, j, k = (shape[key] for key in "nmjk")
    return {"kernel": 2.0 * n * j * m, "gram": float(n) * j * j, "update": 4.0 * n * j * k, "factor": j**3 / 3.0}


def step_seconds(shape: dict, ranks: int, rates: dict, network: tuple[float, float] | None) -> float:
    """`rates`: operations a second of a rank; `network`: bytes a second, and seconds of a message."""
    flops = step_flops(shape)
    shared = sum(flops[phase] / rates[phase] for phase in ["kernel", "gram", "update"])
    seconds = shared / ranks + flops["factor"] / rates["factor"]
    if network and ranks > 1:
        rate, latency = network
        gathered, summed = step_bytes(shape)
        around = (ranks - 1) / ranks
        # Rings: every byte is seen once, and twice for a sum.
        seconds += around * (gathered + 2 * summed) / rate + 3 * math.log2(ranks) * latency
    return seconds


def shape_of(found: dict) -> dict:
    n, m, k = found["shape"]
    return {"n": n, "m": m, "j": found["block_size"], "k": k}


def a_step(found: dict) -> float:
    """The first iteration, which touches memory for the first time, is left out."""
    return found["seconds"] / (found["iterations"] - 1)


def model(_: argparse.Namespace) -> None:
    found = json.loads(RESULTS.read_text())
    one, two = found["strong"]
    rates = {}
    for phase in ["kernel", "gram", "update", "factor"]:
        # With all cores at work, as in the run of a cluster.
        rates[phase] = 1e9 * two["phases"][phase]["gflops"]
    print("| rows | ranks | s/iteration | speed-up | peak memory of the first rank |")
    print("|---|---:|---:|---:|---:|")
    for kind in ["strong", "weak"]:
        runs = found[kind]
        base = a_step(runs[0])
        for each in runs:
            gain = base / a_step(each) * (each["ranks"] if kind == "weak" else 1)
            peak = each["peak_memory_bytes"] / 1e6
            rows = each["shape"][0]
            print(f"| {kind}, {rows:,} | {each['ranks']} | {a_step(each):.2f} | {gain:.2f} | {peak:.0f} MB |")
    reckoned = step_seconds(shape_of(two), 2, rates, None)
    print(f"\nmodel, 2 ranks here: {reckoned:.2f} s; measured {a_step(two):.2f} s")
    gathered, summed = step_bytes(shape_of(two))
    steps = two["communicated"]["in_steps"]
    each = {key: steps[key] / two["iterations"] for key in ["gathered", "summed"]}
    print(f"gathered: formula {gathered:.0f} bytes, counted {each['gathered']:.0f}")
    print(f"summed: formula {summed:.0f} bytes, counted {each['summed']:.0f}\n")
    print("| method | bytes of an iteration, formula | counted |")
    print("|---|---:|---:|")
    for method, each in found["methods"].items():
        steps = each["communicated"]["in_steps"]
        counted = sum(steps.values()) / each["iterations"]
        print(f"| `{method}` | {method_bytes(method, shape_of(each)):,.0f} | {counted:,.0f} |")
    print()
    node = {phase: CORES * EFFICIENCY * rate for phase, rate in rates.items()}
    curves = {}
    print("| nodes | 10 Gbit/s | 100 Gbit/s | memory of a node |")
    print("|---:|---:|---:|---:|")
    for nodes in NODES:
        times = []
        for gigabits, latency in LATENCY.items():
            network = (EFFICIENCY * gigabits * 1e9 / 8, latency)
            seconds = step_seconds(CLUSTER, nodes, node, network)
            curves.setdefault(gigabits, []).append((nodes, seconds))
            times.append(f"{seconds:.1f} s")
        n, m, j = CLUSTER["n"], CLUSTER["m"], CLUSTER["j"]
        memory = VALUE * (n * (m + j) / nodes + 2 * j * j) / 1e9
        print(f"| {nodes} | {times[0]} | {times[1]} | {memory:.0f} GB |")
    ideal = [(nodes, curves[100][0][1] * NODES[0] / nodes) for nodes in NODES]
    draw({"10 Gbit/s": curves[10], "100 Gbit/s": curves[100], "ideal": ideal})


def draw(curves: dict) -> None:
    """Seconds of an iteration against nodes, both logarithmic."""
    width, height, left, bottom, top, right = 640, 400, 70, 50, 20, 130
    points = [point for curve in curves.values() for point in curve]
    low = 10 ** math.floor(math.log10(min(seconds for _, seconds in points)))
    high = 10 ** math.ceil(math.log10(max(seconds for _, seconds in points)))

    def x(nodes: float) -> float:
        return left + (width - left - right) * math.log(nodes / NODES[0]) / math.log(NODES[-1] / NODES[0])

    def y(seconds: float) -> float:
        return height - bottom - (height - bottom - top) * math.log(seconds / low) / math.log(high / low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for nodes in NODES:
        parts.append(f'<line x1="{x(nodes):.1f}" x2="{x(nodes):.1f}" y1="{top}" y2="{height - bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(nodes):.1f}" y="{height - bottom + 18}" text-anchor="middle">{nodes}</text>')
    seconds = low
    while seconds <= high:
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(seconds):.1f}" y2="{y(seconds):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds:g} s</text>')
        seconds *= 10
    looks = {"10 Gbit/s": ("#c44e52", ""), "100 Gbit/s": ("#4c72b0", ""), "ideal": ("#888", ' stroke-dasharray="5 4"')}
    for place, (name, curve) in enumerate(curves.items()):
        colour, dash = looks[name]
        line = " ".join(f"{x(nodes):.1f},{y(seconds):.1f}" for nodes, seconds in curve)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        label = top + 20 + 20 * place
        parts.append(f'<line x1="{width - right + 14}" x2="{width - right + 38}" y1="{label - 4}" y2="{label - 4}" '
                     f'stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{width - right + 44}" y="{label}">{name}</text>')
    middle = (left + width - right) / 2
    parts.append(f'<text x="{middle}" y="{height - 10}" text-anchor="middle">nodes</text></svg>')
    FIGURE.write_text("\n".join(parts) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("--program", default="lssvm-mpi")
    measured.add_argument("--rows", type=int, default=20_000)
    measured.add_argument("--features", type=int, default=200)
    measured.add_argument("--block", type=int, default=1000)
    measured.add_argument("--iterations", type=int, default=6)
    measured.set_defaults(run=measure)
    commands.add_parser("model").set_defaults(run=model)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
