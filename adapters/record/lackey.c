/* SPDX-License-Identifier: MIT
 *
 * Recording through valgrind's lackey: every instruction, load and store of a program, a line of
 * text each, and its system calls, from which follows what file an address belongs to, and what is
 * read and written.
 *
 * Most accesses touch a page that was touched a moment ago. The last pages touched (--collapse, 16)
 * are kept in order of use. An access to one of them leaves no record, but for the first store to
 * it; a page that falls out of them, having been touched since its record, leaves one then. So the
 * order of last uses among all other pages is kept, and an LRU stack distance differs from the true
 * one by less than that many pages.
 *
 * File-backed memory is numbered by the pages of its file; all other memory is one file of its own,
 * numbered by addresses.
 *
 * Instructions are the clock: they become work records, at what an instruction takes on average.
 */
#include "adapters/record/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "trace/names.h"

enum {
	BUFFER = 1 << 20,
	PIPE_BYTES = 1 << 20,
	WINDOW_MAX = 1024,
	PAGES = 4096, /* pages whose file is remembered */
	FDS = 4096,
	MEMORY = 1, /* id of what belongs to no file; files follow */
	PATH_BYTES = 4096,
	/* 138-158 of gcc's cc1 on small files of this project: scripts/measure-kbuild.sh. */
	INSTRUCTION_PS = 150,
	WORK_MIN = 131072, /* instructions of one record of work: 20 us */
};

struct touched {
	uint64_t page; /* of the address */
	enum trace_op op;
	bool since; /* touched since its record */
};

struct region {
	uint64_t from, to; /* pages of addresses */
	uint64_t page;     /* of the file, at `from` */
	uint32_t file;
};

struct place {
	uint64_t address, page; /* address: of the page + 1; 0: nothing here */
	uint32_t file;
};

struct descriptor {
	uint32_t file; /* 0: none that we know */
	uint64_t at;   /* bytes */
};

/* A call between its beginning and its result. */
struct transfer {
	struct descriptor *descriptor; /* NULL: none under way */
	enum trace_op op;
	uint64_t at;
	bool moves; /* the descriptor's position */
};

struct lackey_source {
	struct source source;
	struct recording *recording; /* while polling */
	int fd;
	pid_t pid;
	bool named;
	char *command;
	char *buffer;
	size_t used;
	struct touched window[WINDOW_MAX]; /* the latest first */
	uint32_t collapse, nr_window;
	struct region *regions;
	size_t nr_regions, room;
	struct place places[PAGES];
	struct names files;
	struct descriptor fds[FDS];
	struct transfer transfer;
	char opening[PATH_BYTES];
	uint64_t events, instructions; /* instructions since the last record of work */
	int failed;
};

/* ---- what belongs to which file ---- */

static void forget_places(struct lackey_source *s)
{
	memset(s->places, 0, sizeof(s->places));
}

static int add_region(struct lackey_source *s, const struct region *region)
{
	if (s->nr_regions == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct region *regions = realloc(s->regions, room * sizeof(*regions));

		if (!regions)
			return -ENOMEM;
		s->regions = regions;
		s->room = room;
	}
	s->regions[s->nr_regions++] = *region;
	return 0;
}

/* Cut a range out of all regions. */
static int unmap_range(struct lackey_source *s, uint64_t from, uint64_t to)
{
	size_t nr = s->nr_regions;

	forget_places(s);
	for (size_t i = 0; i < nr; i++) {
		struct region *r = &s->regions[i];
		struct region rest = *r;

		if (r->to <= from || r->from >= to)
			continue;
		if (r->to > to) {
			rest.from = to;
			rest.page += to - r->from;
			if (add_region(s, &rest))
				return -ENOMEM;
			r = &s->regions[i];
		}
		r->to = MAX(MIN(r->to, from), r->from); /* may be empty, which finds nothing */
	}
	for (size_t i = 0; i < s->nr_regions;) {
		if (s->regions[i].from >= s->regions[i].to)
			s->regions[i] = s->regions[--s->nr_regions];
		else
			i++;
	}
	return 0;
}

static int map_range(struct lackey_source *s, const struct region *region)
{
	int code = unmap_range(s, region->from, region->to);

	return code ? code : add_region(s, region);
}

static const struct region *find_region(const struct lackey_source *s, uint64_t page)
{
	for (size_t i = 0; i < s->nr_regions; i++) {
		if (page >= s->regions[i].from && page < s->regions[i].to)
			return &s->regions[i];
	}
	return NULL;
}

static int file_id(struct lackey_source *s, const char *path, uint32_t *id)
{
	uint32_t before = s->files.nr, number;
	int code = names_intern(&s->files, path, strlen(path), &number);

	if (code)
		return code;
	*id = MEMORY + number;
	return s->files.nr > before ? recording_file(s->recording, *id, NULL, path) : 0;
}

/* What was mapped without a call that we have seen (the program itself, its stack): from the
 * kernel's list, as it is now. */
static int ask_kernel(struct lackey_source *s, uint64_t page)
{
	char path[64], line[PATH_BYTES + 256], name[PATH_BYTES];
	unsigned long long from, to, offset;
	struct region region = {.from = page, .to = page + 1, .page = page, .file = MEMORY};
	FILE *maps;
	int code = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s->pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		int n = sscanf(line, "%llx-%llx %*s %llx %*s %*s %4095[^\n]", &from, &to, &offset,
			       name);

		if (n < 3 || page < from >> TRACE_PAGE_SHIFT || page >= to >> TRACE_PAGE_SHIFT)
			continue;
		region.from = from >> TRACE_PAGE_SHIFT;
		region.to = to >> TRACE_PAGE_SHIFT;
		region.page = region.from;
		if (n == 4 && name[0] == '/') {
			region.page = offset >> TRACE_PAGE_SHIFT;
			code = file_id(s, name, &region.file);
		}
		break;
	}
	if (maps)
		fclose(maps);
	/* Parts of it may be known better already, by calls. */
	for (size_t i = 0; i < s->nr_regions; i++) {
		const struct region *r = &s->regions[i];

		if (r->to <= page && r->to > region.from) {
			region.page += r->to - region.from;
			region.from = r->to;
		}
		if (r->from > page && r->from < region.to)
			region.to = r->from;
	}
	return code ? code : add_region(s, &region);
}

static int find_place(struct lackey_source *s, uint64_t page, const struct place **place)
{
	struct place *p = &s->places[page % PAGES];
	const struct region *r;
	int code;

	*place = p;
	if (p->address == page + 1)
		return 0;
	r = find_region(s, page);
	if (!r) {
		code = ask_kernel(s, page);
		r = code ? NULL : find_region(s, page);
		if (!r)
			return code ? code : -EIO;
	}
	*p = (struct place){
		.address = page + 1, .page = r->page + (page - r->from), .file = r->file};
	return 0;
}

/* ---- accesses ---- */

static int record_work(struct lackey_source *s, uint64_t at_least)
{
	uint64_t ns = s->instructions * INSTRUCTION_PS / 1000;

	if (s->instructions < at_least || !ns)
		return 0;
	s->instructions = 0;
	return recording_work(s->recording, (uint32_t)s->pid, ns);
}

static int record_page(struct lackey_source *s, uint64_t page, enum trace_op op)
{
	const struct place *place;
	int code = find_place(s, page, &place);

	if (!code)
		code = record_work(s, WORK_MIN);
	if (code)
		return code;
	s->events++;
	return recording_access(s->recording, op, place->file, (uint32_t)s->pid, place->page,
				place->page);
}

static int touch(struct lackey_source *s, uint64_t page, enum trace_op op)
{
	struct touched now = {.page = page, .op = op};
	uint32_t at = 0;
	int code = 0;

	while (at < s->nr_window && s->window[at].page != page)
		at++;
	if (at < s->nr_window) {
		now = s->window[at];
		now.since = true;
		if (op == TRACE_STORE && now.op != TRACE_STORE) {
			now.op = op;
			now.since = false;
			code = record_page(s, page, op);
		}
	} else {
		if (s->nr_window == s->collapse) {
			at = s->nr_window - 1;
			if (s->window[at].since)
				code = record_page(s, s->window[at].page, s->window[at].op);
		} else {
			s->nr_window++;
		}
		if (!code)
			code = record_page(s, page, op);
	}
	memmove(s->window + 1, s->window, at * sizeof(*s->window));
	s->window[0] = now;
	return code;
}

/* " L 1ffeffe7e,8": one of I, L, S, M (load and store), the address, the bytes. */
static int take_access(struct lackey_source *s, const char *line)
{
	enum trace_op op = line[0] == 'I' ? TRACE_EXEC : line[1] == 'L' ? TRACE_LOAD : TRACE_STORE;
	char *end;
	uint64_t address = strtoull(line + 3, &end, 16), bytes, last;
	int code;

	if (*end != ',')
		return 0;
	s->instructions += op == TRACE_EXEC;
	bytes = strtoull(end + 1, NULL, 10);
	last = (address + (bytes ? bytes - 1 : 0)) >> TRACE_PAGE_SHIFT;
	code = touch(s, address >> TRACE_PAGE_SHIFT, op);
	if (!code && last != address >> TRACE_PAGE_SHIFT)
		code = touch(s, last, op);
	return code;
}

/* ---- calls ---- */

static bool result_of(const char *line, uint64_t *result)
{
	const char *text = strstr(line, "Success(");

	if (!text)
		return false;
	*result = strtoull(text + strlen("Success("), NULL, 16);
	return true;
}

static uint64_t pages_up(uint64_t bytes)
{
	return (bytes + (1 << TRACE_PAGE_SHIFT) - 1) >> TRACE_PAGE_SHIFT;
}

static int take_mmap(struct lackey_source *s, const char *arguments, uint64_t address)
{
	unsigned long long length, flags, fd, offset;
	struct region r = {.from = address >> TRACE_PAGE_SHIFT, .file = MEMORY};

	if (sscanf(arguments, " 0x%*x, %llu, %*u, %llu, %llu, %llu", &length, &flags, &fd,
		   &offset) != 4)
		return 0;
	r.to = r.from + pages_up(length);
	r.page = r.from;
	if (!(flags & MAP_ANONYMOUS) && fd < FDS && s->fds[fd].file) {
		r.file = s->fds[fd].file;
		r.page = offset >> TRACE_PAGE_SHIFT;
	}
	return map_range(s, &r);
}

/* What the kernel has moved is asked for again at the next touch. */
static int take_munmap(struct lackey_source *s, const char *arguments)
{
	unsigned long long address, length;

	if (sscanf(arguments, " 0x%llx, %llu", &address, &length) != 2)
		return 0;
	return unmap_range(s, address >> TRACE_PAGE_SHIFT,
			   (address >> TRACE_PAGE_SHIFT) + pages_up(length));
}

/* "( 4294967196, 0x4835540(/lib/x.so), 524288 )": remember the path for the result's line. */
static void take_open(struct lackey_source *s, const char *arguments)
{
	const char *from = strstr(arguments, "("), *to, *beside = NULL;
	unsigned long long fd;
	char folder[64];
	ssize_t n = 0;

	from = from ? strchr(from + 1, '(') : NULL;
	to = from ? strstr(from, "), ") : NULL;
	s->opening[0] = 0;
	if (!to || (size_t)(to - from) >= sizeof(s->opening) / 2)
		return;
	from++;
	if (*from != '/' && sscanf(arguments, " ( %llu", &fd) == 1 && fd < FDS && s->fds[fd].file)
		beside = names_get(&s->files, s->fds[fd].file - MEMORY);
	if (beside) {
		n = snprintf(s->opening, sizeof(s->opening) / 2, "%s/", beside);
		n = MIN(n, (ssize_t)sizeof(s->opening) / 2 - 1);
	} else if (*from != '/') {
		snprintf(folder, sizeof(folder), "/proc/%d/cwd", (int)s->pid);
		n = readlink(folder, s->opening, sizeof(s->opening) / 2);
		n = n > 0 ? n : 0;
		s->opening[n++] = '/';
	}
	memcpy(s->opening + n, from, (size_t)(to - from));
	s->opening[n + (to - from)] = 0;
}

/* What the kernel makes up has no pages. */
static bool is_file(const char *path)
{
	return *path && strncmp(path, "/proc/", 6) && strncmp(path, "/sys/", 5) &&
	       strncmp(path, "/dev/", 5);
}

static int take_opened(struct lackey_source *s, uint64_t fd)
{
	int code = 0;

	if (fd < FDS) {
		s->fds[fd] = (struct descriptor){0};
		code = is_file(s->opening) ? file_id(s, s->opening, &s->fds[fd].file) : 0;
	}
	s->opening[0] = 0;
	return code;
}

static struct descriptor *descriptor_of(struct lackey_source *s, uint64_t fd)
{
	return fd < FDS && s->fds[fd].file ? &s->fds[fd] : NULL;
}

/* "sys_pread64 ( 3, 0x4d45ff0, 4096, 8192 )", "sys_read ( 3, ...": remember it for its result. */
static void take_transfer(struct lackey_source *s, const char *name, const char *arguments)
{
	static const struct {
		const char *name;
		enum trace_op op;
		bool moves;
	} calls[] = {
		{"sys_read ", TRACE_READ, true},     {"sys_readv ", TRACE_READ, true},
		{"sys_write ", TRACE_WRITE, true},   {"sys_writev ", TRACE_WRITE, true},
		{"sys_pread64 ", TRACE_READ, false}, {"sys_pwrite64 ", TRACE_WRITE, false},
	};
	unsigned long long fd, at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (strncmp(name, calls[i].name, strlen(calls[i].name)) ||
		    sscanf(arguments, " %llu, 0x%*x, %*u, %llu", &fd, &at) < 1)
			continue;
		s->transfer = (struct transfer){.descriptor = descriptor_of(s, fd),
						.op = calls[i].op,
						.at = at,
						.moves = calls[i].moves};
		if (s->transfer.descriptor && calls[i].moves)
			s->transfer.at = s->transfer.descriptor->at;
	}
}

static int take_transferred(struct lackey_source *s, uint64_t bytes)
{
	const struct transfer t = s->transfer;
	int code = 0;

	s->transfer.descriptor = NULL;
	if (t.moves)
		t.descriptor->at = t.at + bytes;
	if (bytes)
		code = record_work(s, WORK_MIN);
	if (code || !bytes)
		return code;
	s->events++;
	return recording_access(s->recording, t.op, t.descriptor->file, (uint32_t)s->pid,
				t.at >> TRACE_PAGE_SHIFT, (t.at + bytes - 1) >> TRACE_PAGE_SHIFT);
}

/* What changes descriptors. */
static void take_descriptor(struct lackey_source *s, const char *name, const char *arguments,
			    uint64_t result)
{
	struct descriptor *d;
	unsigned long long fd, command = 0;
	bool dup = !strncmp(name, "sys_dup", strlen("sys_dup"));

	if (sscanf(arguments, " %llu, %llu", &fd, &command) < 1)
		return;
	if (!strncmp(name, "sys_fcntl", strlen("sys_fcntl")))
		dup = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
	d = descriptor_of(s, fd);
	if (d && !strncmp(name, "sys_lseek ", strlen("sys_lseek ")))
		d->at = result;
	else if (d && !strncmp(name, "sys_close ", strlen("sys_close ")))
		*d = (struct descriptor){0};
	else if (dup && result < FDS)
		s->fds[result] = d ? *d : (struct descriptor){0};
}

/* "SYSCALL[pid,thread](9) sys_mmap ( 0x0, 8192, 3, 34, 3, 0 ) --> [pre-success] Success(0x...)" */
static int take_call(struct lackey_source *s, const char *line)
{
	const char *name = strstr(line, ") "), *arguments;
	uint64_t result = 0;
	bool done = result_of(line, &result);

	if (!name)
		return 0;
	name += 2;
	arguments = strstr(name, " (");
	if (!strncmp(name, "sys_open", strlen("sys_open")) && arguments)
		take_open(s, arguments);
	if (done && s->opening[0])
		return take_opened(s, result);
	if (arguments)
		take_transfer(s, name, arguments + 2);
	if (strstr(line, "Failure("))
		s->transfer.descriptor = NULL;
	if (done && s->transfer.descriptor)
		return take_transferred(s, result);
	if (!arguments)
		return 0;
	arguments += 2;
	if (done)
		take_descriptor(s, name, arguments, result);
	if (!strncmp(name, "sys_mmap ", strlen("sys_mmap ")) && done)
		return take_mmap(s, arguments, result);
	if (!strncmp(name, "sys_munmap ", strlen("sys_munmap ")) ||
	    !strncmp(name, "sys_mremap ", strlen("sys_mremap ")))
		return take_munmap(s, arguments);
	return 0;
}

static int take_line(struct lackey_source *s, const char *line)
{
	if ((line[0] == 'I' || line[0] == ' ') && line[1] && line[2] == ' ')
		return take_access(s, line);
	return strncmp(line, "SYSCALL[", strlen("SYSCALL[")) ? 0 : take_call(s, line);
}

/* ---- the source ---- */

/* Whole lines of the buffer; what is left is the beginning of one. */
static int take_lines(struct lackey_source *s)
{
	char *from = s->buffer, *end = s->buffer + s->used, *stop;
	int code = 0;

	while (!code && (stop = memchr(from, '\n', (size_t)(end - from)))) {
		*stop = 0;
		code = take_line(s, from);
		from = stop + 1;
	}
	s->used = (size_t)(end - from);
	if (s->used == BUFFER)
		s->used = 0; /* no line is so long */
	memmove(s->buffer, from, s->used);
	return code;
}

static int name_what_runs(struct lackey_source *s)
{
	const char *name = strrchr(s->command, '/');
	int code;

	if (s->named)
		return 0;
	s->named = true;
	code = recording_process(s->recording, (uint32_t)s->pid, (uint32_t)s->pid,
				 name ? name + 1 : s->command);
	return code ? code : recording_file(s->recording, MEMORY, NULL, "memory");
}

static ssize_t lackey_poll(struct source *source, struct recording *recording, struct err *err)
{
	struct lackey_source *s = (struct lackey_source *)source;
	ssize_t n;
	int code;

	s->recording = recording;
	code = name_what_runs(s);
	n = code ? 0 : read(s->fd, s->buffer + s->used, BUFFER - s->used);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == 0 && !code)
		code = record_work(s, 1);
	if (n == 0 && !code)
		return -ENODATA;
	if (n < 0)
		return err_set(err, -errno, "from valgrind: %s", strerror(errno));
	s->used += (size_t)n;
	if (!code)
		code = take_lines(s);
	return code ? err_set(err, code, "from valgrind: %s", strerror(-code)) : n;
}

static int lackey_observe(struct source *source, pid_t pid, struct err *err)
{
	(void)err;
	((struct lackey_source *)source)->pid = pid;
	return 0;
}

static void lackey_load(struct source *source, struct source_load *load)
{
	*load = (struct source_load){.events = ((struct lackey_source *)source)->events};
}

static void lackey_close(struct source *source)
{
	struct lackey_source *s = (struct lackey_source *)source;

	if (s->fd >= 0)
		close(s->fd);
	names_free(&s->files);
	free(s->regions);
	free(s->command);
	free(s->buffer);
	free(s);
}

static const struct source_ops lackey_ops = {
	.observe = lackey_observe,
	.poll = lackey_poll,
	.load = lackey_load,
	.close = lackey_close,
};

int source_lackey_open(uint32_t collapse, const char *command, struct source **source, int *log,
		       struct err *err)
{
	struct lackey_source *s = calloc(1, sizeof(*s));
	int ends[2];

	if (!s)
		return err_set(err, -ENOMEM, "no memory");
	s->source.ops = &lackey_ops;
	s->fd = -1;
	s->collapse = collapse;
	s->command = strdup(command);
	s->buffer = malloc(BUFFER);
	if (!s->command || !s->buffer || pipe2(ends, O_CLOEXEC)) {
		lackey_close(&s->source);
		return err_set(err, -ENOMEM, "a pipe from valgrind: %s", strerror(errno));
	}
	s->fd = ends[0];
	fcntl(s->fd, F_SETFL, O_NONBLOCK);
	fcntl(s->fd, F_SETPIPE_SZ, PIPE_BYTES); /* fewer turns; what it has is enough, too */
	*log = ends[1];
	*source = &s->source;
	return 0;
}
