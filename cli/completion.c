/* SPDX-License-Identifier: MIT
 *
 * A completion script for bash. What a command takes is read from its help text, in the shapes that
 * help.c reads as well: a line of two blanks and a dash is an option, and a value whose text begins
 * with a list of words ("table, csv or json") is one of those. Names of policies and suites come
 * from their tables, lists of them go on after a comma; everything else is a file.
 */
#include "cli/completion.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "mm/policies.h"
#include "workload/suite.h"

/* Calls `put` for each option that the text describes: its names, "-p, --policy P,...", and what is
 * said of it. */
static void each_option(const char *help,
			void (*put)(FILE *out, const char *head, size_t n, const char *said),
			FILE *out)
{
	for (const char *line = help; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *head = line + 2, *end;

		if (strncmp(line, "  -", 3) != 0)
			continue;
		end = strstr(head, "  ");
		if (!end || end > head + strcspn(head, "\n"))
			end = head + strcspn(head, "\n");
		put(out, head, (size_t)(end - head), end + strspn(end, " "));
	}
}

/* Length of an option's name at `text`, 0: there is none. */
static size_t name_length(const char *text)
{
	size_t n = strspn(text, "-");

	if (n < 1 || n > 2)
		return 0;
	while (isalnum((unsigned char)text[n]) || (n > 2 && text[n] == '-'))
		n++;
	return text[n] == '-' ? 0 : n;
}

static void put_names(FILE *out, const char *head, size_t n, const char *said)
{
	(void)said;
	for (size_t at = 0; at < n;) {
		size_t length = at == 0 || head[at - 1] == ' ' ? name_length(head + at) : 0;

		if (length > 1)
			fprintf(out, " %.*s", (int)length, head + at);
		at += MAX(length, (size_t)1);
	}
}

/* The words of "table, csv or json; more": at least two, joined by commas and "or". */
static size_t choices(const char *said, const char *words[16], size_t lengths[16])
{
	size_t nr = 0;

	while (nr < 16) {
		size_t n = strspn(said, "abcdefghijklmnopqrstuvwxyz-");

		if (!n)
			return 0;
		words[nr] = said;
		lengths[nr++] = n;
		said += n;
		if (!strncmp(said, ", ", 2))
			said += 2;
		else if (!strncmp(said, " or ", 4))
			said += 4;
		else
			return nr > 1 && strchr(";.\n (", *said) ? nr : 0;
	}
	return 0;
}

static void put_choices(FILE *out, const char *head, size_t n, const char *said)
{
	const char *words[16];
	size_t lengths[16], nr = choices(said, words, lengths);

	/* Without a value, "table, csv or json" is a sentence. */
	if (!nr || strcspn(head, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") >= n)
		return;
	fputs("\t\t", out);
	for (size_t at = 0, began = 0; at < n;) {
		size_t length = at == 0 || head[at - 1] == ' ' ? name_length(head + at) : 0;

		if (length > 1)
			fprintf(out, "%s%.*s", began++ ? " | " : "", (int)length, head + at);
		at += MAX(length, (size_t)1);
	}
	fputs(") words='", out);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s%.*s", i ? " " : "", (int)lengths[i], words[i]);
	fputs("' ;;\n", out);
}

static void put_command(FILE *out, const struct command *command)
{
	fprintf(out, "\t%s)\n\t\toptions='--help", command->name);
	each_option(command->help, put_names, out);
	fputs("'\n\t\tcase $before in\n", out);
	each_option(command->help, put_choices, out);
	fputs("\t\tesac\n\t\t;;\n", out);
}

static const char script_start[] =
	"# bash completion for foliage; written by `foliage --completion bash`.\n"
	"_foliage() {\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\tlocal command=${COMP_WORDS[1]} options='' words='' list='' done=''\n"
	"\tlocal commands='";

/* `=` and `:` break words for readline: `--policy=fg` comes as three. */
static const char script_choose[] =
	"'\n"
	"\t[ \"$before\" = '=' ] && before=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\t[ \"$current\" = '=' ] && before=${COMP_WORDS[COMP_CWORD - 1]} && current=''\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$commands help --help --version\" -- \"$current\"))\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase $command in\n"
	"\thelp) words=$commands ;;\n";

static const char script_end[] =
	"\tesac\n"
	"\tcase $before in\n"
	"\t-p | --policy) [[ $options == *' --policy'* ]] && list=$policies ;;\n"
	"\tesac\n"
	"\tif [ -n \"$list\" ]; then\n"
	"\t\t[[ $current == *,* ]] && done=${current%,*},\n"
	"\t\tCOMPREPLY=($(compgen -P \"$done\" -W \"$list\" -- \"${current##*,}\"))\n"
	"\telif [ -n \"$words\" ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
	"\telif [[ $current == -* ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
	"\telif [ \"$command\" = policies ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$policies\" -- \"$current\"))\n"
	"\telif [ \"$command\" = bench ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$suites\" -- \"$current\"))\n"
	"\tfi\n"
	"}\n"
	"complete -o default -F _foliage foliage\n";

void completion_bash(FILE *out, const struct command *const *commands)
{
	fputs(script_start, out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", commands[i]->name);
	fputs("'\n\tlocal policies='", out);
	for (size_t i = 0; foliage_policies[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", foliage_policies[i]->name);
	fputs(" all'\n\tlocal suites='", out);
	for (size_t i = 0; suites[i]; i++)
		fprintf(out, "%s%s", i ? " " : "", suites[i]->name);
	fputs(" all", out);
	fputs(script_choose, out);
	for (size_t i = 0; commands[i]; i++)
		put_command(out, commands[i]);
	fputs(script_end, out);
}
