/* SPDX-License-Identifier: MIT
 *
 * Where the events of a recording come from. A source is opened first, then the recording is
 * created, then the observed command may run; it is polled until nothing more can come.
 */
#ifndef FOLIAGE_ADAPTERS_RECORD_SOURCE_H
#define FOLIAGE_ADAPTERS_RECORD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "adapters/record/recording.h"
#include "base/err.h"

enum record_writes {
	RECORD_WRITES_CALLS,   /* every write call, seen when it returns */
	RECORD_WRITES_DIRTIED, /* only the first write that makes a clean page dirty */
	RECORD_WRITES_NO,
};

struct source_options {
	const pid_t *pids; /* processes to observe, with those they start from now on */
	size_t nr_pids;
	const char *cgroup; /* folder of a cgroup v2; NULL: by pids */
	uint64_t min_size;  /* bytes of a file below which it is passed over */
	uint64_t buffer;    /* bytes between the observed and the observer; 0: the default */
	enum record_writes writes;
};

struct source_load {
	uint64_t events, lost;
	double ns_per_event; /* time that the observed spend in the probes; 0: not known */
	bool silent;         /* the observed never got in touch */
};

struct source;

struct source_ops {
	/* Observe a process that has been started for it and waits. NULL: nothing to do. */
	int (*observe)(struct source *source, pid_t pid, struct err *err);
	/* Hand what has come to the recording. Returns the number of events, 0: none for now,
	 * -ENODATA: none will come any more, or another negative errno. */
	ssize_t (*poll)(struct source *source, struct recording *recording, struct err *err);
	void (*load)(struct source *source, struct source_load *load);
	void (*close)(struct source *source);
};

struct source {
	const struct source_ops *ops;
};

/* Tracepoints by BPF: needs root (CAP_BPF, CAP_PERFMON) and Linux 6.11. -EPERM, -ENOTSUP: this
 * system does not let us, and the message says what is missing. */
int source_bpf_open(const struct source_options *options, struct source **source, struct err *err);
/* A ring in shared memory, filled by libfoliage-record.so. `environment`, of `bytes`, becomes the
 * variable (NAME=VALUE) that tells the library where the ring is. */
int source_ring_open(const struct source_options *options, struct source **source,
		     char *environment, size_t bytes, struct err *err);

/* What valgrind's lackey writes to a pipe, whose other end becomes *log, for valgrind to inherit.
 * `collapse`: pages that are remembered as just touched, 1..1024. */
int source_lackey_open(uint32_t collapse, const char *command, struct source **source, int *log,
		       struct err *err);

/* Version of libbpf, or NULL: this build has none. */
const char *source_bpf_version(void);

#endif
