/* SPDX-License-Identifier: MIT
 *
 * The guest's side of a comparison: executes a compiled scenario on the kernel that runs it and
 * records what the kernel did.
 *
 *     scenario SCENARIO OUT_DIRECTORY     run it scenario --copy FROM TO             copy the
 *     blocks that are not zero (a disk image onto the RAM disk)
 *
 * One process outside every measured group reads the scenario, holds the results and executes the
 * control lines; it hands runs of accesses to the scenario's processes, which were forked before
 * they joined their groups. So nothing of the measuring is charged to what is measured: scenario
 * and results are shared memory that the first process filled, and whose page tables each process
 * has built before it joined.
 *
 * An access is preceded by mincore() on the page: of a mapping that is only looked at when the
 * access is a read or a write, so that no page table ever holds the page.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload/scenario_format.h"

enum { PAGE = 4096, LINE = 512, LOG_BYTES = 16 << 20 };

static const char groups_root[] = "/sys/fs/cgroup";
static const char data_root[] = "/mnt/d";

struct order {
	uint64_t first, end; /* operations; first == end: exit */
	uint64_t access;     /* number of the first page access */
};

struct worker {
	int to, from; /* pipes */
	pid_t pid;
};

struct guest {
	const struct scenario_head *head;
	const struct scenario_file *files;
	const struct scenario_group *groups;
	const struct scenario_process *processes;
	const char *texts;
	const struct scenario_op *ops;
	unsigned char *missed, *resident;
	struct worker workers[SCENARIO_PROCESSES_MAX];
	FILE *log; /* kept in memory to the end: its pages would go through the CPU's add batch */
	char *log_buffer;
	/* Of a process: its own descriptors and mappings. */
	int fds[SCENARIO_FILES_MAX];
	char *maps[SCENARIO_FILES_MAX];
	char *buffer;
};

static void die(const char *what)
{
	fprintf(stderr, "scenario: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *shared_memory(size_t bytes)
{
	char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		die("mmap");
	memset(m, 0, bytes);
	return m;
}

static void load(struct guest *g, const char *path)
{
	struct stat st;
	size_t done = 0;
	ssize_t n;
	char *m;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		die(path);
	m = shared_memory((size_t)st.st_size + PAGE);
	while ((n = read(fd, m + done, (size_t)st.st_size - done)) > 0)
		done += (size_t)n;
	close(fd);
	g->head = (const struct scenario_head *)(const void *)m;
	if (done < sizeof(*g->head) || g->head->magic != SCENARIO_MAGIC) {
		errno = EINVAL;
		die(path);
	}
	g->files = (const void *)(g->head + 1);
	g->groups = (const void *)(g->files + g->head->nr_files);
	g->processes = (const void *)(g->groups + g->head->nr_groups);
	g->texts = (const void *)(g->processes + g->head->nr_processes);
	g->ops = (const void *)(g->texts + g->head->text_bytes);
	g->missed = shared_memory(g->head->nr_accesses + PAGE);
}

/* Build this process's page tables of the shared memory now. */
static void touch_shared(const struct guest *g)
{
	const char *first = (const char *)g->head;
	const char *end = (const char *)(g->ops + g->head->nr_ops);
	volatile char sink = 0;

	for (const char *at = first; at < end; at += PAGE)
		sink = (char)(sink + *at);
	for (uint64_t i = 0; i < g->head->nr_accesses + PAGE; i += PAGE)
		g->missed[i] = 0;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	ssize_t n = -1;

	if (fd >= 0) {
		n = write(fd, text, strlen(text));
		if (n < 0)
			n = -errno;
		close(fd);
	} else {
		n = -errno;
	}
	return n < 0 ? (int)n : 0;
}

/* ---- the files ---- */

static void make_file(const struct scenario_file *f)
{
	static char block[64 * PAGE];
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", data_root, f->name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	if (fd < 0)
		die(path);
	memset(block, 'x', sizeof(block));
	for (uint64_t done = 0; done < f->pages; done += 64) {
		size_t n = (f->pages - done < 64 ? f->pages - done : 64) * PAGE;

		if (write(fd, block, n) != (ssize_t)n)
			die(path);
	}
	fsync(fd);
	close(fd);
}

/* Pages of the file that are in memory, counted from outside the groups. */
static uint64_t resident(const struct guest *g, uint32_t file)
{
	uint64_t n = 0;

	if (mincore(g->maps[file], g->files[file].pages * PAGE, g->resident))
		die("mincore");
	for (uint64_t i = 0; i < g->files[file].pages; i++)
		n += g->resident[i] & 1;
	return n;
}

static void open_files(struct guest *g, int anon)
{
	for (uint32_t i = 0; i < g->head->nr_files; i++) {
		const struct scenario_file *f = &g->files[i];
		int prot = PROT_READ | PROT_WRITE | (f->kind == SCENARIO_FILE_EXEC ? PROT_EXEC : 0);
		char path[128];

		g->fds[i] = -1;
		if (f->kind == SCENARIO_ANON && !anon)
			continue;
		if (f->kind != SCENARIO_ANON) {
			snprintf(path, sizeof(path), "%s/%s", data_root, f->name);
			g->fds[i] = open(path, O_RDWR);
			if (g->fds[i] < 0)
				die(path);
			g->maps[i] = mmap(NULL, f->pages * PAGE, prot, MAP_SHARED, g->fds[i], 0);
		} else {
			g->maps[i] = mmap(NULL, f->pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS,
					  -1, 0);
			madvise(g->maps[i], f->pages * PAGE, MADV_NOHUGEPAGE);
		}
		if (g->maps[i] == MAP_FAILED)
			die("mmap");
	}
}

/* ---- what a process does ---- */

static int file_named(const struct guest *g, const char *name)
{
	for (uint32_t i = 0; i < g->head->nr_files; i++)
		if (!strcmp(g->files[i].name, name))
			return (int)i;
	errno = ENOENT;
	die(name);
	return -1;
}

static int advice_named(const char *name, int mapped)
{
	static const struct {
		const char *name;
		int fadvise, madvise;
	} table[] = {
		{"normal", POSIX_FADV_NORMAL, MADV_NORMAL},
		{"random", POSIX_FADV_RANDOM, MADV_RANDOM},
		{"sequential", POSIX_FADV_SEQUENTIAL, MADV_SEQUENTIAL},
		{"noreuse", POSIX_FADV_NOREUSE, -1},
		{"dontneed", POSIX_FADV_DONTNEED, MADV_DONTNEED},
		{"cold", -1, MADV_COLD},
		{"pageout", -1, MADV_PAGEOUT},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, name))
			return mapped ? table[i].madvise : table[i].fadvise;
	return -1;
}

static void process_text(struct guest *g, const char *text)
{
	char name[SCENARIO_NAME], advice[SCENARIO_NAME];
	unsigned long long first, nr;

	if (sscanf(text, "fsync %31s", name) == 1) {
		if (fsync(g->fds[file_named(g, name)]))
			die(text);
	} else if (sscanf(text, "fadvise %31s %31s", name, advice) == 2) {
		if (posix_fadvise(g->fds[file_named(g, name)], 0, 0, advice_named(advice, 0)))
			die(text);
	} else if (sscanf(text, "madvise %31s %llu %llu %31s", name, &first, &nr, advice) == 4) {
		if (madvise(g->maps[file_named(g, name)] + first * PAGE, nr * PAGE,
			    advice_named(advice, 1)))
			die(text);
	} else {
		errno = EINVAL;
		die(text);
	}
}

static void access_pages(struct guest *g, const struct scenario_op *op, uint64_t access)
{
	size_t bytes = (size_t)op->nr * PAGE;
	char *at = g->maps[op->file] + op->page * PAGE;
	off_t offset = (off_t)(op->page * PAGE);
	volatile char sink = 0;

	if (mincore(at, bytes, g->missed + access))
		die("mincore");
	for (uint32_t i = 0; i < op->nr; i++)
		g->missed[access + i] = !(g->missed[access + i] & 1);
	switch (op->code) {
	case SCENARIO_READ:
		if (pread(g->fds[op->file], g->buffer, bytes, offset) != (ssize_t)bytes)
			die("pread");
		break;
	case SCENARIO_WRITE:
		if (pwrite(g->fds[op->file], g->buffer, bytes, offset) != (ssize_t)bytes)
			die("pwrite");
		break;
	case SCENARIO_LOAD:
		for (uint32_t i = 0; i < op->nr; i++)
			sink = (char)(sink + at[(size_t)i * PAGE]);
		break;
	case SCENARIO_STORE:
		/* Contents that zram can halve but not drop: half noise, half zero. */
		for (uint32_t i = 0; i < op->nr; i++) {
			uint64_t *words = (uint64_t *)(void *)(at + (size_t)i * PAGE),
				 s = op->page + i;

			for (int w = 0; words[0] == 0 && w < PAGE / 16; w++)
				words[w + 1] = s =
					s * UINT64_C(6364136223846793005) + 1442695040888963407u;
			words[0]++;
		}
		break;
	}
}

static void execute(struct guest *g, const struct order *o)
{
	uint64_t access = o->access;

	for (uint64_t i = o->first; i < o->end; i++) {
		const struct scenario_op *op = &g->ops[i];

		if (op->code == SCENARIO_PROCESS) {
			process_text(g, g->texts + op->page);
			continue;
		}
		access_pages(g, op, access);
		access += op->nr;
	}
}

/* Make every private page of this process its own now, while somebody else pays for it: stack,
 * data, heap. */
static void settle(void)
{
	static char maps[16 * PAGE];
	char deep[16 * PAGE], *line, *save = NULL;
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t done = 0;
	ssize_t n;

	memset(deep, 1, sizeof(deep));
	__asm__ volatile("" : : "r"(deep) : "memory");
	while (fd >= 0 && (n = read(fd, maps + done, sizeof(maps) - 1 - done)) > 0)
		done += (size_t)n;
	close(fd);
	maps[done] = '\0';
	for (line = strtok_r(maps, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long start, end;
		char rights[8];

		if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 &&
		    !strcmp(rights, "rw-p"))
			madvise((void *)start, end - start, MADV_POPULATE_WRITE);
	}
}

static void worker_main(struct guest *g, uint32_t process, int from, int to)
{
	char path[128], pid[32];
	struct order o;

	/* Everything that the work needs and that is not the work, before joining the group. */
	settle();
	open_files(g, 1);
	g->buffer =
		mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(g->buffer, 1024 * PAGE, MADV_NOHUGEPAGE);
	memset(g->buffer, 1, 64 * PAGE);
	touch_shared(g);
	snprintf(path, sizeof(path), "%s/%s/cgroup.procs", groups_root,
		 g->groups[g->processes[process].group].path);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (write_text(path, pid))
		die(path);
	if (write(to, "r", 1) != 1)
		die("pipe");
	while (read(from, &o, sizeof(o)) == (ssize_t)sizeof(o) && o.first != o.end) {
		execute(g, &o);
		if (write(to, "d", 1) != 1)
			die("pipe");
	}
	exit(0);
}

static void start_workers(struct guest *g)
{
	for (uint32_t i = 0; i < g->head->nr_processes; i++) {
		int to[2], from[2];
		char ready;

		if (pipe(to) || pipe(from))
			die("pipe");
		fflush(NULL);
		g->workers[i].pid = fork();
		if (g->workers[i].pid < 0)
			die("fork");
		if (!g->workers[i].pid)
			worker_main(g, i, to[0], from[1]);
		close(to[0]);
		close(from[1]);
		g->workers[i].to = to[1];
		g->workers[i].from = from[0];
		if (read(from[0], &ready, 1) != 1)
			die("a process did not start");
	}
}

/* ---- control lines ---- */

static void copy_lines(struct guest *g, const char *path, const char *prefix)
{
	char line[LINE];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		fprintf(g->log, "%s%s", prefix, line);
	if (f)
		fclose(f);
}

static void record_stat(struct guest *g, const char *label)
{
	char path[192], prefix[128];

	fprintf(g->log, "stat %s\n", label);
	for (uint32_t i = 0; i < g->head->nr_files; i++)
		if (g->files[i].kind != SCENARIO_ANON)
			fprintf(g->log, " resident %s %llu\n", g->files[i].name,
				(unsigned long long)resident(g, i));
	for (uint32_t i = 0; i < g->head->nr_groups; i++) {
		snprintf(prefix, sizeof(prefix), " group %s ", g->groups[i].path);
		snprintf(path, sizeof(path), "%s/%s/memory.stat", groups_root, g->groups[i].path);
		copy_lines(g, path, prefix);
		snprintf(prefix, sizeof(prefix), " group %s memory.current ", g->groups[i].path);
		snprintf(path, sizeof(path), "%s/%s/memory.current", groups_root,
			 g->groups[i].path);
		copy_lines(g, path, prefix);
		snprintf(prefix, sizeof(prefix), " group %s memory.events ", g->groups[i].path);
		snprintf(path, sizeof(path), "%s/%s/memory.events.local", groups_root,
			 g->groups[i].path);
		copy_lines(g, path, prefix);
	}
}

/* The groups' part of lru_gen_full; everything else in it is not the scenario's. */
static void record_dump(struct guest *g, const char *label)
{
	FILE *f = fopen("/sys/kernel/debug/lru_gen_full", "r");
	char line[LINE], path[128];
	int wanted = 0;

	fprintf(g->log, "dump %s\n", label);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "memcg", 5)) {
			wanted = 0;
			for (uint32_t i = 0; i < g->head->nr_groups; i++)
				wanted |= sscanf(line, "memcg %*u /%127s", path) == 1 &&
					  !strcmp(path, g->groups[i].path);
		}
		if (wanted)
			fprintf(g->log, " %s", line);
	}
	if (f)
		fclose(f);
}

/* Group's memcg number and youngest generation, out of lru_gen. */
static void find_group(const char *group, unsigned int *id, unsigned long long *max_seq)
{
	FILE *f = fopen("/sys/kernel/debug/lru_gen", "r");
	unsigned long long seq;
	unsigned int number;
	char line[LINE], path[128];
	int wanted = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "memcg %u /%127s", &number, path) == 2) {
			wanted = !strcmp(path, group);
			if (wanted)
				*id = number;
		} else if (!strncmp(line, "memcg", 5)) {
			wanted = 0;
		} else if (wanted && sscanf(line, " %llu", &seq) == 1) {
			*max_seq = seq;
		}
	}
	if (f)
		fclose(f);
}

/* lru_gen SIGN GROUP BACK [rest]: the command for generation max_seq - BACK. */
static void lru_gen_command(struct guest *g, char sign, const char *group, int back,
			    const char *rest)
{
	char command[LINE];
	unsigned long long max_seq = 0;
	unsigned int id = 0;

	find_group(group, &id, &max_seq);
	snprintf(command, sizeof(command), "%c %u 0 %llu%s", sign, id,
		 max_seq - (unsigned long long)back, rest);
	fprintf(g->log, "command %c %s %d%s: %d\n", sign, group, back, rest,
		write_text("/sys/kernel/debug/lru_gen", command));
}

static void set_knob(const char *name, const char *value)
{
	static const struct {
		const char *name, *path;
	} table[] = {
		{"swappiness", "/proc/sys/vm/swappiness"},
		{"fault_around", "/sys/kernel/debug/fault_around_bytes"},
		{"read_ahead_kb", "/sys/block/ram0/queue/read_ahead_kb"},
		{"lru_gen", "/sys/kernel/mm/lru_gen/enabled"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, name)) {
			int rc = write_text(table[i].path, value);

			if (rc) {
				errno = -rc;
				die(table[i].path);
			}
			return;
		}
	errno = EINVAL;
	die(name);
}

static void control_text(struct guest *g, const char *text)
{
	char a[64], b[64], c[64], path[192];
	int back, at = 0, rc;

	if (sscanf(text, "stat %63s", a) == 1) {
		record_stat(g, a);
	} else if (sscanf(text, "dump %63s", a) == 1) {
		record_dump(g, a);
	} else if (!strcmp(text, "flush")) {
		char block[PAGE];

		for (uint32_t i = 0; i < g->head->nr_groups; i++) {
			int fd;

			snprintf(path, sizeof(path), "%s/%s/memory.stat", groups_root,
				 g->groups[i].path);
			fd = open(path, O_RDONLY);
			while (fd >= 0 && read(fd, block, sizeof(block)) > 0)
				;
			close(fd);
		}
	} else if (sscanf(text, "lru_gen %1s %63s %d%n", a, b, &back, &at) == 3) {
		lru_gen_command(g, a[0], b, back, text + at);
	} else if (sscanf(text, "knob %63s %63s", a, b) == 2) {
		set_knob(a, b);
	} else if (sscanf(text, "set %63s %63s %63s", a, b, c) == 3) {
		snprintf(path, sizeof(path), "%s/%s/%s", groups_root, a, b);
		rc = write_text(path, c);
		if (rc) {
			errno = -rc;
			die(path);
		}
	} else if (sscanf(text, "reclaim %63s %n", a, &at) == 1) {
		snprintf(path, sizeof(path), "%s/%s/memory.reclaim", groups_root, a);
		rc = write_text(path, text + at);
		fprintf(g->log, "command %s: %d\n", text, rc);
	} else if (sscanf(text, "sleep %d", &back) == 1) {
		usleep((useconds_t)back * 1000);
	} else {
		errno = EINVAL;
		die(text);
	}
}

/* ---- the run ---- */

static void hand_over(struct guest *g, uint32_t process, const struct order *o)
{
	struct worker *w = &g->workers[process];
	char done;

	if (write(w->to, o, sizeof(*o)) != (ssize_t)sizeof(*o) || read(w->from, &done, 1) != 1) {
		int status = 0;

		waitpid(w->pid, &status, 0);
		fprintf(stderr, "scenario: process %u ended, status 0x%x\n", process,
			(unsigned int)status);
		exit(1);
	}
}

static void run(struct guest *g)
{
	uint64_t access = 0, i = 0;

	while (i < g->head->nr_ops) {
		struct order o = {i, i, access};
		uint8_t process = g->ops[i].process;

		if (g->ops[i].code == SCENARIO_CONTROL) {
			control_text(g, g->texts + g->ops[i++].page);
			continue;
		}
		/* Not before: an open file keeps the readahead size that it found. */
		if (!g->workers[0].pid)
			start_workers(g);
		for (; i < g->head->nr_ops && g->ops[i].code != SCENARIO_CONTROL &&
		       g->ops[i].process == process;
		     i++)
			if (g->ops[i].code < SCENARIO_NR_ACCESSES)
				access += g->ops[i].nr;
		o.end = i;
		hand_over(g, process, &o);
	}
	for (uint32_t p = 0; g->workers[0].pid && p < g->head->nr_processes; p++) {
		struct order o = {0};

		if (write(g->workers[p].to, &o, sizeof(o)) != (ssize_t)sizeof(o))
			die("pipe");
		waitpid(g->workers[p].pid, NULL, 0);
	}
}

/* A group with children can hold no process of its own. */
static int has_children(const struct guest *g, const char *group)
{
	size_t n = strlen(group);

	for (uint32_t i = 0; i < g->head->nr_groups; i++)
		if (!strncmp(g->groups[i].path, group, n) && g->groups[i].path[n] == '/')
			return 1;
	return 0;
}

static void make_groups(const struct guest *g)
{
	char path[192];

	for (uint32_t i = 0; i < g->head->nr_groups; i++) {
		snprintf(path, sizeof(path), "%s/%s", groups_root, g->groups[i].path);
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path);
		if (!has_children(g, g->groups[i].path))
			continue;
		strncat(path, "/cgroup.subtree_control", sizeof(path) - strlen(path) - 1);
		if (write_text(path, "+memory"))
			die(path);
	}
}

/* Everything that recording touches is touched now: a page that this process faults in later would
 * push the measured ones through the CPU's add batch. */
static void rehearse(struct guest *g)
{
	uint64_t pages = 1;

	for (uint32_t i = 0; i < g->head->nr_files; i++)
		pages = g->files[i].pages > pages ? g->files[i].pages : pages;
	g->resident = shared_memory(pages);
	g->log = fmemopen(g->log_buffer, LOG_BYTES, "w");
	if (!g->log)
		die("fmemopen");
	record_stat(g, "rehearsal");
	record_dump(g, "rehearsal");
	fflush(g->log);
	rewind(g->log);
}

static void write_file(const char *directory, const char *name, const void *data, size_t bytes)
{
	char path[192];
	size_t done = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	if (fd < 0)
		die(path);
	while (done < bytes) {
		ssize_t n = write(fd, (const char *)data + done, bytes - done);

		if (n <= 0)
			die(path);
		done += (size_t)n;
	}
	close(fd);
}

static void write_results(struct guest *g, const char *directory)
{
	long bytes;

	fflush(g->log);
	bytes = ftell(g->log);
	if (bytes < 0 || bytes >= LOG_BYTES)
		die("log");
	write_file(directory, "log", g->log_buffer, (size_t)bytes);
	write_file(directory, "missed", g->missed, g->head->nr_accesses);
}

static int copy_image(const char *from, const char *to)
{
	static char block[16 * PAGE], zero[16 * PAGE];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY);
	off_t at = 0;
	ssize_t n;

	if (in < 0 || out < 0)
		die(in < 0 ? from : to);
	while ((n = read(in, block, sizeof(block))) > 0) {
		if (memcmp(block, zero, (size_t)n) && pwrite(out, block, (size_t)n, at) != n)
			die(to);
		at += n;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct guest g;
	cpu_set_t cpu;

	if (argc == 4 && !strcmp(argv[1], "--copy"))
		return copy_image(argv[2], argv[3]);
	if (argc != 3)
		return 2;
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	load(&g, argv[1]);
	g.log_buffer = shared_memory(LOG_BYTES);
	for (uint32_t i = 0; i < g.head->nr_files; i++)
		if (g.files[i].kind != SCENARIO_ANON)
			make_file(&g.files[i]);
	write_text("/proc/sys/vm/drop_caches", "3");
	make_groups(&g);
	open_files(&g, 0);
	rehearse(&g);
	run(&g);
	copy_lines(&g, "/proc/vmstat", "vmstat ");
	write_results(&g, argv[2]);
	return 0;
}
