/* SPDX-License-Identifier: MIT
 *
 * What bench/record.sh records in the hardest case: a program that does nothing but read cached
 * pages, 4 KiB a call. Prints reads a second.
 *
 * usage: bench_record_reads FILE READS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"

enum { PAGE = 4096 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long reads = argc == 3 ? atol(argv[2]) : 0;
	int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
	static char page[PAGE];
	uint64_t rng = 1;
	double start;
	off_t pages;

	if (fd < 0 || reads <= 0) {
		fprintf(stderr, "usage: bench_record_reads FILE READS\n");
		return 2;
	}
	pages = lseek(fd, 0, SEEK_END) / PAGE;
	start = now();
	for (long i = 0; i < reads; i++) {
		off_t at = (off_t)splitmix64_below(&rng, (uint32_t)pages) * PAGE;

		if (pread(fd, page, PAGE, at) != PAGE)
			return 1;
	}
	printf("%.0f\n", (double)reads / (now() - start));
	return 0;
}
