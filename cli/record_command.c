/* SPDX-License-Identifier: MIT
 *
 * Starting: fork, wait for a byte, exec. The second pipe closes by itself when exec works, and
 * brings an errno when it does not.
 */
#include "cli/record_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EACCES;
	return access(path, X_OK) ? -errno : 0;
}

/* The folders of PATH, as execvp goes through them: one that cannot be looked into has nothing. */
static int search(const char *name)
{
	const char *path = getenv("PATH");
	int found = -ENOENT;

	if (!path)
		path = "/bin:/usr/bin";
	while (*path && found) {
		size_t n = strcspn(path, ":");
		char *full;
		int code;

		if (asprintf(&full, "%.*s/%s", n ? (int)n : 1, n ? path : ".", name) < 0)
			return -ENOMEM;
		code = access(full, F_OK) ? -ENOENT : executable(full);
		free(full);
		if (code != -ENOENT)
			found = code;
		path += n + (path[n] == ':');
	}
	return found;
}

int record_command_check(const char *name, struct err *err)
{
	int code = -ENOENT;

	if (*name)
		code = strchr(name, '/') ? executable(name) : search(name);
	return code ? err_set(err, code, "%s: %s", name, strerror(-code)) : 0;
}

static void prepare_environment(const struct record_command *c)
{
	const char *before = getenv("LD_PRELOAD");
	char *value;

	if (c->environment)
		putenv((char *)c->environment);
	if (!c->preload)
		return;
	if (!before || !*before)
		setenv("LD_PRELOAD", c->preload, 1);
	else if (asprintf(&value, "%s:%s", c->preload, before) >= 0)
		setenv("LD_PRELOAD", value, 1);
}

static __attribute__((noreturn)) void run_child(const struct record_command *c, int go, int failed)
{
	char byte;
	int code;

	if (read(go, &byte, 1) != 1)
		_exit(127);
	prepare_environment(c);
	if (c->keep)
		fcntl(c->keep, F_SETFD, 0);
	execvp(c->argv[0], c->argv);
	code = errno;
	if (write(failed, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

int record_command_start(struct record_command *c, struct err *err)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC))
		return err_set(err, -errno, "a pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		int code = -errno;

		close(go[0]);
		close(go[1]);
		return err_set(err, code, "a pipe: %s", strerror(-code));
	}
	fflush(NULL);
	c->pid = fork();
	if (!c->pid) {
		/* Our end of it would keep the child waiting for ever if we died. */
		close(go[1]);
		run_child(c, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	c->go = go[1];
	c->failed = failed[0];
	if (c->pid > 0)
		return 0;
	c->pid = 0;
	close(c->go);
	close(c->failed);
	return err_set(err, -errno, "a process: %s", strerror(errno));
}

int record_command_go(struct record_command *c, struct err *err)
{
	ssize_t n = write(c->go, "", 1);
	int code = 0;

	close(c->go);
	while (n == 1 && (n = read(c->failed, &code, sizeof(code))) < 0 && errno == EINTR)
		n = 1;
	close(c->failed);
	c->go = 0;
	if (n == (ssize_t)sizeof(code))
		return err_set(err, -code, "%s: %s", c->name ? c->name : c->argv[0],
			       strerror(code));
	return n < 0 ? err_set(err, -EPIPE, "%s: cannot be started", c->argv[0]) : 0;
}

bool record_command_ended(struct record_command *c)
{
	if (c->pid && !c->ended)
		c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
	return c->ended;
}

void record_command_stop(struct record_command *c)
{
	if (!c->pid || record_command_ended(c))
		return;
	if (c->go) {
		close(c->go);
		close(c->failed);
	} else {
		kill(c->pid, SIGTERM);
	}
	while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
		;
	c->ended = true;
}

int record_command_status(const struct record_command *c)
{
	if (!c->ended)
		return 0;
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}
