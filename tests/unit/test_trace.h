/* SPDX-License-Identifier: MIT
 *
 * What the tests of trace/ share: traces from memory, whole, as an array.
 */
#ifndef FOLIAGE_TESTS_TEST_TRACE_H
#define FOLIAGE_TESTS_TEST_TRACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "trace/trace.h"

/* Read all of it; returns how many records, or a negative errno with *err filled. `records` is
 * malloc'ed. */
static inline ssize_t slurp(struct trace *trace, struct trace_record **records, size_t batch,
			    struct err *err)
{
	size_t n = 0, room = 64;
	struct trace_record *all = malloc(room * sizeof(*all));
	ssize_t got;

	assert_non_null(all);
	for (;;) {
		if (room < n + batch) {
			room = 2 * (n + batch);
			all = realloc(all, room * sizeof(*all));
			assert_non_null(all);
		}
		got = trace_read(trace, all + n, batch, err);
		if (got <= 0)
			break;
		assert_true((size_t)got <= batch);
		n += (size_t)got;
	}
	if (got < 0) {
		free(all);
		*records = NULL;
		return got;
	}
	*records = all;
	return (ssize_t)n;
}

static inline ssize_t slurp_memory(const void *data, size_t bytes, const char *name,
				   const struct trace_options *options,
				   struct trace_record **records, struct err *err)
{
	struct trace *trace;
	ssize_t n = trace_open_memory(data, bytes, name, options, &trace, err);

	*records = NULL;
	if (n)
		return n;
	n = slurp(trace, records, 3, err);
	trace_close(trace);
	return n;
}

/* The path of a shared trace; skips the test, loudly, when the traces are not there. */
static inline const char *shared_trace(const char *name)
{
	static char path[4096];
	const char *root = getenv("FOLIAGE_SHARED");
	FILE *file;

	if (root)
		snprintf(path, sizeof(path), "%s/traces/%s", root, name);
	else
		snprintf(path, sizeof(path), "%s/../shared/traces/%s", FOLIAGE_SOURCE_DIR, name);
	file = fopen(path, "re");
	if (!file) {
		printf("SKIP: no shared trace %s (set FOLIAGE_SHARED)\n", path);
		skip();
	}
	fclose(file);
	return path;
}

#endif
