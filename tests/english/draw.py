#!/usr/bin/env python3
"""Draws random comment lines of the repository, each with the lines around it, for somebody who has not seen the code.

    just comments [COUNT] [SEED]      70 lines by default; without a seed, a new one

Read each marked line once, with its neighbours. Rewrite those that you had to read twice: at most 3 of 70 should be.
"""

import random
import re
import subprocess
import sys

PATTERNS = {
    "rs": re.compile(r"^\s*(///|//!|//)\s?(.*)"),
    "sh": re.compile(r"^\s*(#)(?!!)\s?(.*)"),
    "py": re.compile(r"^\s*(#)(?!!)\s?(.*)"),
    "js": re.compile(r"^\s*(//|/\*\*?|\*)\s?(.*)"),
    "mjs": re.compile(r"^\s*(//|/\*\*?|\*)\s?(.*)"),
}
AROUND = 4


def comments():
    """Yields the file, the number and all lines of each comment line with at least three words."""
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in files:
        pattern = PATTERNS.get(name.rsplit(".", 1)[-1])
        if not pattern or name.startswith("docs/seeds"):
            continue
        lines = open(name, encoding="utf-8").read().split("\n")
        for number, line in enumerate(lines):
            found = pattern.match(line)
            if found and len(found.group(2).split()) >= 3:
                yield name, number, lines


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 70
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1_000_000)
    found = list(comments())
    print(f"{count} of {len(found)} comment lines, seed {seed}\n")
    for place, (name, number, lines) in enumerate(random.Random(seed).sample(found, count), 1):
        print(f"--- {place}. {name}:{number + 1}")
        for at in range(max(0, number - AROUND), min(len(lines), number + AROUND + 1)):
            print(f"{'>>' if at == number else '  '} {lines[at]}")
        print()


if __name__ == "__main__":
    main()
