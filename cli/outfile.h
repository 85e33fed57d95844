/* SPDX-License-Identifier: MIT
 *
 * Output files that are either whole or not there, and standard output whose errors are told.
 */
#ifndef FOLIAGE_CLI_OUTFILE_H
#define FOLIAGE_CLI_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/newfile.h"

struct outfile {
	FILE *stream;
	const char *path; /* NULL or "-": standard output */
	struct newfile file;
};

/* Open a file of a temporary name next to `path`; something there that is not a regular file is
 * written in place. The message names the file. */
int outfile_open(struct outfile *output, const char *path, struct err *err);
/* What was printed has reached the file: a full disk is told before another output is printed. On
 * failure nothing of it stays. */
int outfile_flush(struct outfile *output, struct err *err);
/* Make it whole under its name; on failure nothing of it stays. */
int outfile_commit(struct outfile *output, struct err *err);
void outfile_discard(struct outfile *output);

/* The three of them for a text that is ready. */
int outfile_write(const char *path, const char *text, struct err *err);

/* Whether outfile_open() would work, so that a long run is not for nothing. */
int outfile_check(const char *path, struct err *err);

/* Whether two names are of one file that is there: the same text, or a link to it. */
bool outfile_is_same(const char *a, const char *b);
/* -EINVAL if writing `path` would replace one of `nr` files that are read. */
int outfile_check_inputs(const char *path, size_t nr, char *const *inputs, struct err *err);
/* outfile_check() and outfile_check_inputs() of a command that writes `output` (--output) and, unless it
 * is NULL, `path`, which `option` names; and that these are two. */
int outfile_check_both(const char *option, const char *path, const char *output, size_t nr,
		       char *const *inputs, struct err *err);

#endif
