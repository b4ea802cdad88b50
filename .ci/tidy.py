"""Runs clang-tidy over the sources of a build folder, skipping what has not changed.

A source is checked again only if its text, a project header that it includes, its compile command or
.clang-tidy has changed since it last passed: BUILD/tidy holds an empty file named by their hash.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

FOLDERS = ("generator/", "runtime/", "cli/", "templates/", "tests/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def closure(root, path, seen):
    """Adds `path` and the project headers it includes, directly or not, to `seen`."""
    if path in seen:
        return
    seen.add(path)
    for name in INCLUDE.findall((root / path).read_text()):
        for candidate in (name, f"templates/device/common/{name}"):
            if (root / candidate).is_file():
                closure(root, candidate, seen)


def key_of(root, entry, path):
    digest = hashlib.sha256((root / ".clang-tidy").read_bytes())
    digest.update(re.sub(r" -o .*", "", entry["command"]).replace(str(root), "").encode())
    files = set()
    closure(root, path, files)
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--clang-tidy", default="clang-tidy-19")
    args = parser.parse_args()

    root = pathlib.Path(__file__).resolve().parent.parent
    build = args.build.resolve()
    passed = build / "tidy"
    passed.mkdir(exist_ok=True)

    wanted = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(entry["file"], root)
        if path.startswith(FOLDERS):
            wanted[path] = key_of(root, entry, path)
    stale = sorted(path for path, key in wanted.items() if not (passed / key).exists())
    print(f"clang-tidy: {len(stale)} of {len(wanted)} sources to check", flush=True)

    def check(path):
        # -w: the compiler of the build has given its own warnings already.
        command = [args.clang_tidy, "--quiet", "--extra-arg=-w", "--extra-arg=-ferror-limit=5",
                   "-p", str(build), str(root / path)]
        return path, subprocess.run(command, capture_output=True, text=True, check=False)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for number, future in enumerate(
            concurrent.futures.as_completed([pool.submit(check, path) for path in stale]), 1
        ):
            path, result = future.result()
            if result.returncode == 0:
                (passed / wanted[path]).touch()
                print(f"[{number}/{len(stale)}] {path}", flush=True)
            else:
                failed += 1
                # Not the other stream: it only counts the warnings of foreign headers.
                print(f"[{number}/{len(stale)}] {path}: refused\n{result.stdout or result.stderr}",
                      flush=True)
    for key in set(os.listdir(passed)) - set(wanted.values()):
        (passed / key).unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
