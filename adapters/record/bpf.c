/* SPDX-License-Identifier: MIT
 *
 * Recording through BPF: where the kernel's fields are (BTF), maps, loading, attaching, and what
 * the ring's events mean.
 *
 * A read of more pages than the kernel handles at once leaves several events, each from where it
 * goes on to the call's last page. The first one has them all; the others are recognised by the
 * number of reads that their thread has finished, which does not change within a call.
 */
#include "adapters/record/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_LIBBPF

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <unistd.h>

#include "adapters/record/bpf_programs.h"
#include "base/bits.h"

enum {
	RING_BYTES = 32 << 20,
	PROCESSES_MAX = 1 << 16,
	FILES_MAX = 1 << 18,
	CALLS = 256, /* threads whose last read is remembered */
	COMING = 64, /* files that are being announced at once, on several processors */
	PATH_BYTES = 4096,
	SAMPLE_EVENTS = 64,
};

/* A file whose names are still coming. */
struct coming {
	struct bpf_file file;
	char path[PATH_BYTES]; /* its tail is at `from` */
	size_t from;
};

struct call {
	uint32_t tid, file;
	uint64_t call, first, last;
};

struct mount {
	uint32_t device; /* as the kernel keeps it: major << 20 | minor */
	char *folder;
};

struct bpf_source {
	struct source source;
	struct bpf_world world;
	struct btf *btf;
	int programs[NR_PROGRAMS], links[NR_PROGRAMS];
	bool wanted[NR_PROGRAMS];
	struct ring_buffer *ring;
	struct recording *recording; /* while polling */
	int failed;
	uint64_t events;
	struct coming coming[COMING];
	struct call calls[CALLS];
	struct mount *mounts;
	size_t nr_mounts;
	int stats; /* descriptor that keeps the kernel's timing of programs on; -1: off */
	double ns_per_event;
};

/* ---- where things are ---- */

/* Offset of a member, looked for in unnamed unions and structures, too; -1: there is none. */
static int member_offset(const struct btf *btf, uint32_t type, const char *name, size_t length,
			 uint32_t *member_type)
{
	const struct btf_type *t = btf__type_by_id(btf, type);
	const struct btf_member *m;

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	if (!t || !btf_is_composite(t))
		return -1;
	m = btf_members(t);
	for (uint16_t i = 0; i < btf_vlen(t); i++) {
		const char *text = btf__name_by_offset(btf, m[i].name_off);
		int at = (int)btf_member_bit_offset(t, i) / 8, inner;

		if (*text) {
			if (strlen(text) == length && !strncmp(text, name, length)) {
				*member_type = m[i].type;
				return at;
			}
			continue;
		}
		inner = member_offset(btf, m[i].type, name, length, member_type);
		if (inner >= 0)
			return at + inner;
	}
	return -1;
}

/* "d_u.d_alias" of structure "dentry". */
static int field_offset(const struct btf *btf, const char *structure, const char *path)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT), offset = 0;
	uint32_t type = (uint32_t)id;

	while (id > 0 && *path) {
		size_t n = strcspn(path, ".");
		int at = member_offset(btf, type, path, n, &type);

		if (at < 0)
			return -1;
		offset += at;
		path += n + (path[n] == '.');
	}
	return id > 0 ? offset : -1;
}

struct field_name {
	int *offset;
	const char *structure, *path;
};

static int find_offsets(struct bpf_source *s, struct err *err)
{
	struct bpf_offsets *at = &s->world.at;
	const struct field_name fields[] = {
		{&at->mapping_host, "address_space", "host"},
		{&at->inode_ino, "inode", "i_ino"},
		{&at->inode_generation, "inode", "i_generation"},
		{&at->inode_sb, "inode", "i_sb"},
		{&at->inode_size, "inode", "i_size"},
		{&at->inode_mode, "inode", "i_mode"},
		{&at->inode_dentry, "inode", "i_dentry.first"},
		{&at->sb_dev, "super_block", "s_dev"},
		{&at->sb_magic, "super_block", "s_magic"},
		{&at->dentry_alias, "dentry", "d_u.d_alias"},
		{&at->dentry_parent, "dentry", "d_parent"},
		{&at->dentry_name, "dentry", "d_name.name"},
		{&at->task_pid, "task_struct", "pid"},
		{&at->task_tgid, "task_struct", "tgid"},
		{&at->task_leader, "task_struct", "group_leader"},
		{&at->task_comm, "task_struct", "comm"},
		{&at->task_calls, "task_struct", "ioac.syscr"},
		{&at->task_files, "task_struct", "files"},
		{&at->files_table, "files_struct", "fdt"},
		{&at->table_max, "fdtable", "max_fds"},
		{&at->table_files, "fdtable", "fd"},
		{&at->file_flags, "file", "f_flags"},
		{&at->file_mapping, "file", "f_mapping"},
		{&at->file_position, "file", "f_pos"},
		{&at->folio_index, "folio", "index"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		*fields[i].offset = field_offset(s->btf, fields[i].structure, fields[i].path);
		if (*fields[i].offset < 0)
			return err_set(err, -ENOTSUP, "this kernel's struct %s has no %s",
				       fields[i].structure, fields[i].path);
	}
	at->regs_call = field_offset(s->btf, "pt_regs", "orig_ax");
	at->regs_arg0 = field_offset(s->btf, "pt_regs", "di");
	at->regs_arg2 = field_offset(s->btf, "pt_regs", "dx");
	at->regs_arg3 = field_offset(s->btf, "pt_regs", "r10");
	return 0;
}

static const struct {
	const char *tracepoint;
	unsigned int arguments;
} tracepoints[NR_PROGRAMS] = {
	[PROGRAM_READ] = {"mm_filemap_get_pages", 3},
	[PROGRAM_FAULT] = {"mm_filemap_fault", 2},
	[PROGRAM_WRITE] = {"sys_exit", 2},
	[PROGRAM_DIRTIED] = {"writeback_dirty_folio", 2},
	[PROGRAM_FORK] = {"sched_process_fork", 2},
	[PROGRAM_EXEC] = {"sched_process_exec", 1},
	[PROGRAM_FREE] = {"sched_process_free", 1},
};

/* The BTF type of a tracepoint, a pointer to a function that gets the context first. */
static int find_tracepoint(const struct btf *btf, enum record_program program, struct err *err)
{
	char name[80];
	const struct btf_type *t;
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoints[program].tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	if (id <= 0)
		return err_set(err, -ENOTSUP,
			       "this kernel has no tracepoint %s (Linux 6.11 and later have it)",
			       tracepoints[program].tracepoint);
	t = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	if (!t || !btf_is_func_proto(t) || btf_vlen(t) < tracepoints[program].arguments + 1)
		return err_set(err, -ENOTSUP, "this kernel's tracepoint %s is not the one we know",
			       tracepoints[program].tracepoint);
	return id;
}

/* ---- setting up ---- */

/* What the system answers to who may not do this, in words. */
static int refused(int code, const char *what, struct err *err)
{
	if (code == -EPERM || code == -EACCES)
		return err_set(err, -EPERM,
			       "%s: not permitted (needs root, or CAP_BPF and CAP_PERFMON)", what);
	return err_set(err, code, "%s: %s", what, strerror(-code));
}

static int create_map(enum bpf_map_type type, const char *name, size_t key, size_t value,
		      uint32_t entries, int *fd, struct err *err)
{
	char what[64];

	*fd = bpf_map_create(type, name, (uint32_t)key, (uint32_t)value, entries, NULL);
	if (*fd >= 0)
		return 0;
	snprintf(what, sizeof(what), "BPF map %s", name);
	return refused(-errno, what, err);
}

static uint64_t ring_bytes(uint64_t wanted)
{
	uint64_t bytes = 1 << 16;

	while (bytes < (wanted ? wanted : RING_BYTES) && bytes < (UINT64_C(1) << 30))
		bytes <<= 1;
	return bytes;
}

static int create_maps(struct bpf_source *s, const struct source_options *o, struct err *err)
{
	struct bpf_world *w = &s->world;
	int code = create_map(BPF_MAP_TYPE_RINGBUF, "events", 0, 0, (uint32_t)ring_bytes(o->buffer),
			      &w->ring, err);

	if (!code)
		code = create_map(BPF_MAP_TYPE_HASH, "processes", 4, 4, PROCESSES_MAX,
				  &w->processes, err);
	if (!code)
		code = create_map(BPF_MAP_TYPE_HASH, "files", sizeof(struct bpf_key), 4, FILES_MAX,
				  &w->files, err);
	if (!code)
		code = create_map(BPF_MAP_TYPE_ARRAY, "totals", 4, sizeof(struct bpf_totals), 1,
				  &w->totals, err);
	if (!code && o->cgroup)
		code = create_map(BPF_MAP_TYPE_CGROUP_ARRAY, "cgroups", 4, 4, 1, &w->cgroups, err);
	return code;
}

static int choose_cgroup(struct bpf_source *s, const char *folder, struct err *err)
{
	uint32_t key = 0;
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;

	if (fd < 0)
		return err_set(err, -errno, "%s: %s", folder, strerror(errno));
	code = bpf_map_update_elem(s->world.cgroups, &key, &fd, BPF_ANY) ? -errno : 0;
	close(fd);
	if (code == -EBADF || code == -EINVAL)
		return err_set(err, -EINVAL, "%s: not a folder of cgroup v2", folder);
	return code ? err_set(err, code, "%s: %s", folder, strerror(-code)) : 0;
}

static int bpf_observe(struct source *source, pid_t pid, struct err *err)
{
	struct bpf_source *s = (struct bpf_source *)source;
	uint32_t key = (uint32_t)pid, value = 0;

	if (bpf_map_update_elem(s->world.processes, &key, &value, BPF_ANY))
		return err_set(err, -errno, "process %d: %s", (int)pid, strerror(errno));
	return 0;
}

static int load_program(struct bpf_source *s, enum record_program program, struct err *err)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options);
	struct bpf_asm *a = malloc(sizeof(*a));
	int code = a ? record_program_build(program, &s->world, a) : -ENOMEM, id;
	char what[80];

	if (code) {
		free(a);
		return err_set(err, code, "BPF program: %s", strerror(-code));
	}
	id = find_tracepoint(s->btf, program, err);
	if (id < 0) {
		free(a);
		return id;
	}
	options.expected_attach_type = BPF_TRACE_RAW_TP;
	options.attach_btf_id = (uint32_t)id;
	/* The helpers that read kernel memory want a licence that goes with the kernel's. */
	s->programs[program] = bpf_prog_load(BPF_PROG_TYPE_TRACING, "foliage", "Dual MIT/GPL",
					     a->code, a->nr, &options);
	code = s->programs[program] < 0 ? -errno : 0;
	free(a);
	snprintf(what, sizeof(what), "BPF program for %s", tracepoints[program].tracepoint);
	return code ? refused(code, what, err) : 0;
}

static int attach_programs(struct bpf_source *s, struct err *err)
{
	int code = 0;

	for (int i = 0; i < NR_PROGRAMS && !code; i++)
		code = s->wanted[i] ? load_program(s, (enum record_program)i, err) : 0;
	for (int i = 0; i < NR_PROGRAMS && !code; i++) {
		if (!s->wanted[i])
			continue;
		s->links[i] = bpf_raw_tracepoint_open(NULL, s->programs[i]);
		if (s->links[i] < 0)
			code = refused(-errno, tracepoints[i].tracepoint, err);
	}
	return code;
}

/* ---- paths ---- */

static int add_mount(struct bpf_source *s, uint32_t device, const char *folder)
{
	struct mount *mounts = realloc(s->mounts, (s->nr_mounts + 1) * sizeof(*mounts));

	if (!mounts)
		return -ENOMEM;
	s->mounts = mounts;
	mounts[s->nr_mounts].device = device;
	mounts[s->nr_mounts].folder = strdup(folder);
	return mounts[s->nr_mounts++].folder ? 0 : -ENOMEM;
}

/* Where file systems are mounted whole; the kernel knows a file's path only up to there. */
static int read_mounts(struct bpf_source *s)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	char line[8192], root[PATH_BYTES], folder[PATH_BYTES];
	unsigned int major, minor;
	int code = 0;

	while (in && !code && fgets(line, sizeof(line), in)) {
		if (sscanf(line, "%*d %*d %u:%u %4095s %4095s", &major, &minor, root, folder) ==
			    4 &&
		    !strcmp(root, "/"))
			code = add_mount(s, major << 20 | minor, folder);
	}
	if (in)
		fclose(in);
	return code;
}

static const char *mount_of(const struct bpf_source *s, uint32_t device)
{
	for (size_t i = 0; i < s->nr_mounts; i++) {
		if (s->mounts[i].device == device)
			return strcmp(s->mounts[i].folder, "/") ? s->mounts[i].folder : "";
	}
	return NULL;
}

/* All names are there: the file has its path. */
static int finish_file(struct bpf_source *s, struct coming *c)
{
	const char *mount = mount_of(s, c->file.device);
	char name[2 * PATH_BYTES], key[80];
	int n;

	if (mount)
		n = snprintf(name, sizeof(name), "%s", mount);
	else
		n = snprintf(name, sizeof(name), "[%u:%u]", c->file.device >> 20,
			     c->file.device & 0xfffff);
	if (c->path[c->from])
		snprintf(name + n, sizeof(name) - (size_t)n, "%s", c->path + c->from);
	else
		snprintf(name + n, sizeof(name) - (size_t)n, "/[inode %llu]",
			 (unsigned long long)c->file.inode);
	snprintf(key, sizeof(key), "%u:%llu:%u", c->file.device, (unsigned long long)c->file.inode,
		 c->file.generation);
	n = recording_file(s->recording, c->file.file, key, name);
	c->file.file = 0;
	return n;
}

/* ---- events ---- */

static struct coming *coming_of(struct bpf_source *s, uint32_t file)
{
	return &s->coming[file % COMING];
}

static int take_file(struct bpf_source *s, const struct bpf_file *file)
{
	struct coming *c = coming_of(s, file->file);
	int code = c->file.file ? finish_file(s, c) : 0;

	c->file = *file;
	c->from = PATH_BYTES - 1;
	c->path[c->from] = 0;
	return code;
}

static int take_name(struct bpf_source *s, const struct bpf_name *name)
{
	struct coming *c = coming_of(s, name->file);
	size_t n = strnlen(name->name, sizeof(name->name));

	if (name->file != c->file.file || n + 1 > c->from)
		return 0;
	c->from -= n;
	memcpy(c->path + c->from, name->name, n);
	c->path[--c->from] = '/';
	return 0;
}

static int take_process(struct bpf_source *s, const struct bpf_process *process)
{
	return recording_process(s->recording, process->pid, process->pid, process->comm);
}

/* Whether an event goes on with the read of the thread's event before. */
static bool goes_on(struct bpf_source *s, const struct bpf_access *a)
{
	struct call *c = &s->calls[a->tid % CALLS];
	bool on = c->tid == a->tid && c->file == a->file && c->call == a->call &&
		  c->last == a->last && a->first > c->first;

	*c = (struct call){.tid = a->tid,
			   .file = a->file,
			   .call = a->call,
			   .first = a->first,
			   .last = a->last};
	return on;
}

static int take_access(struct bpf_source *s, const struct bpf_access *a)
{
	enum trace_op op = (enum trace_op)(a->kind >> 8 & 0xff);
	struct coming *c = coming_of(s, a->file);
	int code = c->file.file == a->file ? finish_file(s, c) : 0;

	if (code || (op == TRACE_READ && goes_on(s, a)))
		return code;
	s->events++;
	return recording_access(s->recording, op, a->file, a->pid, a->first, a->last);
}

static int take_event(void *ctx, void *data, size_t bytes)
{
	struct bpf_source *s = ctx;

	(void)bytes;
	switch (*(const uint32_t *)data & 0xff) {
	case BPF_EVENT_ACCESS:
		s->failed = take_access(s, data);
		break;
	case BPF_EVENT_FILE:
		s->failed = take_file(s, data);
		break;
	case BPF_EVENT_NAME:
		s->failed = take_name(s, data);
		break;
	case BPF_EVENT_PROCESS:
		s->failed = take_process(s, data);
		break;
	}
	return s->failed;
}

static ssize_t bpf_poll(struct source *source, struct recording *recording, struct err *err)
{
	struct bpf_source *s = (struct bpf_source *)source;
	int n;

	s->recording = recording;
	n = ring_buffer__consume(s->ring);
	if (n < 0)
		return err_set(err, s->failed ? s->failed : n, "the ring of events: %s",
			       strerror(-n));
	return n;
}

static int find_out_more(struct bpf_source *s);

static void bpf_load(struct source *source, struct source_load *load)
{
	struct bpf_source *s = (struct bpf_source *)source;
	struct bpf_totals totals = {0};
	uint32_t key = 0;

	bpf_map_lookup_elem(s->world.totals, &key, &totals);
	find_out_more(s);
	*load = (struct source_load){
		.events = s->events, .lost = totals.lost, .ns_per_event = s->ns_per_event};
}

/* The kernel times programs while somebody asks for it, which has a cost of its own: so it is asked
 * from one call to the next, and then not again. */
static int find_out_more(struct bpf_source *s)
{
	struct bpf_prog_info info = {0};
	uint32_t bytes = sizeof(info);

	if (s->ns_per_event > 0)
		return 0;
	if (s->stats < 0) {
		s->stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
		return 0;
	}
	if (bpf_obj_get_info_by_fd(s->programs[PROGRAM_READ], &info, &bytes) ||
	    info.run_cnt < SAMPLE_EVENTS)
		return 0;
	s->ns_per_event = (double)info.run_time_ns / (double)info.run_cnt;
	close(s->stats);
	s->stats = -1;
	return 0;
}

static void close_map(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void bpf_close(struct source *source)
{
	struct bpf_source *s = (struct bpf_source *)source;

	for (int i = 0; i < NR_PROGRAMS; i++) {
		close_map(s->links[i]);
		close_map(s->programs[i]);
	}
	ring_buffer__free(s->ring);
	close_map(s->world.ring);
	close_map(s->world.processes);
	close_map(s->world.files);
	close_map(s->world.totals);
	close_map(s->world.cgroups);
	close_map(s->stats);
	btf__free(s->btf);
	for (size_t i = 0; i < s->nr_mounts; i++)
		free(s->mounts[i].folder);
	free(s->mounts);
	free(s);
}

static const struct source_ops bpf_ops = {
	.observe = bpf_observe,
	.poll = bpf_poll,
	.load = bpf_load,
	.close = bpf_close,
};

static int say_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static void choose_programs(struct bpf_source *s, const struct source_options *o)
{
	bool calls = s->world.at.regs_call >= 0 && s->world.at.regs_arg0 >= 0 &&
		     s->world.at.regs_arg2 >= 0 && s->world.at.regs_arg3 >= 0;

	s->wanted[PROGRAM_READ] = true;
	s->wanted[PROGRAM_FAULT] = true;
	s->wanted[PROGRAM_WRITE] = o->writes == RECORD_WRITES_CALLS && calls;
	s->wanted[PROGRAM_DIRTIED] =
		o->writes == RECORD_WRITES_DIRTIED || (o->writes == RECORD_WRITES_CALLS && !calls);
	s->wanted[PROGRAM_FORK] = !o->cgroup;
	s->wanted[PROGRAM_EXEC] = true;
	s->wanted[PROGRAM_FREE] = true;
}

static int set_up(struct bpf_source *s, const struct source_options *o, struct err *err)
{
	int code;

	libbpf_set_print(say_nothing);
	s->btf = btf__load_vmlinux_btf();
	if (!s->btf)
		return refused(-errno, "the kernel's types (/sys/kernel/btf/vmlinux)", err);
	code = find_offsets(s, err);
	if (!code)
		code = create_maps(s, o, err);
	if (!code && o->cgroup)
		code = choose_cgroup(s, o->cgroup, err);
	for (size_t i = 0; i < o->nr_pids && !code; i++)
		code = bpf_observe(&s->source, o->pids[i], err);
	if (code)
		return code;
	choose_programs(s, o);
	s->ring = ring_buffer__new(s->world.ring, take_event, s, NULL);
	if (!s->ring)
		return refused(-errno, "the ring of events", err);
	if (read_mounts(s))
		return err_set(err, -ENOMEM, "no memory");
	return attach_programs(s, err);
}

int source_bpf_open(const struct source_options *options, struct source **source, struct err *err)
{
	struct bpf_source *s = calloc(1, sizeof(*s));
	int code;

	if (!s)
		return err_set(err, -ENOMEM, "no memory");
	s->source.ops = &bpf_ops;
	s->stats = s->world.ring = s->world.processes = -1;
	s->world.files = s->world.totals = s->world.cgroups = -1;
	for (int i = 0; i < NR_PROGRAMS; i++)
		s->programs[i] = s->links[i] = -1;
	s->world.self = (uint32_t)getpid();
	s->world.min_size = options->min_size;
	code = set_up(s, options, err);
	if (code)
		bpf_close(&s->source);
	else
		*source = &s->source;
	return code;
}

const char *source_bpf_version(void)
{
	return libbpf_version_string();
}

#else

int source_bpf_open(const struct source_options *options, struct source **source, struct err *err)
{
	(void)options;
	(void)source;
	return err_set(err, -ENOTSUP, "this build has no libbpf");
}

const char *source_bpf_version(void)
{
	return NULL;
}

#endif
