/* SPDX-License-Identifier: MIT
 *
 * foliage record: the page accesses of programs as they run, as a trace.
 *
 * Three ways to see them, one loop: BPF programs at the kernel's tracepoints, a preloaded library,
 * valgrind. The loop takes events from the source to the trace, ends a block every second so that
 * what there is stays readable, and stops when the observed are gone, when the time is over or when
 * it is told to.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "adapters/record/source.h"
#include "base/bits.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/record_command.h"
#include "cli/table.h"

enum { NAP_MS = 4, COLLAPSE = 16, COLLAPSE_MAX = 1024 };

static const char *const method_names[] = {"auto", "bpf", "preload", NULL};
enum method { METHOD_AUTO, METHOD_BPF, METHOD_PRELOAD, METHOD_MAPPED };

static const char *const writes_names[] = {"calls", "dirtied", "no", NULL};

struct request {
	const char *output, *method_name, *pids_text, *cgroup, *min_size, *buffer, *writes_name;
	uint64_t collapse;
	double seconds;
	bool mapped, quiet;
	enum method method;
	struct recording_options recording;
	struct source_options source;
	pid_t *pids;
	char **command; /* NULL-terminated; NULL: none */
};

struct session {
	const struct request *request;
	struct source *source;
	struct recording *recording;
	struct record_command command;
	char library[4096], environment[256];
	char **words;        /* the command line with valgrind in front */
	struct pollfd *ends; /* of the processes of --pid */
	double started, flushed, cpu;
	bool done, progress;
};

/* ---- the clock and the screen ---- */

static double seconds_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void show_progress(struct session *s, double passed)
{
	struct recording_counts counts;
	struct source_load load;
	char pages[32], lost[32];
	double cpu = seconds_now(CLOCK_PROCESS_CPUTIME_ID);

	s->source->ops->load(s->source, &load);
	if (!s->progress)
		return;
	recording_counts(s->recording, &counts);
	fprintf(stderr, "\r\033[K%s: %s pages, %s events lost, recorder %.0f%% of a processor",
		s->request->output, count_text(counts.pages, pages), count_text(load.lost, lost),
		100 * (cpu - s->cpu) / passed);
	if (load.ns_per_event > 0)
		fprintf(stderr, ", %.0f ns an event in the program", load.ns_per_event);
	s->cpu = cpu;
}

/* A trace without what was asked for must not look like one of a program that reads nothing. */
static void show_silence(const struct session *s, const struct source_load *load)
{
	if (load->silent)
		fprintf(stderr,
			"foliage: %s: the preloaded library was not let in: is %s static "
			"or set-uid?\n",
			s->request->output, s->request->command[0]);
}

static void show_summary(struct session *s, const struct recording_counts *counts,
			 const struct source_load *load)
{
	char text[TRACE_NR_OPS][32], files[32], processes[32], lost[32];

	if (s->progress)
		fputs("\r\033[K", stderr);
	show_silence(s, load);
	if (s->request->quiet && !load->lost)
		return;
	for (int op = 0; op < TRACE_NR_OPS; op++)
		count_text(counts->pages_by_op[op], text[op]);
	fprintf(stderr, "foliage: %s: pages: %s read, %s written", s->request->output,
		text[TRACE_READ], text[TRACE_WRITE]);
	fprintf(stderr, ", %s loaded, %s stored, %s executed", text[TRACE_LOAD], text[TRACE_STORE],
		text[TRACE_EXEC]);
	fprintf(stderr, "; %s files, %s processes; %s events lost\n",
		count_text(counts->files, files), count_text(counts->processes, processes),
		count_text(load->lost, lost));
}

/* ---- the loop ---- */

static bool observed_are_gone(struct session *s)
{
	const struct source_options *o = &s->request->source;
	size_t gone = 0;

	if (s->request->command)
		return record_command_ended(&s->command);
	if (!o->nr_pids || poll(s->ends, o->nr_pids, 0) < 0)
		return false;
	for (size_t i = 0; i < o->nr_pids; i++)
		gone += s->ends[i].revents != 0;
	return gone == o->nr_pids;
}

static int every_second(struct session *s, double now, struct err *err)
{
	double passed = now - s->flushed;

	if (passed < 1)
		return 0;
	s->flushed = now;
	show_progress(s, passed);
	return recording_flush(s->recording, err);
}

static void nap(void)
{
	const struct timespec t = {.tv_nsec = NAP_MS * 1000000};

	nanosleep(&t, NULL);
}

static int take_events(struct session *s, struct err *err)
{
	const double limit = s->request->seconds;
	int code = 0;
	bool last = false;

	while (!code && !s->done) {
		/* Asked before the events are taken: what came before the end is then there. */
		bool gone = last || observed_are_gone(s);
		ssize_t n = s->source->ops->poll(s->source, s->recording, err);
		double now = seconds_now(CLOCK_MONOTONIC);

		if (n == -ENODATA)
			s->done = true;
		else if (n < 0)
			code = (int)n;
		else if (gone && (last || !n))
			s->done = true;
		/* One more turn, for what a stop found under way. */
		last = cli_interrupted || (!isnan(limit) && now - s->started >= limit);
		if (!code && !s->done)
			code = every_second(s, now, err);
		if (!code && !s->done && !n && !last)
			nap();
	}
	return code;
}

/* ---- before and after ---- */

/* libfoliage-record.so: beside the tool, as it is built, or where the tool's installation has it. */
static int find_library(char *path, size_t bytes, struct err *err)
{
	const char *named = getenv("FOLIAGE_RECORD_LIBRARY");
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (named) {
		snprintf(path, bytes, "%s", named);
		return access(path, R_OK) ? err_set(err, -errno, "FOLIAGE_RECORD_LIBRARY: %s: %s",
						    named, strerror(errno))
					  : 0;
	}
	self[n > 0 ? n : 0] = 0;
	if (strrchr(self, '/'))
		*strrchr(self, '/') = 0;
	snprintf(path, bytes, "%.3000s/libfoliage-record.so", self);
	if (access(path, R_OK))
		snprintf(path, bytes, "%.3000s/../%s/libfoliage-record.so", self,
			 FOLIAGE_LIBRARY_DIR);
	return access(path, R_OK) ? err_set(err, -errno, "%s: %s", path, strerror(errno)) : 0;
}

static int open_preload(const struct request *request, struct session *s, struct err *err)
{
	int code = find_library(s->library, sizeof(s->library), err);

	if (!code)
		code = source_ring_open(&request->source, &s->source, s->environment,
					sizeof(s->environment), err);
	s->command.preload = s->library;
	s->command.environment = s->environment;
	return code;
}

/* The command line becomes valgrind's. */
static int open_valgrind(const struct request *request, struct session *s, struct err *err)
{
	static char *const words[] = {"valgrind", "--tool=lackey", "--trace-mem=yes",
				      "--trace-syscalls=yes", "--child-silent-after-fork=yes"};
	size_t nr = 0, at = ARRAY_SIZE(words);
	int code = record_command_check("valgrind", err);

	if (code)
		return err_set(err, code, "--mapped needs valgrind, which is not installed");
	code = source_lackey_open((uint32_t)request->collapse, request->command[0], &s->source,
				  &s->command.keep, err);
	if (code)
		return code;
	while (request->command[nr])
		nr++;
	s->words = calloc(at + nr + 2, sizeof(*s->words));
	if (!s->words)
		return err_set(err, -ENOMEM, "out of memory");
	memcpy(s->words, words, sizeof(words));
	snprintf(s->environment, sizeof(s->environment), "--log-fd=%d", s->command.keep);
	s->words[at++] = s->environment;
	memcpy(s->words + at, request->command, nr * sizeof(*s->words));
	s->command.argv = s->words;
	return 0;
}

static int open_source(const struct request *request, struct session *s, struct err *err)
{
	struct err why = {""};
	int code;

	if (request->method == METHOD_MAPPED)
		return open_valgrind(request, s, err);
	if (request->method == METHOD_PRELOAD)
		return open_preload(request, s, err);
	code = source_bpf_open(&request->source, &s->source, &why);
	if (!code)
		return 0;
	if (request->method == METHOD_BPF || !request->command ||
	    (code != -EPERM && code != -ENOTSUP))
		return err_set(err, code, "%s", why.text);
	if (!request->quiet)
		fprintf(stderr, "foliage: recording by a preloaded library: %s\n", why.text);
	return open_preload(request, s, err);
}

static int watch_ends(struct session *s, struct err *err)
{
	const struct source_options *o = &s->request->source;

	s->ends = calloc(o->nr_pids + 1, sizeof(*s->ends));
	if (!s->ends)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < o->nr_pids; i++) {
		s->ends[i].fd = (int)syscall(SYS_pidfd_open, o->pids[i], 0);
		s->ends[i].events = POLLIN;
		if (s->ends[i].fd < 0)
			return err_set(err, -errno, "--pid: process %d: %s", (int)o->pids[i],
				       strerror(errno));
	}
	return 0;
}

static int begin(const struct request *request, struct session *s, struct err *err)
{
	int code = watch_ends(s, err);

	s->command.argv = request->command;
	if (!code && request->command)
		code = record_command_check(request->command[0], err);
	if (!code)
		code = open_source(request, s, err);
	if (!code)
		code = recording_create(&request->recording, &s->recording, err);
	if (!code && request->command)
		code = record_command_start(&s->command, err);
	if (s->command.keep) {
		close(s->command.keep); /* the child has it now, and its end is the recording's */
		s->command.keep = 0;
	}
	if (!code && request->command && s->source->ops->observe)
		code = s->source->ops->observe(s->source, s->command.pid, err);
	if (!code && request->command)
		code = record_command_go(&s->command, err);
	s->started = s->flushed = seconds_now(CLOCK_MONOTONIC);
	s->cpu = seconds_now(CLOCK_PROCESS_CPUTIME_ID);
	return code;
}

static void clean_up(const struct request *request, struct session *s)
{
	record_command_stop(&s->command);
	if (s->source)
		s->source->ops->close(s->source);
	free(s->words);
	for (size_t i = 0; s->ends && i < request->source.nr_pids; i++) {
		if (s->ends[i].fd > 0)
			close(s->ends[i].fd);
	}
	free(s->ends);
}

/* The trace is kept whatever ends the recording, but for a command that never ran. */
static int record(const struct request *request, int *status, struct err *err)
{
	struct session s = {.request = request,
			    .progress = isatty(STDERR_FILENO) && !request->quiet};
	struct recording_counts counts;
	struct source_load load = {0};
	int code = begin(request, &s, err), end;

	if (code) {
		recording_discard(s.recording);
		clean_up(request, &s);
		return code;
	}
	code = take_events(&s, err);
	record_command_stop(&s.command);
	recording_counts(s.recording, &counts);
	s.source->ops->load(s.source, &load);
	end = recording_finish(s.recording, code ? NULL : err);
	if (!code && !end) {
		show_summary(&s, &counts, &load);
		*status = record_command_status(&s.command);
	}
	clean_up(request, &s);
	return code ? code : end;
}

/* ---- the command line ---- */

static int parse_pids(struct request *request, struct err *err)
{
	const char *text = request->pids_text;
	size_t nr = 1;

	for (const char *c = text; *c; c++)
		nr += *c == ',';
	request->pids = calloc(nr, sizeof(*request->pids));
	if (!request->pids)
		return err_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		size_t n = strcspn(text, ",");
		char one[32] = "";
		uint64_t pid = 0;
		int code;

		memcpy(one, text, MIN(n, sizeof(one) - 1));
		code = parse_count(one, "--pid", &pid, err);
		if (code)
			return code;
		if (!pid || pid > INT32_MAX)
			return err_set(err, -EINVAL, "--pid: no process has the number %s", one);
		request->pids[i] = (pid_t)pid;
		text += n + 1;
	}
	request->source.pids = request->pids;
	request->source.nr_pids = nr;
	return 0;
}

static int check_what(struct request *request, int operands, char **argv, struct err *err)
{
	int ways = (operands > 0) + (request->pids_text != NULL) + (request->cgroup != NULL);

	if (ways != 1)
		return err_set(err, -EINVAL,
			       "record: one of --pid, --cgroup and -- COMMAND is "
			       "needed (foliage help record)");
	if (operands)
		request->command = argv + 1;
	if (operands && !strcmp(request->output, "-"))
		return err_set(err, -EINVAL,
			       "record: standard output is the command's, "
			       "-o needs a file");
	if (request->method == METHOD_PRELOAD && !operands)
		return err_set(err, -EINVAL, "--method: preload can only observe a command");
	if (request->mapped && (!operands || request->method != METHOD_AUTO))
		return err_set(err, -EINVAL, "--mapped: needs a command, and no --method");
	if (request->mapped)
		request->method = METHOD_MAPPED;
	if (request->collapse < 1 || request->collapse > COLLAPSE_MAX)
		return err_set(err, -EINVAL, "--collapse: must be between 1 and %d", COLLAPSE_MAX);
	return request->pids_text ? parse_pids(request, err) : 0;
}

static int check_request(struct request *request, int operands, char **argv, struct err *err)
{
	int code = parse_choice(request->method_name, "--method", method_names, err);

	if (code < 0)
		return code;
	request->method = (enum method)code;
	code = parse_choice(request->writes_name, "--writes", writes_names, err);
	if (code < 0)
		return code;
	request->source.writes = (enum record_writes)code;
	request->source.cgroup = request->cgroup;
	request->recording.path = request->output;
	code = 0;
	if (request->min_size)
		code = parse_bytes(request->min_size, "--min-size", &request->source.min_size, err);
	if (!code && request->buffer)
		code = parse_bytes(request->buffer, "--buffer", &request->source.buffer, err);
	if (!code && !isnan(request->seconds) && !(request->seconds > 0))
		code = err_set(err, -EINVAL, "--seconds: must be above 0");
	return code ? code : check_what(request, operands, argv, err);
}

static void on_signal(int number)
{
	(void)number;
	cli_interrupted = 1;
}

/* A service manager's way to end it is as good as a person's. */
static void set_signals(void)
{
	const struct sigaction end = {.sa_handler = on_signal};

	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
}

static int record_main(int argc, char **argv)
{
	struct request request = {.output = "trace.foliage",
				  .method_name = "auto",
				  .writes_name = "calls",
				  .collapse = COLLAPSE,
				  .seconds = NAN};
	const struct option_spec specs[] = {
		{"output", 'o', OPTION_TEXT, &request.output},
		{"pid", 'p', OPTION_TEXT, &request.pids_text},
		{"cgroup", 0, OPTION_TEXT, &request.cgroup},
		{"method", 0, OPTION_TEXT, &request.method_name},
		{"mapped", 0, OPTION_FLAG, &request.mapped},
		{"collapse", 0, OPTION_COUNT, &request.collapse},
		{"file", 0, OPTION_TEXT, &request.recording.files},
		{"process", 0, OPTION_TEXT, &request.recording.processes},
		{"min-size", 0, OPTION_TEXT, &request.min_size},
		{"writes", 0, OPTION_TEXT, &request.writes_name},
		{"anonymize", 0, OPTION_FLAG, &request.recording.anonymize},
		{"seconds", 0, OPTION_REAL, &request.seconds},
		{"buffer", 0, OPTION_TEXT, &request.buffer},
		{"quiet", 'q', OPTION_FLAG, &request.quiet},
	};
	struct err err = {""};
	int operands = options_parse(argc, argv, specs, ARRAY_SIZE(specs), &err), status = 0;
	int code = operands < 0 ? operands : 0;

	if (!code) {
		argv[operands + 1] = NULL;
		code = check_request(&request, operands, argv, &err);
	}
	set_signals();
	if (!code)
		code = record(&request, &status, &err);
	free(request.pids);
	if (code)
		return cli_fail("%s", err.text[0] ? err.text : strerror(-code));
	return cli_interrupted ? 130 : status;
}

const struct command command_record = {
	.name = "record",
	.summary = "the page accesses of running programs, as a trace",
	.help = "usage: foliage record [OPTION]... -- COMMAND [ARGUMENT]...\n"
		"       foliage record [OPTION]... --pid PID,...\n"
		"       foliage record [OPTION]... --cgroup DIR\n"
		"\n"
		"Records which pages of which files programs read and write, hits in the page "
		"cache\n"
		"included, in the order in which they do, with the names of files and processes.\n"
		"Programs need no change and no debugging information.\n"
		"\n"
		"What to observe:\n"
		"  -- COMMAND          a command and the processes that it starts, from first to "
		"last\n"
		"  -p, --pid PID,...   running processes and those that they start from now on, "
		"until\n"
		"                      they have ended\n"
		"  --cgroup DIR        the processes of a cgroup (version 2) and of those below "
		"it\n"
		"  --seconds N         stop after so long\n"
		"\n"
		"How:\n"
		"  --method M          bpf: tracepoints of the kernel, needs root and Linux 6.11;\n"
		"                      preload: a library in the command, sees its file calls "
		"only;\n"
		"                      auto: bpf where it is allowed, else preload. Default: auto\n"
		"  --mapped            loads, stores and instructions through memory, file or not, "
		"of\n"
		"                      COMMAND (not of its children) under valgrind: exact, and "
		"some\n"
		"                      hundred times slower\n"
		"  --collapse N        with --mapped: pages that count as just touched, so that\n"
		"                      touching them again leaves no record. Default: 16\n"
		"  --writes W          bpf: calls: every write call; dirtied: only what makes a "
		"clean\n"
		"                      page dirty; no: none. Default: calls\n"
		"  --buffer SIZE       between the observed and the recorder. Default: 32M\n"
		"\n"
		"What to keep:\n"
		"  --file PATTERN,...  files whose whole path matches, as '*.db,/var/lib/*'\n"
		"  --process P,...     processes whose name matches\n"
		"  --min-size SIZE     files of at least so many bytes\n"
		"  --anonymize         names become hashes under a key that is forgotten at the "
		"end\n"
		"\n"
		"Output:\n"
		"  -o, --output FILE   the trace; packed when the name ends in .zst. Any format "
		"that\n"
		"                      `foliage convert` writes. Default: trace.foliage\n"
		"  -q, --quiet         no summary on standard error unless events were lost\n"
		"\n"
		"SIGINT and SIGTERM end a recording, and the trace is whole. After a crash what "
		"was written "
		"a\n"
		"second before is there: foliage info --trace-format foliage-partial FILE.\n"
		"\n"
		"Exit status:\n"
		"  0                   recorded\n"
		"  2                   bad input or a failure: one line on standard error, no "
		"output\n"
		"  130                 ended by a signal; the trace is whole\n"
		"  other               that of COMMAND, 128 and the signal's number if one ended "
		"it\n"
		"\n"
		"Examples:\n"
		"  foliage record -o db.foliage -- sqlite3 my.db 'SELECT count(*) FROM t'\n"
		"  foliage record --pid $(pidof redis-server) --seconds 60 --file '*.aof,*.rdb'\n",
	.run = record_main,
};
