/* SPDX-License-Identifier: MIT
 *
 * foliage mount: a directory at another place, its files' contents in a page cache of our own.
 *
 * In the background the process that answers is a child, made before anything else because nothing
 * of a cache survives fork(). The parent waits for one message through a pipe: empty when the mount
 * can be used, otherwise the reason why not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "adapters/fuse/mount.h"
#include "base/bits.h"
#include "cli/cli.h"
#include "cli/mount.h"
#include "cli/options.h"

enum { THREADS_MAX = 256, READAHEAD_MAX = 4 << 20, DIRTY_MAX = 80, EXPIRE_MAX = 86400 };

struct request {
	const char *memory, *policy, *readahead, *uncached;
	uint64_t threads, pages, dirty_background, dirty_limit;
	double timeout, dirty_expire;
	bool read_only, allow_other, buffered, foreground;
	struct mount_options mount;
	char source[PATH_MAX], mountpoint[PATH_MAX];
};

/* ---- what was asked for ---- */

static int folder(const char *path, char *real, struct err *err)
{
	struct stat st;

	if (!realpath(path, real) || stat(real, &st)) {
		if (errno == ENOTCONN)
			return err_set(err, -ENOTCONN,
				       "%s: left behind by a mount that was killed; "
				       "umount --lazy takes it away",
				       path);
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s: %s", path, strerror(ENOTDIR));
	return 0;
}

/* Below SOURCE the mount would find itself. */
static int check_places(const struct request *request, struct err *err)
{
	size_t n = strlen(request->source);

	if (n > 1 && (strncmp(request->mountpoint, request->source, n) != 0 ||
		      request->mountpoint[n] != '/'))
		return 0;
	if (n == 1 && !request->mountpoint[1])
		return 0;
	return err_set(err, -EINVAL, "%s: is inside of %s", request->mountpoint, request->source);
}

static int parse_numbers(struct request *request, struct err *err)
{
	struct mount_options *mount = &request->mount;
	int r = parse_bytes(request->memory, "--memory", &mount->memory, err);

	if (!r)
		r = parse_bytes(request->readahead, "--readahead", &mount->readahead, err);
	if (r)
		return r;
	if (mount->readahead > READAHEAD_MAX)
		return err_set(err, -ERANGE, "--readahead: at most 4M");
	if (!request->threads || request->threads > THREADS_MAX)
		return err_set(err, -ERANGE, "--threads: 1 to %d", THREADS_MAX);
	if (request->timeout < 0)
		return err_set(err, -ERANGE, "--timeout: less than 0");
	if (!request->dirty_background || request->dirty_background > request->dirty_limit)
		return err_set(err, -ERANGE, "--dirty-background: 1 to --dirty-limit");
	if (request->dirty_limit > DIRTY_MAX)
		return err_set(err, -ERANGE, "--dirty-limit: at most %d", DIRTY_MAX);
	if (request->dirty_expire < 0.01 || request->dirty_expire > EXPIRE_MAX)
		return err_set(err, -ERANGE, "--dirty-expire: 0.01 to %d seconds", EXPIRE_MAX);
	mount->dirty_background = (uint32_t)request->dirty_background;
	mount->dirty_limit = (uint32_t)request->dirty_limit;
	mount->dirty_expire_ms = (uint32_t)(request->dirty_expire * 1000);
	return 0;
}

static int prepare(struct request *request, char **operands, int nr, struct err *err)
{
	int r;

	if (nr != 2)
		return err_set(err, -EINVAL, "needs SOURCE and MOUNTPOINT");
	r = parse_numbers(request, err);
	if (!r)
		r = folder(operands[0], request->source, err);
	if (!r)
		r = folder(operands[1], request->mountpoint, err);
	if (!r)
		r = check_places(request, err);
	request->mount.source = request->source;
	request->mount.mountpoint = request->mountpoint;
	request->mount.policy = request->policy;
	request->mount.uncached = request->uncached;
	request->mount.threads = request->threads;
	request->mount.pages = request->pages;
	request->mount.timeout = request->timeout;
	request->mount.read_only = request->read_only;
	request->mount.allow_other = request->allow_other;
	request->mount.direct = !request->buffered;
	return r;
}

#ifdef HAVE_FUSE

/* Of libfuse, whose header wants to be told an interface version for this alone. */
extern const char *fuse_pkgversion(void);

const char *mount_fuse_version(void)
{
	return fuse_pkgversion();
}

/* SIGINT ends a mount; libfuse leaves a handler alone that somebody has set, as main() has. Who was
 * started with the signal ignored keeps it so, but in the background it cannot come from a terminal
 * any more. */
static void default_interrupt(bool always)
{
	struct sigaction now;

	if (always || (!sigaction(SIGINT, NULL, &now) && now.sa_handler != SIG_IGN))
		signal(SIGINT, SIG_DFL);
}

/* ---- foreground ---- */

static void say_ready(void *ctx)
{
	const struct request *request = ctx;

	printf("%s on %s\n", request->source, request->mountpoint);
	fflush(stdout);
}

static int in_foreground(struct request *request)
{
	struct err err = {""};

	default_interrupt(false);
	request->mount.ready = say_ready;
	request->mount.ctx = request;
	return mount_run(&request->mount, &err) ? cli_fail("mount: %s", err.text) : 0;
}

/* ---- background ---- */

struct child {
	struct request *request;
	int pipe;
};

/* From here on nobody reads what the child writes. */
static void tell_ready(void *ctx)
{
	struct child *child = ctx;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	close(null);
	close(child->pipe);
	child->pipe = -1;
}

static _Noreturn void run_child(struct request *request, int pipe)
{
	struct child child = {.request = request, .pipe = pipe};
	struct err err = {""};
	int code;

	default_interrupt(true);
	setsid();
	if (chdir("/"))
		_exit(2);
	request->mount.ready = tell_ready;
	request->mount.ctx = &child;
	code = mount_run(&request->mount, &err);
	if (code && child.pipe >= 0) {
		ssize_t n = write(child.pipe, err.text, strlen(err.text));

		_exit(n < 0 ? 3 : 2);
	}
	if (code)
		syslog(LOG_ERR, "foliage mount: %s", err.text);
	_exit(code ? 2 : 0);
}

static int in_background(struct request *request)
{
	char text[sizeof(((struct err *)NULL)->text)];
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return cli_fail("mount: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		return cli_fail("mount: %s", strerror(errno));
	if (!pid) {
		close(ends[0]);
		run_child(request, ends[1]);
	}
	close(ends[1]);
	do
		n = read(ends[0], text, sizeof(text) - 1);
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	if (!n)
		return 0;
	text[n < 0 ? 0 : n] = 0;
	return cli_fail("mount: %s", text);
}

static int start(struct request *request)
{
	return request->foreground ? in_foreground(request) : in_background(request);
}

#else

const char *mount_fuse_version(void)
{
	return NULL;
}

static int start(struct request *request)
{
	(void)request;
	return cli_fail("mount: not built in: libfuse3 3.12 or newer was not there (Debian: "
			"libfuse3-dev)");
}

#endif

static int run(int argc, char **argv)
{
	struct request request = {
		.memory = "256M",
		.policy = "fg",
		.readahead = "128K",
		.uncached = MOUNT_UNCACHED,
		.threads = 8,
		.timeout = 1,
		.dirty_background = 10,
		.dirty_limit = 30,
		.dirty_expire = 5,
	};
	const struct option_spec specs[] = {
		{"memory", 'm', OPTION_TEXT, &request.memory},
		{"policy", 'p', OPTION_TEXT, &request.policy},
		{"readahead", 0, OPTION_TEXT, &request.readahead},
		{"uncached", 0, OPTION_TEXT, &request.uncached},
		{"dirty-background", 0, OPTION_COUNT, &request.dirty_background},
		{"dirty-limit", 0, OPTION_COUNT, &request.dirty_limit},
		{"dirty-expire", 0, OPTION_REAL, &request.dirty_expire},
		{"pages", 0, OPTION_COUNT, &request.pages},
		{"threads", 0, OPTION_COUNT, &request.threads},
		{"timeout", 0, OPTION_REAL, &request.timeout},
		{"read-only", 0, OPTION_FLAG, &request.read_only},
		{"allow-other", 0, OPTION_FLAG, &request.allow_other},
		{"buffered", 0, OPTION_FLAG, &request.buffered},
		{"foreground", 'f', OPTION_FLAG, &request.foreground},
	};
	struct err err = {""};
	int operands = options_parse(argc, argv, specs, ARRAY_SIZE(specs), &err);

	if (operands < 0 || prepare(&request, argv + 1, operands, &err))
		return cli_fail("mount: %s", err.text);
	return start(&request);
}

static const char help[] =
	"usage: foliage mount [OPTION]... SOURCE MOUNTPOINT\n"
	"\n"
	"Show the directory SOURCE at MOUNTPOINT, with the contents of its files in a page cache\n"
	"of this process instead of the kernel's: any program that works there runs on it. What\n"
	"it does is told by 'foliage stat MOUNTPOINT' while it runs. Unmounting (umount, or\n"
	"fusermount3 -u), SIGTERM and SIGINT end it, after everything has been written back.\n"
	"\n"
	"Options:\n"
	"  -m, --memory SIZE   the cache's budget, everything included (256M)\n"
	"  --pages N           never more than N pages of 4 KiB, however small the tables are\n"
	"  -p, --policy NAME   which pages stay: any policy of the engine (fg)\n"
	"  --readahead SIZE    read ahead at most so much of files read in order, up to 4M; 0:\n"
	"                      nothing (128K)\n"
	"  --dirty-background P  begin to write back when P percent of the budget is dirty (10)\n"
	"  --dirty-limit P     let writers wait when P percent is dirty, at most 80 (30)\n"
	"  --dirty-expire S    write back what has been dirty for S seconds (5)\n"
	"  --buffered          read and write SOURCE through the kernel's page cache; otherwise\n"
	"                      past it where the file system allows (O_DIRECT)\n"
	"  --uncached LIST     leave files whose names match one of these patterns, with commas\n"
	"                      between, to the kernel's page cache: only they can be mapped\n"
	"                      shared (*-shm,data.mdb,lock.mdb)\n"
	"  --read-only         nothing can be changed\n"
	"  --allow-other       other users may use it, too; permissions hold in any case\n"
	"  --threads N         up to N threads answer (8)\n"
	"  --timeout SECONDS   how long the kernel believes names and attributes (1)\n"
	"  -f, --foreground    stay; say 'SOURCE on MOUNTPOINT' when it can be used. Otherwise\n"
	"                      the command returns at that moment\n"
	"\n"
	"What is promised to programs:\n"
	"  fsync and fdatasync return when the data is on the medium, close() when SOURCE has it.\n"
	"  Nothing else is promised when the process is killed or the machine stops.\n"
	"\n"
	"Examples:\n"
	"  foliage mount --memory 1G ~/src /mnt/src\n"
	"  foliage stat /mnt/src\n";

const struct command command_mount = {
	.name = "mount",
	.summary = "a directory whose files live in this page cache",
	.help = help,
	.run = run,
};
