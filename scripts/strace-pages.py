#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""From `strace -f -y -s 0 -e trace=openat,read,pread64,lseek` to a CSV trace of page reads.

usage: strace-pages.py LOG PATH...

Only files at or below one of the PATHs count. Files and processes are numbered from 1 in order of
first read. A read() moves its descriptor's offset; a pread64() does not.
"""
import re
import sys

CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$")
RESUMED = re.compile(r"^(\d+)\s+<\.\.\. (\w+) resumed>(.*)$")
FD = re.compile(r"^(\d+)<([^>]*)>")


def calls(log):
	"""Whole calls (pid, name, text after the parenthesis), with those that were interrupted put together."""
	pending = {}
	for line in log:
		line = line.rstrip("\n")
		m = RESUMED.match(line)
		if m:
			head = pending.pop(m[1], None)
			if head:
				yield m[1], m[2], head + m[3]
			continue
		m = CALL.match(line)
		if not m:
			continue
		if m[3].endswith("<unfinished ...>"):
			pending[m[1]] = m[3][: -len("<unfinished ...>")]
		else:
			yield m[1], m[2], m[3]


def main():
	roots = sys.argv[2:]
	wanted = {}
	position = {}
	files = {}
	processes = {}

	def counts(path):
		if path not in wanted:
			wanted[path] = any(path == r or path.startswith(r.rstrip("/") + "/") for r in roots)
		return wanted[path]

	print("page,nr,op,file,process")
	with open(sys.argv[1], errors="replace") as log:
		for pid, name, text in calls(log):
			result = text.rsplit("= ", 1)
			if len(result) != 2:
				continue
			if name == "openat":
				m = FD.match(result[1])
				if m:
					position[pid, m[1]] = 0
				continue
			m = FD.match(text)
			if not m or not counts(m[2]):
				continue
			try:
				got = int(result[1].split()[0])
			except ValueError:
				continue
			if name == "lseek":
				position[pid, m[1]] = got
				continue
			if got <= 0:
				continue
			if name == "pread64":
				start = int(result[0].rstrip().rstrip(")").rsplit(",", 1)[1])
			else:
				start = position.get((pid, m[1]), 0)
				position[pid, m[1]] = start + got
			first = start // 4096
			count = (start + got - 1) // 4096 - first + 1
			file = files.setdefault(m[2], len(files) + 1)
			process = processes.setdefault(pid, len(processes) + 1)
			print("%d,%d,read,%d,%d" % (first, count, file, process))


if __name__ == "__main__":
	main()
