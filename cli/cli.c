/* SPDX-License-Identifier: MIT
 *
 * What the subcommands share: the one way to fail, and the flag that SIGINT sets.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

volatile sig_atomic_t cli_interrupted;

int cli_fail(const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *c = text; *c; c++) {
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	}
	fprintf(stderr, "foliage: %s\n", text);
	return 2;
}
