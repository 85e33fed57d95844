/* SPDX-License-Identifier: MIT
 *
 * The command line: one file a subcommand, each a `struct command` in the table of main.c.
 */
#ifndef FOLIAGE_CLI_CLI_H
#define FOLIAGE_CLI_CLI_H

#include <signal.h>
#include <stdio.h>

struct command {
	const char *name, *summary;
	const char *help;                  /* the whole --help text; man pages are made from it */
	int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

extern const struct command command_replay, command_convert, command_info, command_policies,
	command_bench, command_explain, command_tune, command_mrc, command_report, command_top,
	command_record, command_mount, command_stat;

/* Print "foliage: <message>" on stderr, return exit status 2. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "foliage NAME ..." as a shell would take it, without --jobs and --output, on which no result
 * depends; malloc'ed, NULL: no memory. argv[0] is the subcommand. To be asked before
 * options_parse() moves the arguments. */
char *cli_command_line(int argc, char **argv);

/* Set by SIGINT: a long run stops at the next chance, prints what it has and exits 130. */
extern volatile sig_atomic_t cli_interrupted;

#endif
