/* SPDX-License-Identifier: MIT
 *
 * What every subcommand's command line is made of: options, counts, memory sizes and ranges of
 * sizes. A mistake gives one line that names the option and, for a misspelt word, the nearest right
 * one.
 */
#ifndef FOLIAGE_CLI_OPTIONS_H
#define FOLIAGE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/table.h"

enum option_kind {
	OPTION_FLAG,  /* bool, takes no value */
	OPTION_TEXT,  /* const char * */
	OPTION_COUNT, /* uint64_t */
	OPTION_REAL,  /* double */
};

struct option_spec {
	const char *name; /* without the dashes */
	char letter;      /* of the short form; 0: none */
	enum option_kind kind;
	void *value;
};

/* Parse `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-nVALUE` among operands, `--` ends the
 * options; the value of an option that is given twice is the last one. Operands ("-" is one) are
 * moved to argv[1], argv[2], ... Returns how many there are, or -EINVAL. */
int options_parse(int argc, char **argv, const struct option_spec *specs, size_t nr_specs,
		  struct err *err);

/* A whole text as a number; `what` names it in the message. -EINVAL, -ERANGE. */
int parse_count(const char *text, const char *what, uint64_t *value, struct err *err);
int parse_real(const char *text, const char *what, double *value, struct err *err);

/* "64M", "1G", "4096": bytes, units are powers of 1024. -EINVAL, -ERANGE. */
int parse_bytes(const char *text, const char *what, uint64_t *bytes, struct err *err);

/* The index of `word` among `names` (NULL-terminated), or -EINVAL with a suggestion. */
int parse_choice(const char *word, const char *what, const char *const *names, struct err *err);

/* What several subcommands take alike: --format, --jobs (already a number), and their traces, of
 * which there must be one and only one may be standard input; `command` is for the message. */
int parse_format(const char *text, enum table_format *format, struct err *err);
int check_jobs(uint64_t jobs, struct err *err);
int check_traces(const char *command, int nr, char **traces, struct err *err);

/* ---- sizes of rooms ---- */

struct size_item {
	double value; /* pages, or percent of the unique pages */
	bool percent;
};

struct size_list {
	struct size_item *items;
	size_t nr;
};

/* Append what a text says: comma-separated sizes and ranges `FROM..TO/N`, which are N sizes at
 * equal distances, both ends included. Pages are plain numbers; memory is `64M`, `1G` (powers of
 * 1024) or `10%`. */
int sizes_parse_pages(struct size_list *list, const char *text, struct err *err);
int sizes_parse_memory(struct size_list *list, const char *text, struct err *err);
/* The values of --pages and --memory, either of which may be NULL. */
int sizes_parse(struct size_list *list, const char *pages, const char *memory, struct err *err);
void sizes_free(struct size_list *list);

/* The sizes in pages (rounded down) for a trace of `unique` pages, each once, in the order given.
 * The array is malloc'ed. -EINVAL when one is below FOLIAGE_ROOM_MIN or above what a room can be.
 */
int sizes_resolve(const struct size_list *list, uint64_t unique, uint32_t **pages, size_t *nr,
		  struct err *err);

#endif
