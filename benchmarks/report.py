"""The results for readers: a line, tables for the terminal and for Markdown, and a bar chart."""
import math
from html import escape

from catalogue import CLASSIFICATION, METHODS, reference

COLUMNS = ["method", "problem", "training s", "prediction s", "memory GB", "{error}", "time ratio", "remark"]
NOTHING = "–"

# The bar chart, in pixels.
WIDTH, LEFT, RIGHT, TOP, BAR, GAP, HEAD = 900, 260, 150, 30, 16, 6, 34
# Okabe and Ito's blue for us and grey for the others.
OURS, THEIRS = "#0072B2", "#8a8a8a"
# Bars begin here: a logarithmic axis has no zero.
LEAST_SECONDS = 0.1


def number(value):
    """Three digits, or two after the point."""
    if value is None:
        return NOTHING
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def error(entry):
    if "error_percent" in entry:
        return f"{entry['error_percent']:.2f} %"
    return f"{entry['rmse']:.4f}" if "rmse" in entry else NOTHING


def training(entry):
    """Seconds, or why there are none."""
    if entry["status"] == "time limit":
        return f"> {entry['limit_seconds']:,.0f}"
    return number(entry.get("train_seconds")) if entry["status"] == "ok" else entry["status"]


def line(entry):
    """One fit, as it ends."""
    if entry["status"] != "ok":
        return ": ".join(filter(None, [entry["status"], entry["note"]]))
    gigabytes = entry["peak_memory_bytes"] / 1e9
    return f"{training(entry)} s, {gigabytes:.2f} GB, {error(entry)}"


def ratio(entry, base):
    time = entry.get("limit_seconds", entry.get("train_seconds"))
    if time is None or base is None:
        return NOTHING
    more = "> " if entry["status"] == "time limit" else ""
    return more + number(time / base)


def groups(results):
    """Each set that has results, its settings, its entries, and the reference time."""
    for name, settings in results["sets"].items():
        entries = [entry for entry in results["results"] if entry["set"] == name]
        times = {entry["method"]: entry.get("train_seconds") for entry in entries}
        if entries:
            yield name, settings, entries, times.get(reference(settings["rows"]))


def rows(settings, entries, base):
    """A head, and a row of text for each entry."""
    name = "test error" if settings["task"] == CLASSIFICATION else "test RMSE"
    yield [column.format(error=name) for column in COLUMNS]
    for entry in entries:
        peak = entry.get("peak_memory_bytes")
        yield [
            METHODS[entry["method"]].name(settings["task"]),
            METHODS[entry["method"]].problem,
            training(entry),
            number(entry.get("predict_seconds")),
            NOTHING if peak is None else f"{peak / 1e9:.2f}",
            error(entry),
            ratio(entry, base),
            entry.get("note") or "",
        ]


def describe(settings):
    kernel = settings["kernel"]
    if kernel["kernel"] == "poly":
        words = f"kernel (x·y)^{kernel['degree']}"
    else:
        words = f"kernel rbf, gamma {kernel['gamma']:.4g}"
    epsilon = settings["svm_epsilon"]
    return (
        f"{settings['rows']:,} training rows, {settings['test_rows']:,} test rows, {settings['features']} features; "
        f"{words}, c = {settings['c']:g}, C = {settings['svm_c']:g}" + (f", ε = {epsilon:g}" if epsilon else "")
    )


def machine_line(results):
    facts = results["machine"]
    threads = results["threads"]
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_bytes'] / 1e9:.0f} GB; "
        f"{threads} thread{'s' if threads != 1 else ''}; Python {facts['python']}; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    )


def terminal(results):
    text = [machine_line(results)]
    for name, settings, entries, base in groups(results):
        table = list(rows(settings, entries, base))
        # A remark is last, and may be long.
        widths = [max(len(row[j]) for row in table) for j in range(len(COLUMNS) - 1)]
        text += ["", f"{name}: {describe(settings)}"]
        for row in table:
            numbers = [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:])]
            words = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
            text.append("  ".join([*words, *numbers, row[-1]]).rstrip())
    return "\n".join(text)


def markdown(results):
    text = [machine_line(results) + ".", ""]
    for name, settings, entries, base in groups(results):
        text += [f"### {name}", "", describe(settings) + ".", ""]
        lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows(settings, entries, base)]
        text += [lines[0], "|---|---|---:|---:|---:|---:|---:|---|", *lines[1:], ""]
    return "\n".join(text)


def svg(results):
    """Training seconds as horizontal bars on a logarithmic axis, one group for each set."""
    sets = list(groups(results))
    times = [e.get("limit_seconds", e.get("train_seconds", 0)) for _, _, entries, _ in sets for e in entries]
    decades = math.log10(max([10 * LEAST_SECONDS, *times]) / LEAST_SECONDS)
    inner = WIDTH - LEFT - RIGHT
    x = lambda time: LEFT + inner * math.log10(max(time, LEAST_SECONDS) / LEAST_SECONDS) / decades
    body, y = [], TOP
    for name, settings, entries, _ in sets:
        title = f"{name}, {settings['rows']:,} training rows"
        body.append(f'<text x="{LEFT}" y="{y + 18}" font-weight="bold">{escape(title)}</text>')
        y += HEAD
        for entry in entries:
            body += bar(entry, settings, x, y)
            y += BAR + GAP
    bottom = y + GAP
    axis = []
    for decade in range(math.floor(decades) + 1):
        time = LEAST_SECONDS * 10**decade
        axis.append(f'<path class="grid" d="M{x(time):.1f} {TOP}V{bottom}"/>')
        axis.append(f'<text x="{x(time):.1f}" y="{bottom + 18}" text-anchor="middle">{time:,g} s</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 34}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>Training seconds, logarithmic, with test error</title>",
        # A ground of its own: the page around it may be dark where the reader's system is not.
        "<style>svg { color: #1a1a1a } .ground { fill: #fff } text { fill: currentColor } "
        ".grid { stroke: currentColor; stroke-opacity: 0.2 } "
        "@media (prefers-color-scheme: dark) { svg { color: #e6e6e6 } .ground { fill: #161b22 } }</style>",
        f'<rect class="ground" width="{WIDTH}" height="{bottom + 34}"/>',
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="bold">Training seconds (logarithmic), test error</text>',
        *axis,
        *body,
        "</svg>",
        "",
    ])


def bar(entry, settings, x, y):
    """A name, a bar, and the numbers beside it; a fit without an end fades."""
    method = METHODS[entry["method"]]
    middle = y + BAR - 4
    yield f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(method.name(settings["task"]))}</text>'
    time = entry.get("limit_seconds", entry.get("train_seconds"))
    if time is None:
        yield f'<text x="{LEFT + 6}" y="{middle}" font-style="italic">{escape(entry["status"])}</text>'
        return
    done = entry["status"] == "ok"
    fill = THEIRS if method.package else OURS
    width = max(x(time) - LEFT, 1)
    yield f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{fill}" fill-opacity="{1 if done else 0.4}"/>'
    measure = "RMSE " if "rmse" in entry else ""
    words = f"{training(entry)} s" + (f", {measure}{error(entry)}" if done else "")
    yield f'<text x="{LEFT + width + 6:.1f}" y="{middle}">{escape(words)}</text>'
