"""This machine: what it is, what is free, and a child process measured."""
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.02
CGROUP = Path("/sys/fs/cgroup")
OOM_SCORE = Path("/proc/self/oom_score_adj")


def facts():
    """For the head of the results."""
    return {
        "cpu": cpu_model(),
        "cores": len(processors()),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cpu_model():
    """With what tells models of one name apart."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown"
    lines = [line.partition(":") for line in text.split("\n\n")[0].splitlines()]
    entries = {key.strip(): value.strip() for key, _, value in lines}
    name = entries.get("model name", "unknown")
    numbers = [entries.get(key, "?") for key in ("cpu family", "model")]
    wide = ", AVX-512" if "avx512f" in entries.get("flags", "") else ""
    return f"{name} (family {numbers[0]}, model {numbers[1]}{wide})"


def processors():
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def available_memory():
    """Bytes that a new process may take: what is free, and what the control group leaves."""
    limits = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    except OSError:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        most, now = [(CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current")]
        if most != "max":
            limits.append(int(most) - int(now))
    except OSError:
        pass  # No such group here.
    return min(limits)


@dataclass
class Ended:
    """How a child process ended."""

    code: int
    seconds: float
    peak_memory_bytes: int
    timed_out: bool

    def why(self, log):
        """The last words of a child that failed."""
        if self.code < 0:
            name = signal.Signals(-self.code).name
            return f"ended by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("error: ")]
        return (errors or lines or [f"exit code {self.code}"])[-1]


def run(command, threads, seconds, log):
    """Runs a command with so many threads for at most so long, its words in the file `log`.

    The peak is the child's own, from wait4. The kernel counts in it what the parent held when it
    forked, which is why the parent imports nothing large.
    """
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(counts, str(threads))}
    allowed = processors()[:threads]

    def in_child():
        # For those that heed no variable.
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, allowed)
        # If memory runs out, this process ends and no other.
        if OOM_SCORE.exists():
            OOM_SCORE.write_text("1000")

    start = time.perf_counter()
    with open(log, "wb") as words:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            preexec_fn=in_child,
        )
    timed_out = False
    try:
        pid = 0
        while not pid:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if not pid and time.perf_counter() - start > seconds:
                timed_out = True
                break
            if not pid:
                time.sleep(POLL_SECONDS)
    finally:
        # At the limit, or when this program is interrupted.
        if not pid:
            os.killpg(child.pid, signal.SIGKILL)
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return Ended(child.returncode, time.perf_counter() - start, unit * usage.ru_maxrss, timed_out)
