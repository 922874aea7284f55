# SPDX-License-Identifier: Apache-2.0
"""Other files and links in the folders that runs write to."""
import json
import pathlib
import shutil

from harness import DATA, attack


@attack("links", quick=True)
def links(trial):
    """A user's folders and links in a folder of checkpoints"""
    plan, victim, folder = trial.plan(), trial.folder / "victim", trial.folder / "c"
    for made in (victim, folder, folder / ".tmp-mycache", folder / ".tmp-step-000000000001-1"):
        made.mkdir(exist_ok=True)
    theirs = [victim / "notes.txt", victim / "manifest.json", folder / ".tmp-mycache" / "notes.txt",
              folder / ".tmp-step-000000000001-1" / "notes.txt"]
    for file in theirs:
        file.write_text("theirs")
    for name in (".tmp-link", ".tmp-step-000000000009-7", ".tmp-removed-step-000000000008", "damaged-step-000000000008",
                 ".lock-link"):
        (folder / name).symlink_to(victim)
    done = trial.train(plan, "--epochs", 6, "--keep", 1, "--checkpoint", "c")
    for file in theirs:
        if not file.exists() or file.read_text() != "theirs":
            trial.finding(f"{file.relative_to(trial.folder)} is gone")
    if "it stays as it is" not in done.output:
        trial.finding(f"expected a note about what stays, found {done}")


@attack("archived", quick=True)
def archived(trial):
    """A checkpoint that was moved to an archive and linked back, when it would be pruned"""
    plan = trial.plan()
    trial.train(plan, "--epochs", 1, "--checkpoint", "c")
    made = sorted((trial.folder / "c").glob("step-*"))[0]
    archive = trial.folder / "archive"
    made.rename(archive)
    made.symlink_to(archive)
    trial.train(plan, "--epochs", 6, "--keep", 1, "--checkpoint", "c", "--resume", "auto", "--monitor", "loss")
    if sorted(file.name for file in archive.iterdir()) != ["manifest.json", "variables.safetensors"]:
        trial.finding("the files of a checkpoint that is a link were removed")


@attack("sealed", quick=True)
def sealed(trial):
    """Manifests with a right hash and numbers that no run wrote"""
    plan = trial.plan()
    trial.train(plan, "--epochs", 2, "--every-steps", 3, "--keep", 9, "--checkpoint", "c")
    middle = next(p for p in sorted((trial.folder / "c").glob("step-*"))
                  if '"position": 3' in (p / "manifest.json").read_text())
    manifest = middle / "manifest.json"
    original = manifest.read_text()
    cases = [(path, value) for path in (("position",), ("epoch",), ("step",), ("seed",), ("data", "steps_per_epoch"),
                                        ("data", "batch"),
                                        ("data", "samples"), ("data", "window"))
             for value in (-1, 5, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 1.5, 1e300, None, "7", [],
                           True)]
    cases += [(("sums",), []), (("totals",), ["nan"] * 99), (("history",), {"names": [], "values": ["0x1p+0"]}),
              (("callbacks",), {"early_stop": ["nan"] * 3}),
              (("callbacks",), {"early_stop": ["0x1p+0", "nan", "0x1p+900"]}), (("sums",), ["0x1p+1"] * 100000)]
    if trial.quick:
        cases = [case for case in cases if case[0] == ("position",)][:10] + cases[-6:-4]
    for path, value in cases:
        text = json.loads(original)
        where = text["state"]
        for key in path[:-1]:
            where = where[key]
        if where.get(path[-1]) == value and type(where.get(path[-1])) is type(value):
            continue
        where[path[-1]] = value
        text.pop("hash")
        manifest.write_text(json.dumps(text, indent=1)[:-len("\n}")]
                            + f',\n"hash": "{"0" * 32}"\n}}\n')  # as the runtime lays it out
        trial.craft("seal", manifest)
        json.loads(manifest.read_text())  # the reader is to judge numbers, not what this script broke
        for more in ([], ["--more-epochs", 1]) if path == ("epoch",) else ([],):
            trial.expect((0, 1, 3), "mtrun", "train", plan, "--data", DATA, "--resume", middle,
                         "--save", "w.safetensors", *more, within=20)
    manifest.write_text(original)


@attack("leftovers", quick=True)
def leftovers(trial):
    """Temporaries of killed runs: none stays, and no number of them stands in the way"""
    plan = trial.plan()
    for i in range(120):
        (trial.folder / f"h.json.mtc-tmp-{i}").write_text("half")
    for i in range(3):
        (trial.folder / f"w.safetensors.mtc-tmp-{i}").symlink_to("/dev/null")
    trial.train(plan, "--epochs", 1, "--history", "h", "--save", "w.safetensors")
    if not (trial.folder / "w.safetensors").is_file() or (trial.folder / "w.safetensors").is_symlink():
        trial.finding("no file where links had the names of its temporaries")
    if (trial.folder / "h.json.mtc-tmp-0").exists():
        trial.finding("a temporary of a run that is gone stays")


@attack("model-path", quick=True)
def model_path(trial):
    """A plan whose model is called ../../../escape or has a newline: no folder outside of runs/"""
    plan, work = trial.plan(), trial.folder / "a" / "b" / "c"
    work.mkdir(parents=True)
    for name in ("../../../escape", "/tmp/attack-escape", "two\nlines", "a/b"):
        trial.craft("plan", plan, "bad.mtp", "model", name)
        trial.run("bash", "-c", f'cd a/b/c && mtrun train {trial.folder}/bad.mtp --data "{DATA}"')
        for found in [*trial.folder.glob("*escape*"), *trial.folder.glob("a/*escape*"),
                      *pathlib.Path("/tmp").glob("attack-escape*"),
                      *work.glob("runs/*\n*"), *work.glob("runs/*/*-[0-9]*-[0-9]*")]:
            trial.finding(f"a model called {name!r} made {found}")
            shutil.rmtree(found)
