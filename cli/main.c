/* SPDX-License-Identifier: MIT
 *
 * The tool: finds the subcommand, answers for help, version and manual pages, and keeps the
 * promises that hold for every subcommand: one SIGINT asks a long run to stop and print what it
 * has, a second one kills; a closed pipe ends the tool silently; an output that cannot be written
 * is an error.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/completion.h"
#include "cli/help.h"

static const struct command *const commands[] = {
	&command_replay,   &command_explain,
	&command_policies, &command_info,
	&command_convert,  &command_bench,
	&command_record,   &command_mrc,
	&command_report,   &command_tune,
	&command_mount,    &command_stat,
	&command_top,      NULL,
};

static void on_interrupt(int number)
{
	(void)number;
	if (cli_interrupted)
		_exit(130);
	cli_interrupted = 1;
}

static void set_signals(void)
{
	struct sigaction interrupt = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	struct sigaction now;

	/* A shell starts background jobs with SIGINT ignored, and they are to keep it so. */
	if (!sigaction(SIGINT, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaction(SIGINT, &interrupt, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; commands[i]; i++) {
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	}
	return NULL;
}

static int unknown(const char *name)
{
	static const char *const others[] = {"help", "--help", "--version"};
	struct nearest nearest;

	nearest_start(&nearest, name);
	for (size_t i = 0; commands[i]; i++)
		nearest_try(&nearest, commands[i]->name);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		nearest_try(&nearest, others[i]);
	if (nearest.best)
		return cli_fail("unknown command '%s', did you mean '%s'?", name, nearest.best);
	return cli_fail("unknown command '%s' (foliage help lists them)", name);
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	}
	return false;
}

static int help(const char *name)
{
	const struct command *command = name ? find(name) : NULL;

	if (name && !command)
		return unknown(name);
	if (command)
		fputs(command->help, stdout);
	else
		help_print(stdout, commands);
	return 0;
}

static int man(const char *option, const char *value)
{
	struct err err = {""};

	if (strcmp(option, "--man") != 0) {
		if (!value)
			return cli_fail("--man-all needs a folder");
		return help_man_all(value, commands, &err) ? cli_fail("%s", err.text) : 0;
	}
	if (value && !find(value))
		return unknown(value);
	help_man(stdout, commands, value ? find(value) : NULL);
	return 0;
}

static int run(int argc, char **argv)
{
	const char *name = argv[1];
	const struct command *command;

	if (argc < 2) {
		help_print(stderr, commands);
		return 2;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		help_version(stdout);
		return 0;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help"))
		return help(argv[2]);
	if (!strcmp(name, "--man") || !strcmp(name, "--man-all"))
		return man(name, argv[2]);
	if (!strcmp(name, "--completion")) {
		if (argc < 3 || strcmp(argv[2], "bash") != 0)
			return cli_fail("--completion: only bash is known");
		completion_bash(stdout, commands);
		return 0;
	}
	command = find(name);
	if (!command)
		return unknown(name);
	if (wants_help(argc - 1, argv + 1))
		return help(name);
	return command->run(argc - 1, argv + 1);
}

/* Full disks show up as late as here. A failure that was told already is not told again. */
static int finish(int status)
{
	bool failed;

	errno = 0;
	failed = ferror(stdout) != 0;
	failed |= fclose(stdout) != 0;
	if (!failed || status == 2)
		return status;
	return cli_fail("standard output: %s", strerror(errno ? errno : EIO));
}

int main(int argc, char **argv)
{
	set_signals();
	return finish(run(argc, argv));
}
