#!/usr/bin/env python3
"""Runs lssvm and its peers on the same data, one after the other, and reports what each took.

It sets itself up: a virtual environment with the pinned peers, and a release build of lssvm. Every
fit is a process of its own. Results are written after every one of them.
"""
import argparse
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import report
from catalogue import METHODS, SETS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
VENV = HERE / ".venv"
WORK = HERE / ".work"
MNIST = ROOT / "data" / "mnist"
REQUIRED = ("numpy", "scipy", "scikit-learn")
OLDEST_PYTHON = (3, 11)
QUICK_ROWS = 500
BUSY = 0.5
"""A load above this is other work that will disturb the times."""
UNLIMITED = float("inf")
INTERRUPTED = 130
"""Exit code, as a shell gives it."""


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"data sets: {', '.join(SETS)}\nmethods: {', '.join(METHODS)}",
    )
    names = lambda text: text.split(",")
    parser.add_argument("--small", type=Path, metavar="DIR", help="folder with a9a, a9a.t and bike.data.csv.gz")
    parser.add_argument("--only", type=names, metavar="SETS", help="these data sets, with commas")
    parser.add_argument("--methods", type=names, metavar="METHODS", help="these methods, with commas")
    parser.add_argument("--threads", type=int, default=len(machine.processors()), help="of every method [all cores]")
    parser.add_argument("--time-limit", type=float, default=1800, metavar="S", help="most seconds of one fit [1800]")
    parser.add_argument("--lssvm", type=Path, metavar="PROGRAM", help="use this one instead of building it")
    parser.add_argument("--resume", action="store_true", help="keep the finished fits of the last run")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the training times as SVG")
    parser.add_argument(
        "--quick", action="store_true",
        help=f"{QUICK_ROWS} rows of everything, to see that it runs; into results-quick.json",
    )
    parser.add_argument("--tune", action="store_true", help="search the settings of catalogue.py instead, and print them")
    args = parser.parse_args()
    for given, known, what in [(args.only, SETS, "data set"), (args.methods, METHODS, "method")]:
        for name in given or []:
            if name not in known:
                parser.error(f"there is no {what} {name}; there are {', '.join(known)}")
    if not 1 <= args.threads <= len(machine.processors()):
        parser.error(f"--threads {args.threads}: this machine has {len(machine.processors())} for us")
    args.only = args.only or list(SETS)
    args.methods = args.methods or list(METHODS)
    return args


def say(text=""):
    print(text, flush=True)


def without_paths(words):
    """Results are published; where this folder is on the machine is not."""
    return words.replace(f"{ROOT}/", "")


def write(path, text):
    """The whole file or none."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


# Set-up


def python():
    return str(VENV / "bin" / "python")


def ask(code):
    """What a line of Python prints in the environment, or its last words on failing."""
    done = subprocess.run([python(), "-c", code], capture_output=True, text=True)
    words = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
    return done.returncode == 0, words[-1]


def installed():
    code = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    return json.loads(ask(code)[1])


def pins():
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return dict(line.strip().split("==") for line in lines if line.strip() and not line.startswith("#"))


def set_up_peers():
    """Installs what is missing. Returns the versions, and why some peers cannot be had."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"the pinned peers need Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    if not Path(python()).exists():
        say(f"making {VENV.relative_to(ROOT)}")
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    missing, have = {}, installed()
    for name, version in pins().items():
        if have.get(name) == version:
            continue
        say(f"installing {name} {version}")
        command = [python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{name}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip says no more"])[-1]
            if name in REQUIRED:
                sys.exit(f"{name} {version} does not install: {reason}")
            missing[name] = f"does not install: {reason}"
    modules = {method.package: method.module for method in METHODS.values() if method.package}
    for package, module in modules.items():
        if package not in missing:
            works, reason = ask(f"import {module}")
            if not works:
                missing[package] = f"does not import: {without_paths(reason)}"
    for name, reason in missing.items():
        say(f"{name} {reason}")
    have = installed()
    return {name: have[name] for name in pins() if name in have}, missing


def build():
    """The release build of lssvm, which cargo says where it is, and its version."""
    say("building lssvm")
    command = ["cargo", "build", "--release", "--locked", "--bin", "lssvm", "--message-format", "json-render-diagnostics"]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit("there is no cargo; install Rust, or give --lssvm PROGRAM")
    if done.returncode:
        sys.exit("lssvm does not build")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    programs = [m["executable"] for m in messages if m.get("target", {}).get("name") == "lssvm" and m.get("executable")]
    program = Path(programs[-1])
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return program, f"{version(program)} {commit}".strip()


def version(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


# One fit


class Failed(Exception):
    """A fit that gave no result, as an entry of the results."""

    def __init__(self, status, note="", **numbers):
        super().__init__(note)
        self.entry = {"status": status, "note": note, **numbers}


def remark(training):
    """Of a run of lssvm: the method, how well it solved the system, and why it ended before that."""
    words = [training["config"]["method"]]
    residual = training["relative_residual"]
    if residual is not None:
        about = "" if training["relative_residual_exact"] else "about "
        words.append(f"relative residual {about}{residual:.1e}")
    if training["stopped"] not in ("solved", "tolerance"):
        words.append(f"stopped by {training['stopped']}")
    return ", ".join(words)


class Runner:
    """Runs one method on one prepared set."""

    def __init__(self, args, lssvm, missing):
        self.args, self.lssvm, self.missing = args, lssvm, missing

    def prepare(self, name):
        """The prepared folder of a set."""
        folder = WORK / name
        command = [python(), str(HERE / "prepare.py"), name, str(folder), "--mnist", str(MNIST)]
        command += ["--small", str(self.args.small)] if self.args.small else []
        command += ["--limit", str(QUICK_ROWS)] if self.args.quick else []
        log = WORK / f"{name}.log"
        ended = machine.run(command, self.args.threads, UNLIMITED, log)
        if ended.code:
            raise Failed("failed", f"the data cannot be prepared: {ended.why(log)}")
        return folder

    def fit(self, method, name, folder):
        """An entry of the results, also for a fit that failed."""
        start = time.perf_counter()
        try:
            entry = {"status": "ok", **self.attempt(method, name, folder)}
        except Failed as failed:
            entry = {**failed.entry, "note": without_paths(failed.entry["note"])}
        return {**entry, "total_seconds": time.perf_counter() - start}

    def attempt(self, method, name, folder):
        facts = METHODS[method]
        if facts.package in self.missing:
            raise Failed("not available", f"{facts.package} {self.missing[facts.package]}")
        settings = json.loads((folder / "settings.json").read_text())
        if facts.needs:
            needed, what = facts.needs(settings["rows"], settings["features"])
            free = machine.available_memory()
            if needed > free:
                raise Failed("does not fit", f"needs {needed / 1e9:.1f} GB ({what}), {free / 1e9:.1f} GB are free")
        log = WORK / f"{name}-{method}.log"
        out = WORK / "result.json"
        out.unlink(missing_ok=True)
        if facts.package is None:
            return self.run_lssvm(facts, settings, folder, out, log)
        ended = self.child([python(), str(HERE / "peers.py"), method, str(folder), str(out), str(self.args.threads)], log)
        return {**json.loads(out.read_text()), "peak_memory_bytes": ended.peak_memory_bytes}

    def run_lssvm(self, facts, settings, folder, out, log):
        """Trains and evaluates in two processes, so that no test row is seen while it trains."""
        model = WORK / "model.lssvm"
        threads = ["--threads", str(self.args.threads), "--json", str(out)]
        # The rows are prepared: lssvm gets the same numbers as the others.
        options = ["--preprocess", "none", "--task", settings["task"], "-c", str(settings["c"]), *facts.arguments]
        for key, value in settings["kernel"].items():
            options += [f"--{key}", str(value)]
        train = [str(self.lssvm), "train", str(folder / "X_train.npy"), "--model", str(model)]
        test = [str(self.lssvm), "evaluate", str(model), str(folder / "X_test.npy")]
        try:
            trained = self.child([*train, *options, *threads], log)
            training = json.loads(out.read_text())
            evaluated = self.child([*test, *threads], log, trained.seconds)
            result = json.loads(out.read_text())
        finally:
            model.unlink(missing_ok=True)
        error = "rmse" if "rmse" in result else "error_percent"
        return {
            "train_seconds": training["seconds"],
            "predict_seconds": result["seconds"],
            error: result[error],
            "peak_memory_bytes": max(trained.peak_memory_bytes, evaluated.peak_memory_bytes),
            "note": remark(training),
            "options": " ".join(options),
        }

    def child(self, command, log, spent=0.0):
        limit = self.args.time_limit
        ended = machine.run(command, self.args.threads, limit - spent, log)
        peak = {"peak_memory_bytes": ended.peak_memory_bytes}
        if ended.timed_out:
            raise Failed("time limit", limit_seconds=limit, **peak)
        if ended.code:
            raise Failed("failed", ended.why(log), **peak)
        return ended


# All of them


def is_finished(entry, args):
    """Whether --resume need not run it again."""
    late = entry["status"] == "time limit" and entry["limit_seconds"] >= args.time_limit
    return entry["status"] == "ok" or late


def begin(args, path, load, versions, missing):
    """The results so far: those that this run will not replace.

    Entries outside of --only and --methods stay, so that one method can be measured again.
    """
    results = {
        "machine": {**machine.facts(), "load_at_start": round(load, 2)},
        "threads": args.threads,
        "versions": versions,
        "missing": missing,
        "sets": {},
        "results": [],
    }
    if not path.exists():
        return results
    before = json.loads(path.read_text())
    same = lambda r: (r["threads"], r["machine"]["cpu"], r["machine"]["cores"])
    if same(before) != same(results):
        words = f"{path.name} is from another machine or number of threads"
        if args.resume:
            sys.exit(f"{words}; without --resume it is begun anew")
        say(f"{words}, and is begun anew")
        return results
    selected = lambda e: e["set"] in args.only and e["method"] in args.methods
    keep = lambda e: args.resume and is_finished(e, args) if selected(e) else True
    results["sets"] = before["sets"]
    results["results"] = [entry for entry in before["results"] if keep(entry)]
    return results


def store(results, path, args):
    write(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if args.markdown:
        write(args.markdown.resolve(), report.markdown(results))
    if args.plot:
        write(args.plot.resolve(), report.svg(results))


def put(results, entry):
    """In the place of an earlier one, and in the order of the catalogue."""
    key = lambda e: (list(SETS).index(e["set"]), list(METHODS).index(e["method"]))
    others = [e for e in results["results"] if key(e) != key(entry)]
    results["results"] = sorted([*others, entry], key=key)


def compare(args, runner, results, path):
    for name in args.only:
        if not SETS[name].from_repository and args.small is None:
            say(f"{name}: skipped, --small DIR says where it is")
            continue
        done = {entry["method"] for entry in results["results"] if entry["set"] == name}
        wanted = [method for method in args.methods if method not in done]
        if not wanted:
            continue
        try:
            folder = runner.prepare(name)
        except Failed as failed:
            say(f"{name}: {failed}")
            continue
        results["sets"][name] = json.loads((folder / "settings.json").read_text())
        for method in wanted:
            say(f"{name}: {METHODS[method].name(SETS[name].task)} ...")
            package = METHODS[method].package or "lssvm"
            entry = {
                "set": name,
                "method": method,
                "date": datetime.date.today().isoformat(),
                "version": results["versions"].get(package),
                **runner.fit(method, name, folder),
            }
            put(results, entry)
            store(results, path, args)
            say(f"  {report.line(entry)}")
        shutil.rmtree(folder)


def tune(args):
    command = [python(), str(HERE / "tune.py"), str(args.threads), "--mnist", str(MNIST)]
    command += ["--small", str(args.small)] if args.small else []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(args.threads)}
    return subprocess.run(command, env=environment).returncode


def main():
    args = arguments()
    load = os.getloadavg()[0]
    if load > BUSY:
        say(f"this machine does other work (load {load:.1f}): times will be too long")
    # A child is ended with us, however we are.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    WORK.mkdir(exist_ok=True)
    versions, missing = set_up_peers()
    if args.tune:
        return tune(args)
    lssvm, versions["lssvm"] = (args.lssvm.resolve(), version(args.lssvm.resolve())) if args.lssvm else build()
    path = HERE / ("results-quick.json" if args.quick else "results.json")
    results = begin(args, path, load, versions, missing)
    try:
        compare(args, Runner(args, lssvm, missing), results, path)
    except KeyboardInterrupt:
        say(f"\ninterrupted; {path.name} has the finished ones, and --resume goes on from there")
        return INTERRUPTED
    store(results, path, args)
    say()
    say(report.terminal(results))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
