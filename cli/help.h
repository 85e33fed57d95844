/* SPDX-License-Identifier: MIT
 *
 * Help, version and manual pages, all made from the table of commands.
 */
#ifndef FOLIAGE_CLI_HELP_H
#define FOLIAGE_CLI_HELP_H

#include <stdio.h>

#include "base/err.h"
#include "cli/cli.h"

/* `commands` ends with NULL. */
void help_version(FILE *out);
void help_print(FILE *out, const struct command *const *commands);
/* Manual page foliage(1), or of one command. */
void help_man(FILE *out, const struct command *const *commands, const struct command *command);
/* All of them, as files foliage.1, foliage-CMD.1 in an existing folder. */
int help_man_all(const char *folder, const struct command *const *commands, struct err *err);

#endif
