/* SPDX-License-Identifier: MIT
 *
 * What the subcommands share: the one way to fail, the command line as a text, and the flag that
 * SIGINT sets.
 */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
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

/* Words of these characters alone mean themselves to every shell. */
static void put_word(FILE *out, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=%+@";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			fputc(*word, out);
	}
	fputc('\'', out);
}

/* How many of the words from words[0] on choose threads or an output, which no result depends on.
 */
static int words_to_skip(const char *const *words, int left)
{
	static const char *const names[] = {"--jobs", "-j", "--output", "-o"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (strncmp(words[0], names[i], n) != 0)
			continue;
		if (!words[0][n])
			return left < 2 ? left : 2;
		if (n == 2 || words[0][n] == '=')
			return 1;
	}
	return 0;
}

char *cli_command_line(int argc, char **argv)
{
	char *text = NULL;
	size_t size;
	bool options = true;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("foliage", out);
	for (int i = 0; i < argc; i++) {
		int skip = options ? words_to_skip((const char *const *)argv + i, argc - i) : 0;

		if (skip) {
			i += skip - 1;
			continue;
		}
		options = options && strcmp(argv[i], "--") != 0;
		fputc(' ', out);
		put_word(out, argv[i]);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}
