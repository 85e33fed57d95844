/* SPDX-License-Identifier: MIT
 *
 * The life of a mount: cache, nodes, session, statistics; answer; write everything back; unmount.
 *
 * Signals are blocked while threads are made, so that only the thread that waits for the end of the
 * session gets them. What is in the cache is written before the mount point is let go: who sees it
 * unmounted sees all data in SOURCE.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "adapters/fuse/data.h"
#include "adapters/fuse/node.h"
#include "foliage/segment.h"

enum { PUBLISH_MS = 500, BACKGROUND_MAX = 64 };

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	/* Truncation comes as an operation of its own; bits that writing takes away are the
	 * kernel's affair, and data.c's where the kernel does not look. */
	conn->want &= ~(unsigned int)(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_HANDLE_KILLPRIV);
	conn->max_background = BACKGROUND_MAX;
}

/* Locks are not here: the kernel keeps those of its own mount, for all programs on it. */
static const struct fuse_lowlevel_ops operations = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.create = op_create,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.fsyncdir = op_fsyncdir,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.copy_file_range = op_copy_file_range,
};

/* ---- statistics ---- */

static int fill(void *ctx, struct foliage_segment_values *values)
{
	struct mount *mount = ctx;
	struct foliage_cache_stats stats;
	int code = foliage_segment_fill_pool(foliage_cache_pool(mount->cache), values);

	if (!code)
		code = foliage_cache_stats(mount->cache, &stats);
	if (code)
		return code;
	values->dirty_bytes = stats.dirty_bytes;
	values->writeback_bytes = stats.writeback_bytes;
	values->readahead = stats.readahead_pages;
	values->read_bytes = stats.read_bytes;
	values->written_bytes = stats.write_bytes;
	values->disk_read_bytes = stats.disk_read_bytes;
	values->disk_written_bytes = stats.disk_write_bytes;
	values->io_errors = stats.read_errors + stats.write_errors;
	return 0;
}

static int publish(struct mount *mount, struct foliage_segment **segment, struct err *err)
{
	struct foliage_segment_options options = {
		.program = "foliage mount",
		.policy = mount->options->policy,
		.label = mount->options->mountpoint,
	};
	int code = foliage_segment_create(&options, segment);

	if (code)
		return err_set(err, code, "statistics in shared memory: %s", strerror(-code));
	code = foliage_segment_start(*segment, PUBLISH_MS, fill, mount);
	if (!code)
		return 0;
	foliage_segment_destroy(*segment);
	*segment = NULL;
	return err_set(err, code, "statistics in shared memory: %s", strerror(-code));
}

/* ---- the session ---- */

/* Mount options as the kernel takes them; a comma in a name would begin another one. */
static char *session_options(const struct mount_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("subtype=foliage,default_permissions", out);
	if (options->allow_other)
		fputs(",allow_other", out);
	if (options->read_only)
		fputs(",ro", out);
	fputs(",fsname=", out);
	for (const char *c = options->source; *c; c++) {
		if (*c == ',' || *c == '\\')
			fputc('\\', out);
		fputc(*c, out);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* libfuse and its helper program complain on standard error: what they say is the reason. */
struct complaint {
	int saved, fd;
};

static void complaint_start(struct complaint *complaint)
{
	complaint->saved = dup(STDERR_FILENO);
	complaint->fd = memfd_create("complaint", MFD_CLOEXEC);
	if (complaint->saved >= 0 && complaint->fd >= 0)
		dup2(complaint->fd, STDERR_FILENO);
}

static void complaint_end(struct complaint *complaint, char *text, size_t bytes)
{
	ssize_t n = 0;

	if (complaint->saved >= 0 && complaint->fd >= 0)
		dup2(complaint->saved, STDERR_FILENO);
	if (complaint->fd >= 0)
		n = pread(complaint->fd, text, bytes - 1, 0);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	close(complaint->saved);
	close(complaint->fd);
}

static struct fuse_session *session_open(struct mount *mount, struct err *err)
{
	char *options = session_options(mount->options);
	char *words[] = {(char *)"foliage", (char *)"-o", options, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct fuse_session *session = NULL;
	struct complaint complaint;
	char why[256];
	bool mounted = false;

	if (!options) {
		err_set(err, -ENOMEM, "no memory");
		return NULL;
	}
	complaint_start(&complaint);
	session = fuse_session_new(&args, &operations, sizeof(operations), mount);
	if (session)
		mounted = !fuse_session_mount(session, mount->options->mountpoint);
	complaint_end(&complaint, why, sizeof(why));
	fuse_opt_free_args(&args);
	free(options);
	if (session && mounted)
		return session;
	err_set(err, -EIO, "%s: cannot be mounted: %s", mount->options->mountpoint,
		*why ? why : "libfuse does not say why");
	if (session)
		fuse_session_destroy(session);
	return NULL;
}

/* 0: unmounted, or asked to end by a signal. */
static int session_loop(const struct mount *mount, struct fuse_session *session, struct err *err)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int code;

	if (!config)
		return err_set(err, -ENOMEM, "no memory");
	fuse_loop_cfg_set_clone_fd(config, mount->options->threads > 1);
	fuse_loop_cfg_set_max_threads(config, (unsigned int)mount->options->threads);
	code = fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	if (code < 0)
		return err_set(err, code, "%s: %s", mount->options->mountpoint, strerror(-code));
	return 0;
}

static int serve(struct mount *mount, const sigset_t *signals, struct err *err)
{
	struct fuse_session *session = session_open(mount, err);
	struct foliage_segment *segment = NULL;
	int code;

	if (!session)
		return -EIO;
	code = publish(mount, &segment, err);
	if (!code && fuse_set_signal_handlers(session))
		code = err_set(err, -EIO, "signals: handlers cannot be set");
	if (!code) {
		if (mount->options->ready)
			mount->options->ready(mount->options->ctx);
		pthread_sigmask(SIG_UNBLOCK, signals, NULL);
		code = session_loop(mount, session, err);
		pthread_sigmask(SIG_BLOCK, signals, NULL);
		fuse_remove_signal_handlers(session);
	}
	foliage_segment_destroy(segment);
	if (!code) {
		code = foliage_cache_sync(mount->cache);
		if (code)
			err_set(err, code, "%s: not everything was written back: %s",
				mount->options->source, strerror(-code));
	}
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return code;
}

/* A descriptor for each node, three more for each open file. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int with_cache(struct mount *mount, const sigset_t *signals, struct err *err)
{
	const struct mount_options *options = mount->options;
	struct foliage_cache_options cache = {
		.bytes = options->memory,
		.max_pages = options->pages,
		.policy = options->policy,
		.direct = options->direct ? FOLIAGE_DIRECT_AUTO : FOLIAGE_DIRECT_NEVER,
		.readahead_bytes = (uint32_t)options->readahead,
		.no_readahead = !options->readahead,
		.dirty_background = options->dirty_background,
		.dirty_limit = options->dirty_limit,
		.dirty_expire_ms = options->dirty_expire_ms,
	};
	char why[256];
	int code = foliage_cache_create(&cache, &mount->cache, why, sizeof(why)), r;

	if (code)
		return err_set(err, code, "the cache: %s", *why ? why : strerror(-code));
	code = nodes_init(mount);
	if (code) {
		err_set(err, code, "%s: %s", options->source, strerror(-code));
	} else {
		code = serve(mount, signals, err);
		nodes_destroy(mount);
	}
	r = foliage_cache_destroy(mount->cache);
	if (r && !code)
		code = err_set(err, r, "%s: not everything was written back: %s", options->source,
			       strerror(-r));
	return code;
}

int mount_run(const struct mount_options *options, struct err *err)
{
	struct mount mount = {.options = options, .as_root = !geteuid()};
	sigset_t signals, before;
	int code;

	raise_descriptors();
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, &before);
	umask(0); /* the kernel has applied the caller's */
	code = with_cache(&mount, &signals, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}
