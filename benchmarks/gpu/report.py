# SPDX-License-Identifier: Apache-2.0
"""results.json as text: Markdown."""
from sections import PEERS

MIB = 1 << 20


def table(header, rows):
    if not rows:
        return ["nothing yet", ""]
    return ["| " + " | ".join(header) + " |", "|---" * len(header) + "|",
            *("| " + " | ".join(row) + " |" for row in rows), ""]


def us(value):
    return f"{value:.1f}" if value else "-"


def part(found, *path):
    for key in path:
        found = (found or {}).get(key)
    return found


def calls(tuned):
    """Of the kernels that have a call, those for which it was the faster one."""
    kernels = tuned.get("kernels")
    return f"{sum(bool(k['algorithm']) for k in kernels)} of {len(kernels)}" if kernels is not None else "-"


def bits(units):
    rows = []
    for name, unit in units.items():
        hashes = unit.get("hashes")
        if name.startswith("bits/") and hashes:
            same = len(set(hashes.values())) == 1
            rows.append([name[5:], ", ".join(hashes).replace("*", "\\*"),
                         f"one result, {next(iter(hashes.values()))}" if same else f"DIFFERENT: {hashes}"])
    return ["## Bits after two epochs", ""] + table(["model", "runs", "variables"], rows)


def peers(units, facts):
    """Microseconds of a queued step, by system."""
    found = {}
    for system in PEERS:
        unit = units.get(f"peers/{system}/{facts['model']}-{facts['precision']}", {})
        if "median_us" in unit:
            found[system] = min(unit["median_us"], unit["queued_us"])
    return found


def speed(units, plans):
    rows = []
    for name, facts in plans.items():
        ours, tuned = units.get(f"speed/{name}", {}), units.get(f"tune/{name}", {})
        if "median_us" not in ours:
            continue
        floor = ours["floor_us"]
        best = min(t for t in (ours["resident_queued_us"], part(tuned, "tuned", "resident_queued_us"),
                               part(tuned, "off", "resident_queued_us")) if t)
        theirs = peers(units, facts)
        rows.append([f"{facts['model']}, {facts['batch']}, {facts['precision']}", str(facts["shards"]),
                     us(ours["median_us"]), us(ours["resident_queued_us"]),
                     us(part(tuned, "off", "resident_queued_us")), us(part(tuned, "tuned", "resident_queued_us")),
                     calls(tuned), us(floor),
                     f"{floor / best * 100:.0f} %" if floor else "-", *(us(theirs.get(s)) for s in PEERS),
                     f"{min(theirs.values()) / best:.2f}" if theirs else "-", f"{facts['batch'] / best * 1e6:.0f}",
                     f"{ours['start_s']:.2f} s"])
    return ["## A training step, in microseconds", "",
            "`auto`, `off` and `tuned` are queued steps whose inputs lie on the GPU, as the peers' do; the last "
            "columns are of the best of them.", ""] + \
        table(["model, batch, precision", "shards", "from the host", "auto", "off", "tuned", "library calls", "floor",
               "of the floor", *PEERS, "fastest peer / mtc", "samples/s",
               "load to first step"], rows)


def memory(units, plans):
    rows = []
    for name in plans:
        found = units.get(f"speed/{name}", {})
        if "promised" in found:
            over = found["measured"] - found["promised"]
            rows.append([name, f"{found['promised'] / MIB:.1f}", f"{found['measured'] / MIB:.1f}",
                         f"{over / MIB:+.1f}"])
    return ["## Memory, in MiB", ""] + table(["plan", "promised", "measured", "more than promised"], rows)


def scaling(units, plans):
    rows = []
    for name in plans:
        one = part(units.get(f"speed/{name}"), "resident_queued_us")
        for how, found in (part(units.get(f"scaling/{name}"), "runs") or {}).items():
            time = found["resident_queued_us"]
            rows.append([name, how, us(found["median_us"]), us(time), f"{one / time:.2f}" if one else "-"])
    return ["## Several GPUs, in microseconds", ""] + table(["plan", "GPUs", "from the host", "queued",
                                                             "times as fast as one"], rows)


def texts(units):
    lines = []
    for name, unit in units.items():
        if unit.get("text"):
            lines += [f"## {name}", "", *("    " + line for line in unit["text"]), ""]
    return lines


def text(results, waiting):
    units, plans = results["units"], results["kit"]["plans"]
    lines = [f"# {'; '.join(results.get('GPUs', [])) or 'no GPU'}", "",
             f"Plans for {results['kit']['target']}, made of {results['kit']['commit']}.", ""]
    lines += bits(units) + speed(units, plans) + memory(units, plans) + scaling(units, plans) + texts(units)
    for status in ("skipped", "failed"):
        reasons = {}
        for name, unit in units.items():
            if unit["status"] == status:
                reasons.setdefault(unit["why"], []).append(name)
        if reasons:
            lines += [f"## {status}", "", *(f"* {', '.join(names)}: {why}" for why, names in reasons.items()), ""]
    warnings = sorted({line for unit in units.values() for line in unit.get("warnings", [])})
    if warnings:
        lines += ["## Warnings", "", *(f"* {line}" for line in warnings), ""]
    done = sum(unit["status"] == "ok" for unit in units.values())
    failed = sum(unit["status"] == "failed" for unit in units.values())
    lines.append(f"{done} units done, {failed} failed, {len(waiting)} to do"
                 + (": run it again to go on" if waiting else ""))
    return "\n".join(lines) + "\n"
