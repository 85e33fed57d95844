/* SPDX-License-Identifier: MIT
 *
 * A suite: something that others measured, run again here, with both numbers side by side.
 *
 * A suite is a set of independent tasks. The caller opens it, runs the tasks in any order and on
 * any number of threads, and then asks for the rows, whose order and content do not depend on
 * either. After an interruption the rows of what has been measured are there.
 */
#ifndef FOLIAGE_WORKLOAD_SUITE_H
#define FOLIAGE_WORKLOAD_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A free parameter of a workload: a number that the published text leaves open and that another
 * author could have chosen otherwise. Sizes that set how long a run takes, and numbers that are
 * published, are none. `foliage bench --set NAME=VALUE` replaces one, `--sensitivity` halves and
 * doubles each. */
struct suite_param {
	const char *name; /* lower_case, with the unit: get_ns, hot_pages */
	double value;     /* by default */
	double min, max;  /* halving and doubling stop there; max 0: no bound */
	const char *source;
};

struct suite_options {
	const struct suite *suite; /* that is opened with these */
	const char *policies;      /* NULL: the suite's own */
	const double *params;      /* of the suite's free parameters; NULL: the defaults */
	const double *thetas;
	size_t nr_thetas;   /* 0: all */
	uint32_t memory;    /* of a suite that is made of a trace: pages, 0: its own choice */
	double memory_part; /* or as a part of what the trace touches, 0: as above */
	bool full, demo;
	bool lenient; /* several suites run: what one of them cannot run is left out, with a note */
	bool check_scale;      /* run at full length, and say what the default would have said */
	bool timing;           /* also rows that differ from run to run */
	unsigned int runs;     /* at least 1 */
	bool (*stopped)(void); /* NULL: never; asked often */
};

struct suite_row {
	const char *suite;
	char case_name[48];
	char metric[40];
	char policy[192];
	double published, measured;
	bool has_published;
	bool detail;  /* for programs; people get the sum */
	int decimals; /* for people */
};

/* What a suite has to say: rows, and lines that explain them. */
struct suite_report {
	struct suite_row *rows;
	size_t nr_rows, max_rows;
	char **notes;
	size_t nr_notes;
};

enum { SUITE_PARAMS = 24 }; /* most of a suite */

struct suite {
	const char *name, *summary;
	const struct suite_param *params;
	size_t nr_params;
	int (*open)(const struct suite_options *options, void **state, struct err *err);
	size_t (*tasks)(const void *state);
	/* Distinct tasks may run at once. -EINTR when stopped. */
	int (*run)(void *state, size_t task, struct err *err);
	int (*report)(const void *state, struct suite_report *report);
	void (*close)(void *state);
	const void *data; /* the suite's own */
};

extern const struct suite suite_fio_read, suite_fio_mmap, suite_fio_mmap_random,
	suite_fio_mmap_ahead, suite_fio_tight, suite_sqlite_grep, suite_leveldb_scan_get,
	suite_valkey, suite_kernel_612, suite_kernel_newer, suite_noio, suite_cassandra,
	suite_kbuild, suite_kbuild_memcg, suite_ycsb_b, suite_android, suite_android_global,
	suite_chromium_node, suite_mysql_like, suite_real_sqlite_grep, suite_real_kbuild;

/* All suites; ends with NULL. */
extern const struct suite *const suites[];

/* A row to fill, zeroed; NULL when memory is short. Valid until the next one. */
struct suite_row *suite_report_row(struct suite_report *report);
int suite_report_note(struct suite_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void suite_report_free(struct suite_report *report);

/* measured / published - 1; false when there is nothing to compare with. */
bool suite_row_deviation(const struct suite_row *row, double *deviation);

/* The value of the suite's free parameter number `which` in this run. */
double suite_param(const struct suite *suite, const struct suite_options *options, size_t which);
/* Whether `theta` is among those asked for. */
bool suite_wants_theta(const struct suite_options *options, double theta);
bool suite_stopped(const struct suite_options *options);

#endif
