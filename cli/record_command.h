/* SPDX-License-Identifier: MIT
 *
 * The command that `foliage record` observes: started as a process that waits, so that whoever
 * observes it can learn its number first.
 */
#ifndef FOLIAGE_CLI_RECORD_COMMAND_H
#define FOLIAGE_CLI_RECORD_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct record_command {
	/* Set before the start: */
	char **argv;             /* NULL-terminated */
	const char *name;        /* for messages, when argv is a wrapper around it; NULL: argv[0] */
	const char *environment; /* one more NAME=VALUE, NULL: none */
	const char *preload;     /* goes in front of LD_PRELOAD, NULL: none */
	int keep;                /* a descriptor that the command inherits, 0: none */
	/* By the functions below: */
	pid_t pid;      /* 0: there is none */
	int go, failed; /* pipes: to release it; from it, why it could not be executed */
	bool ended;
	int status; /* of waitpid */
};

/* Whether a command can be found and executed. -ENOENT, -EACCES with a message. */
int record_command_check(const char *name, struct err *err);
/* A process that waits. */
int record_command_start(struct record_command *c, struct err *err);
/* Let it run; the error is that of executing it. */
int record_command_go(struct record_command *c, struct err *err);
bool record_command_ended(struct record_command *c);
/* Ask it to end (SIGTERM) if it has not, and wait until it has. One that never went is killed. */
void record_command_stop(struct record_command *c);
/* As a shell would report it; 0 without a command. */
int record_command_status(const struct record_command *c);

#endif
