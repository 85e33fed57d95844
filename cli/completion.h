/* SPDX-License-Identifier: MIT
 *
 * Completion for shells, made from the table of commands and their help texts.
 */
#ifndef FOLIAGE_CLI_COMPLETION_H
#define FOLIAGE_CLI_COMPLETION_H

#include <stdio.h>

#include "cli/cli.h"

/* A script for bash; `commands` ends with NULL. */
void completion_bash(FILE *out, const struct command *const *commands);

#endif
