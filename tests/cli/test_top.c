/* SPDX-License-Identifier: MIT
 *
 * foliage top: this program embeds a pool and publishes it; the tool, started as a user would,
 * prints it, draws it on a terminal, and refuses what it must.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/top.h"
#include "foliage/cache.h"

static char out[1 << 20];

/* The tool's exit status; what it wrote to both outputs is in `out`. */
static int run(const char *arguments)
{
	char command[2000];
	size_t n;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s %s 2>&1 </dev/null", FOLIAGE_TOOL, arguments);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(out, 1, sizeof(out) - 1, pipe);
	out[n] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

static void has(const char *words)
{
	if (!strstr(out, words))
		fail_msg("no '%s' in:\n%s", words, out);
}

static void refuses(const char *arguments, const char *words)
{
	assert_int_equal(run(arguments), 2);
	has(words);
	assert_int_equal(strncmp(out, "foliage: ", 9), 0);
	assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
}

/* ---- the program that is watched ---- */

struct program {
	struct foliage_pool *pool;
	struct foliage_segment *segment;
	struct foliage_segment_values values;
	char label[64];
};

static void fetch(struct program *p, uint64_t index)
{
	int kind = foliage_pool_kind(p->pool, 4096, 0);
	struct foliage_page *page;

	assert_true(foliage_pool_fetch(p->pool, 1, index, kind, FOLIAGE_FETCH_CREATE, &page) >= 0);
	foliage_pool_unpin(p->pool, page, 0);
}

/* 900 hits and 100 misses, and what a pool does not know itself. */
static int start(void **state)
{
	const struct foliage_pool_options pool = {.bytes = 8 << 20};
	struct program *p = calloc(1, sizeof(*p));
	struct foliage_segment_options options = {.program = "watched", .policy = "fg"};
	struct foliage_segment_values *v;

	assert_non_null(p);
	snprintf(p->label, sizeof(p->label), "test of top %d", (int)getpid());
	options.label = p->label;
	assert_int_equal(foliage_pool_create(&pool, &p->pool, NULL, 0), 0);
	assert_int_equal(foliage_segment_create(&options, &p->segment), 0);
	for (uint64_t i = 0; i < 1000; i++)
		fetch(p, i % 100);
	v = &p->values;
	assert_int_equal(foliage_segment_fill_pool(p->pool, v), 0);
	v->file = (struct foliage_segment_lists){FOLIAGE_SEGMENT_GENERATIONS, 5, 7, {40, 0, 60}};
	v->anon.order = FOLIAGE_SEGMENT_UNKNOWN;
	v->nr_groups = 2;
	snprintf(v->groups[0].name, sizeof(v->groups[0].name), "/");
	v->groups[0].max = UINT64_MAX;
	snprintf(v->groups[1].name, sizeof(v->groups[1].name), "/evil\"\n\033[2J");
	v->groups[1].max = 1 << 20;
	v->groups[1].hits = 30;
	v->groups[1].misses = 10;
	v->pressure.some_avg[0] = 1234;
	assert_int_equal(foliage_segment_update(p->segment, v), 0);
	*state = p;
	return 0;
}

static int stop(void **state)
{
	struct program *p = *state;

	foliage_segment_destroy(p->segment);
	foliage_pool_destroy(p->pool);
	free(p);
	return 0;
}

static void once(struct program *p, const char *more)
{
	char arguments[200];

	snprintf(arguments, sizeof(arguments), "top --once '%s' %s", p->label, more);
	assert_int_equal(run(arguments), 0);
}

/* ---- printing ---- */

static void test_list(void **state)
{
	struct program *p = *state;

	assert_int_equal(run("top"), 0);
	has("watched");
	has(p->label);
	assert_int_equal(run("top --format csv"), 0);
	has("segment,program,pid,state,policy,label\n");
	has(",running,fg,");
}

static void test_table(void **state)
{
	once(*state, "--interval 0");
	has("watched, process ");
	has("policy fg");
	has("90.00 %");
	has("generation 5");
	has("/evil\"??[2J");
}

static void test_json(void **state)
{
	FILE *python;
	int status;

	once(*state, "--interval 0 --format json");
	has("\"hits\": 900, \"hits_per_s\": null");
	has("\"misses\": 100, ");
	has("\"hit_ratio_in_all\": 0.900000");
	has("\"file\": {\"kind\": \"generations\", \"min_seq\": 5, \"max_seq\": 7, \"pages\": [40, "
	    "0, 60]}");
	has("\"anon\": null");
	has("\"some_avg10\": 12.34");
	has("\"max\": null, \"hits\": null");
	has("\"max\": 1048576, \"hits\": 30");
	python = popen("python3 -c 'import json, sys; d = json.load(sys.stdin); "
		       "sys.exit(d[\"groups\"][1][\"name\"] != \"/evil\\\"\\n\\x1b[2J\")'",
		       "w");
	assert_non_null(python);
	fputs(out, python);
	status = pclose(python);
	if (WEXITSTATUS(status) == 127)
		print_message("SKIP: no python3 to read the json\n");
	else
		assert_int_equal(status, 0);
}

static void test_csv(void **state)
{
	once(*state, "--interval 0 --format csv");
	has("segment,group,bytes,max,hits,misses,refaults,evictions,hit_ratio,hits_per_s,misses_"
	    "per_s,refaults_per_s,stall_some_ns,stall_full_ns\n");
	has(",*,");
	has(",8388608,900,100,0,0,0.900000,,,,0,0\n");
	has(",/,409600,,,,0,0,,,,,0,0\n");
}

/* Rates are those of the updates, not of the time that the reader took. */
static void test_rates(void **state)
{
	struct program *p = *state;
	static struct top_view view;

	view.before = view.now = p->values;
	view.seconds = 2;
	view.now.hits += 300;
	view.now.misses += 100;
	assert_true(top_rate(&view, view.before.hits, view.now.hits) == 150);
	assert_true(top_hit_ratio(300, 100) == 0.75);
	/* A counter that went back, as of a program that began again: no rate. */
	assert_true(top_rate(&view, 5, 4) != top_rate(&view, 5, 4));
	view.seconds = 0;
	assert_true(top_rate(&view, 4, 5) != top_rate(&view, 4, 5));
}

static int grow(void *ctx, struct foliage_segment_values *values)
{
	struct program *p = ctx;

	p->values.hits += 1000;
	*values = p->values;
	return 0;
}

static void test_live_rates(void **state)
{
	struct program *p = *state;
	const char *rate;

	assert_int_equal(foliage_segment_start(p->segment, 10, grow, p), 0);
	once(p, "--interval 0.1 --format json");
	rate = strstr(out, "\"hits_per_s\": ");
	assert_non_null(rate);
	assert_true(atof(rate + strlen("\"hits_per_s\": ")) > 0);
	assert_null(strstr(out, "\"interval_s\": null"));
}

static void test_refusals(void **state)
{
	struct program *p = *state;
	char arguments[200];

	refuses("top /no/such/mount", "/no/such/mount: no program publishes statistics");
	refuses("top 1 2", "one target at a time");
	refuses("top --once --interval -1 1", "--interval: must be between 0 and 3600");
	refuses("top --interval 0 1", "--interval: must be between 0.1 and 3600");
	refuses("top --format xml", "--format");
	refuses("top --format json 1", "add --once");
	refuses("top --clean 1", "--clean");
	snprintf(arguments, sizeof(arguments), "top '%s'", p->label);
	refuses(arguments, top_screen_version() ? "no terminal" : "built without ncurses");
}

static int nap(void *ctx, struct foliage_segment_values *values)
{
	(void)ctx;
	(void)values;
	return 1;
}

static void test_ended(void **state)
{
	int ends[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		const struct foliage_segment_options options = {.label = "an ended program"};
		struct foliage_segment *s;

		if (foliage_segment_create(&options, &s) ||
		    foliage_segment_start(s, 1000, nap, NULL) || write(ends[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	{
		char arguments[100];

		snprintf(arguments, sizeof(arguments), "top --once foliage.%d.0", (int)pid);
		assert_int_equal(run(arguments), 0);
		has("THE PROCESS HAS ENDED");
		assert_int_equal(run("top 'an ended program' --once"), 2);
		assert_int_equal(run("top"), 0);
		has("ended");
		assert_int_equal(run("top --clean"), 0);
		has("removed: ");
		assert_int_equal(run(arguments), 2);
	}
	close(ends[0]);
	close(ends[1]);
}

/* ---- the screen ---- */

/* Read from the terminal until it has shown `words`, for 20 seconds at most. */
static void wait_for(int terminal, const char *words)
{
	struct timespec begin, now;
	size_t used = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		struct pollfd p = {.fd = terminal, .events = POLLIN};
		ssize_t n;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec - begin.tv_sec > 20)
			fail_msg("the screen does not show '%s': %s", words, out);
		if (poll(&p, 1, 100) <= 0)
			continue;
		n = read(terminal, out + used, sizeof(out) - 1 - used);
		if (n <= 0)
			fail_msg("the screen ended without '%s': %s", words, out);
		used += (size_t)n;
		out[used] = '\0';
		if (strstr(out, words))
			return;
	}
}

static pid_t open_screen(struct program *p, int *terminal)
{
	const struct winsize size = {.ws_row = 40, .ws_col = 100};
	pid_t pid = forkpty(terminal, NULL, NULL, &size);

	assert_true(pid >= 0);
	if (!pid) {
		setenv("TERM", "xterm", 1);
		execl(FOLIAGE_TOOL, "foliage", "top", "-i", "0.1", p->label, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static int close_screen(int terminal, pid_t pid)
{
	int status;
	char rest[4096];

	/* Its last words must be read, or it waits for that. */
	while (read(terminal, rest, sizeof(rest)) > 0)
		;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(terminal);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_screen(void **state)
{
	struct program *p = *state;
	int terminal;
	pid_t pid;

	if (!top_screen_version()) {
		print_message("SKIP: built without ncurses\n");
		return;
	}
	pid = open_screen(p, &terminal);
	wait_for(terminal, "q leaves");
	has("policy fg");
	has("generation 7");
	/* What changes is drawn. */
	p->values.pages = 7654321;
	foliage_segment_update(p->segment, &p->values);
	wait_for(terminal, "7,654,321");
	assert_int_equal(write(terminal, "q", 1), 1);
	assert_int_equal(close_screen(terminal, pid), 0);

	pid = open_screen(p, &terminal);
	wait_for(terminal, "q leaves");
	kill(pid, SIGINT);
	assert_int_equal(close_screen(terminal, pid), 130);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_list, start, stop),
		cmocka_unit_test_setup_teardown(test_table, start, stop),
		cmocka_unit_test_setup_teardown(test_json, start, stop),
		cmocka_unit_test_setup_teardown(test_csv, start, stop),
		cmocka_unit_test_setup_teardown(test_rates, start, stop),
		cmocka_unit_test_setup_teardown(test_live_rates, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals, start, stop),
		cmocka_unit_test(test_ended),
		cmocka_unit_test_setup_teardown(test_screen, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
