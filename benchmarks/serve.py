#!/usr/bin/env python3
"""Throughput and latency of `lssvm serve` on MNIST's test images, beside `lssvm predict`.

Usage: serve.py PROGRAM MODEL

Standard library only. The model is one of MNIST, from `lssvm train data/mnist --model MODEL`. All is
measured in one go, since machines are noisy, and printed as Markdown. The scores of the server are
compared with those of `predict`.
"""
import csv
import gzip
import http.client
import json
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

import machine

MNIST = Path(__file__).resolve().parent.parent / "data" / "mnist"
PIXELS = 28 * 28
BATCH = 64
CONNECTIONS = 2
# Requests for the latencies, after a few that do not count.
REQUESTS, WARM = 400, 20


def images():
    data = gzip.open(MNIST / "t10k-images-idx3-ubyte.gz").read()[16:]
    return [data[at : at + PIXELS] for at in range(0, len(data), PIXELS)]


def bodies(rows, batch):
    """Requests for the scores of all rows, as their bytes."""
    out = []
    for at in range(0, len(rows), batch):
        part = rows[at : at + batch]
        tensor = {"name": "input", "shape": [len(part), PIXELS], "datatype": "UINT8", "data": list(b"".join(part))}
        out.append(json.dumps({"inputs": [tensor], "outputs": [{"name": "scores"}]}).encode())
    return out


class Server:
    """The program, until the end of the block."""

    def __init__(self, program, model):
        command = [program, "serve", model, "--port", "0", "--name", "mnist"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = urllib.parse.urlsplit(self.process.stdout.readline().strip()).netloc

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        if code:
            sys.exit(f"the server ended with {code}")

    def exchange(self, requests, connections):
        """Sends requests on so many connections at once: answers, seconds of each, and of all."""
        answers, seconds = [None] * len(requests), [None] * len(requests)

        def client(first):
            connection = http.client.HTTPConnection(self.address)
            for i in range(first, len(requests), connections):
                start = time.perf_counter()
                connection.request("POST", "/v2/models/mnist/infer", requests[i])
                response = connection.getresponse()
                answers[i] = response.read()
                seconds[i] = time.perf_counter() - start
                if response.status != 200:
                    raise RuntimeError(answers[i].decode())
            connection.close()

        threads = [threading.Thread(target=client, args=(first,)) for first in range(connections)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        total = time.perf_counter() - start
        if None in answers:
            sys.exit("not all requests were answered")
        return answers, seconds, total


def predict(program, model, folder):
    """Scores of the program, seconds of the whole command, and those of the predictions alone."""
    scores, result = folder / "scores.csv", folder / "result.json"
    start = time.perf_counter()
    run([program, "predict", model, MNIST, "--scores", "--output", scores])
    whole = time.perf_counter() - start
    run([program, "evaluate", model, MNIST, "--json", result])
    with open(scores) as file:
        rows = [[float(value) for value in row[1:]] for row in list(csv.reader(file))[1:]]
    predictions = json.loads(result.read_text())["phases"]["predict"]["seconds"]
    return rows, whole, predictions


def run(command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def scores_of(answers):
    rows = []
    for answer in answers:
        tensor = json.loads(answer)["outputs"][0]
        width, data = tensor["shape"][1], tensor["data"]
        rows += [data[at : at + width] for at in range(0, len(data), width)]
    return rows


def compare(ours, theirs):
    """How many scores are the same numbers of 32 bits, and the greatest difference."""
    single = lambda value: struct.unpack("<f", struct.pack("<f", value))[0]
    rows = zip(ours, theirs, strict=True)
    pairs = [(single(x), single(y)) for a, b in rows for x, y in zip(a, b, strict=True)]
    same = sum(a == b for a, b in pairs)
    return same, len(pairs), max(abs(a - b) for a, b in pairs)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    program, model = sys.argv[1:]
    rows = images()
    facts = machine.facts()
    print(f"{facts['cpu']}, {facts['cores']} cores; {len(rows):,} rows\n")
    with tempfile.TemporaryDirectory() as folder, Server(program, model) as server:
        batches, singles = bodies(rows, BATCH), bodies(rows[:REQUESTS], 1)
        server.exchange(batches[:WARM], CONNECTIONS)
        # In turn, so that what else the machine does meets all.
        alone, together, whole, predictions = [], [], [], []
        for _ in range(3):
            expected, seconds, phase = predict(program, model, Path(folder))
            whole.append(seconds)
            predictions.append(phase)
            alone.append(server.exchange(batches, 1)[2])
            answers, _, total = server.exchange(batches, CONNECTIONS)
            together.append(total)
        print("| | rows/s, best of 3 | time against `predict` |\n|---|---:|---:|")
        best = min(predictions)
        for name, seconds in [
            ("`lssvm predict`, predictions alone", best),
            ("`lssvm predict`, the whole command", min(whole)),
            (f"`lssvm serve`, batches of {BATCH}, 1 connection", min(alone)),
            (f"`lssvm serve`, batches of {BATCH}, {CONNECTIONS} connections", min(together)),
        ]:
            print(f"| {name} | {len(rows) / seconds:,.0f} | {seconds / best:.2f} |")
        same, count, difference = compare(scores_of(answers), expected)
        print(f"\nScores: {same:,} of {count:,} have the bits of `predict`; the greatest difference is {difference:.1e}.\n")
        print(f"| {CONNECTIONS} loaded connections | p50 | p99 |\n|---|---:|---:|")
        for name, requests in [("1 row", singles), (f"{BATCH} rows", (batches * 4)[:REQUESTS])]:
            seconds = sorted(server.exchange(requests, CONNECTIONS)[1][WARM:])
            cuts = statistics.quantiles(seconds, n=100)
            print(f"| {name} a request | {1e3 * cuts[49]:.1f} ms | {1e3 * cuts[98]:.1f} ms |")


if __name__ == "__main__":
    main()
