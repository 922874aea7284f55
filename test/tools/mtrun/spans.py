# SPDX-License-Identifier: Apache-2.0
"""spans.py TRACE DEVICES THREADS STEPS [shared]: reads a trace in Chrome's format and checks what every reader relies
on: spans of a track nest, a step is covered by what nests in it, each step has each kernel as often as each other step.
With `shared`, threads compute parts of each other, so each step has each kernel on some track."""
import collections
import json
import sys

path, devices, threads, steps = sys.argv[1], *map(int, sys.argv[2:5])
shared = sys.argv[5:] == ["shared"]
with open(path) as file:
    trace = json.load(file)
names, tracks = {}, collections.defaultdict(list)
for event in trace["traceEvents"]:
    track = event["pid"], event["tid"]
    if event["ph"] == "M":
        names[event["name"], *track] = event["args"]["name"]
    else:
        assert event["ph"] == "X" and event["dur"] >= 0 and event["name"] and event["cat"], event
        # Nanoseconds, exactly: the file has three digits behind the point.
        tracks[track].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000), event))
assert set(tracks) == {(d, t) for d in range(devices) for t in range(threads)}, sorted(tracks)
assert all(("thread_name", *track) in names for track in tracks) and ("process_name", 0, 0) in names, names

kinds = collections.Counter()
kernels = collections.defaultdict(set)  # of a step, on any track
for track, spans in tracks.items():
    spans.sort(key=lambda span: (span[0], -span[1]))
    stack, covered, launches = [], {}, collections.defaultdict(collections.Counter)
    for begin, end, event in spans:
        kinds[event["cat"]] += 1
        # A parent comes before its children, also where they take no time.
        while stack and begin >= stack[-1][1] and not (begin == end == stack[-1][1] == stack[-1][0]):
            stack.pop()
        if stack:
            assert end <= stack[-1][1], f"{event} leaves {stack[-1][2]}"
        if event["cat"] in ("step", "collective"):
            covered[id(event)] = 0
        if event["cat"] == "kernel":
            launches[stack[0][2]["name"]][event["name"]] += 1
            kernels[stack[0][2]["name"]].add(event["name"])
        if stack and id(stack[-1][2]) in covered:
            covered[id(stack[-1][2])] += end - begin
        if event["cat"] in ("step", "collective"):
            stack.append((begin, end, event))
    for begin, end, event in spans:
        if id(event) in covered and end > begin:
            inside = covered[id(event)]
            assert inside >= 0.999 * (end - begin) - 100, f"{event}: only {inside} ns are covered"
    assert sum(1 for span in spans if span[2]["cat"] == "step") == steps, (track, steps)
    assert shared or len(set(map(str, map(dict, launches.values())))) <= 1, launches
assert len(set(map(frozenset, kernels.values()))) <= 1, kernels
print(" ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
