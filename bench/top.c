/* SPDX-License-Identifier: MIT
 *
 * What being watched costs: a program that embeds the pool, as fast as it can go, alone but for a
 * thread that sleeps (the C library's mutexes are cheaper in a process that never had a second
 * thread); publishing its statistics twice a second; and publishing them while `foliage top` reads
 * them ten times a second.
 *
 * Skewed accesses with room for a quarter of the pages, so that hits, misses and reclaim all take
 * part. The three take turns; CPU time of the thread that works, the best of the rounds and the sum
 * of them.
 *
 * usage: bench_top FOLIAGE
 */
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "foliage/cache.h"
#include "foliage/segment.h"

enum { PAGE = 512, PAGES = 65536, ACCESSES = 3000000, ROUNDS = 8 };

enum way { ALONE, PUBLISHING, WATCHED, WAYS };

static const char *const ways[WAYS] = {"alone", "publishing", "watched"};

static void die(const char *what)
{
	fprintf(stderr, "bench_top: %s\n", what);
	exit(2);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct foliage_pool *open_pool(void)
{
	const struct foliage_pool_options options = {
		.bytes = (PAGES / 4) * (PAGE + 192) + (4 << 20),
		.page_bytes = PAGE,
		.max_pages = PAGES / 4,
	};
	struct foliage_pool *pool;
	char message[200];

	if (foliage_pool_create(&options, &pool, message, sizeof(message)))
		die(message);
	return pool;
}

static double work(struct foliage_pool *pool)
{
	int kind = foliage_pool_kind(pool, PAGE, 0);
	uint64_t seed = 1;
	double begin = cpu_seconds();

	for (int i = 0; i < ACCESSES; i++) {
		double u = splitmix64_unit(&seed);
		uint64_t index = (uint64_t)(u * u * u * PAGES);
		struct foliage_page *page;

		if (foliage_pool_fetch(pool, 1, index, kind, FOLIAGE_FETCH_CREATE, &page) < 0)
			die("no page");
		foliage_pool_unpin(pool, page, 0);
	}
	return cpu_seconds() - begin;
}

/* `top` on a terminal that nobody looks at, but that is emptied. */
static pid_t start_top(const char *foliage, int *terminal)
{
	char target[32];
	pid_t pid, drain;

	snprintf(target, sizeof(target), "%d", (int)getpid());
	pid = forkpty(terminal, NULL, NULL, NULL);
	if (pid < 0)
		die("no terminal");
	if (!pid) {
		setenv("TERM", "xterm", 1);
		execl(foliage, "foliage", "top", "-i", "0.1", target, (char *)NULL);
		_exit(127);
	}
	drain = fork();
	if (!drain) {
		char screen[65536];

		while (read(*terminal, screen, sizeof(screen)) > 0)
			;
		_exit(0);
	}
	usleep(300000); /* until it is there */
	if (waitpid(pid, NULL, WNOHANG))
		die("foliage top ended at once");
	return pid;
}

static int publish_nothing(void *ctx, struct foliage_segment_values *values)
{
	(void)ctx;
	(void)values;
	return 1;
}

static double round_of(int way, const char *foliage)
{
	struct foliage_pool *pool = open_pool();
	const struct foliage_segment_options options = {.program = "bench_top"};
	struct foliage_segment *segment = NULL;
	int terminal = -1;
	pid_t top = 0;
	double seconds;

	if (foliage_segment_create(&options, &segment))
		die("no segment");
	if (way == ALONE && foliage_segment_start(segment, 60000, publish_nothing, NULL))
		die("no thread");
	if (way >= PUBLISHING && foliage_segment_start_pool(segment, pool, 500))
		die("no thread");
	if (way == WATCHED)
		top = start_top(foliage, &terminal);
	seconds = work(pool);
	if (top) {
		kill(top, SIGINT);
		waitpid(top, NULL, 0);
		close(terminal);
		waitpid(-1, NULL, 0);
	}
	foliage_segment_destroy(segment);
	foliage_pool_destroy(pool);
	return seconds;
}

int main(int argc, char **argv)
{
	double best[WAYS] = {0}, sum[WAYS] = {0};

	if (argc != 2)
		die("usage: bench_top FOLIAGE");
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < WAYS; i++) {
			int way = (i + round) % WAYS; /* nobody is always first */
			double seconds = round_of(way, argv[1]);

			if (!round || seconds < best[way])
				best[way] = seconds;
			sum[way] += seconds;
		}
	}
	printf("%-12s %14s %12s %12s\n", "", "ns an access", "best, ratio", "mean, ratio");
	for (int way = 0; way < WAYS; way++)
		printf("%-12s %14.2f %12.4f %12.4f\n", ways[way], 1e9 * best[way] / ACCESSES,
		       best[way] / best[ALONE], sum[way] / sum[ALONE]);
	return 0;
}
