# SPDX-License-Identifier: MIT
# foliage record --mapped: a program that says which pages of a mapped file it touches; and what collapsing does to the
# distances of an LRU stack.
. "$(dirname "$0")/lib.sh"
if ! command -v valgrind >/dev/null || ! command -v cc >/dev/null; then
	echo "SKIP: no valgrind or no compiler"
	exit 0
fi
if ldd "$foliage" | grep -qE 'lib(asan|tsan)'; then
	echo "SKIP: valgrind and a sanitizer do not go together"
	exit 0
fi
cat >touch.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	int fd = open("mapped", O_RDWR);
	volatile char *p = mmap(NULL, 400 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 100 * 4096);
	volatile char *far = mmap(NULL, 8 * 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
	FILE *out = fopen("wanted", "w");
	unsigned int x = 1;
	static unsigned short order[600];
	unsigned int sum = 0; /* valgrind leaves out loads that nobody uses */
	close(fd);
	for (int i = 0; i < 600; i++) {
		x = x * 1103515245 + 12345;
		order[i] = (x >> 16) % 400;
	}
	for (int i = 0; i < 600; i++) {
		if (i % 7)
			sum += p[order[i] * 4096 + i];
		else
			p[order[i] * 4096 + i] = 1;
	}
	sum += far[7 * 4096];
	munmap((void *)p, 400 * 4096);
	p = mmap((void *)p, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, open("mapped", O_RDONLY), 9 * 4096);
	sum += p[5];
	for (int i = 0; i < 600; i++)
		fprintf(out, "%d %s\n", 100 + order[i], i % 7 ? "load" : "store");
	fprintf(out, "8 load\n9 load\n");
	return fclose(out) + (sum > 12345678);
}
C
cc -O1 -o touch touch.c || complain "cannot compile"
head -c 2097152 /dev/zero >mapped
run 0 record -q --mapped --collapse 1 -o one.foliage -- ./touch
"$foliage" convert --to csv one.foliage - | awk -F, '$4 ~ /\/mapped/ { print $1, $3 }' >got
cmp -s wanted got || complain "touches: $(diff wanted got | head -5)"
"$foliage" convert --to csv one.foliage - | grep -q '"touch\[' || complain "the process has no name"
"$foliage" convert --to csv one.foliage - | grep -q 'exec,.*/touch' || complain "no instruction of the program"

# With a window of 16 pages far fewer records; no distance differs by 16 or more.
run 0 record -q --mapped --collapse 16 -o sixteen.foliage -- ./touch
misses() { # TRACE PAGES
	"$foliage" replay "$1" --policy lru --pages "$2" --format csv |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "misses") c = i } NR == 2 { print $c }'
}
records() { "$foliage" info "$1" | awk '$1 == "requests" { gsub(",", "", $2); print $2 }'; }
[ $((5 * $(records sixteen.foliage))) -lt "$(records one.foliage)" ] || complain "collapsing leaves $(records sixteen.foliage) of $(records one.foliage)"
for pages in 32 64 128; do
	got=$(misses sixteen.foliage $pages)
	[ "$got" -le "$(misses one.foliage $((pages - 16)))" ] && [ "$got" -ge "$(misses one.foliage $((pages + 16)))" ] ||
		complain "misses of $pages pages: $got, not between those of 16 pages more and less"
done
# A command that valgrind cannot run leaves its status.
run 3 record -q --mapped -o exit.foliage -- sh -c 'exit 3'
finish
