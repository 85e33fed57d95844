/* SPDX-License-Identifier: MIT
 *
 * The compiler of scenario texts: declarations become tables, generators become accesses,
 * everything else becomes a text that an operation names.
 *
 *     file NAME PAGES | exec NAME PAGES | anon NAME PAGES group PATH | process NAME GROUP zipf GEN
 *     FILE OP N THETA SEED PERMSEED uniform GEN FILE OP FIRST N SEED scan GEN FILE OP FIRST N
 *     PAGES_A_CALL trace GEN FILE OP PATH                    any trace that Foliage reads; pages
 *     modulo the file's as PROCESS                                who does what follows run COUNT
 *     GEN[*WEIGHT] ...                COUNT requests, the generators taking turns by weight do
 *     PROCESS-LINE                           fsync FILE, fadvise FILE ADVICE, madvise FILE FIRST N
 *     ADVICE repeat N ... end                          the lines between, N times; generators go on
 *     where they were lru y|n, zram BYTES, policy TEXT, tlb N   the machine expect agree PERCENT
 *     accesses that must agree expect within PERCENT                     how far refaults and
 *     pgsteal may be off expect room PAGES                         the room is known to so many
 *     pages only: the best is judged anything else                             a control line:
 *     stat, dump, flush, knob, set, reclaim,
 *                                               lru_gen, sleep
 */
#include "workload/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "trace/trace.h"
#include "workload/zipf_oracle.h"

enum { LINE_MAX_BYTES = 512, WORDS_MAX = 24, GENERATORS_MAX = 32, REPEAT_DEPTH = 4 };

enum generator_kind { GEN_ZIPF, GEN_UNIFORM, GEN_SCAN, GEN_TRACE };

struct generator {
	char name[SCENARIO_NAME];
	enum generator_kind kind;
	uint16_t file;
	uint8_t op;
	uint64_t first, n, at, state;
	uint32_t nr; /* pages a request */
	struct zipf_oracle zipf;
	struct trace *trace;
	struct trace_record record;
	bool own_ops; /* the trace says what each access is */
};

struct compiler {
	const char *path;
	unsigned int line;
	struct scenario *s;
	struct err *err;
	uint8_t process;
	struct generator generators[GENERATORS_MAX];
	uint32_t nr_generators;
	struct {
		long at;
		unsigned int line;
		uint64_t left;
	} repeats[REPEAT_DEPTH];
	uint32_t depth;
	FILE *in;
};

static int bad(struct compiler *c, const char *what, const char *word)
{
	return err_set(c->err, -EILSEQ, "%s: line %u: %s%s%s", c->path, c->line, what,
		       word ? ": " : "", word ? word : "");
}

static bool number(const char *word, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)*word))
		return false;
	*n = strtoull(word, &end, 0);
	if (*end == 'k')
		*n <<= 10, end++;
	else if (*end == 'M')
		*n <<= 20, end++;
	else if (*end == 'G')
		*n <<= 30, end++;
	return !*end;
}

static int add_op(struct compiler *c, const struct scenario_op *op)
{
	struct scenario *s = c->s;

	if (s->head.nr_ops == s->ops_room) {
		size_t room = s->ops_room ? 2 * s->ops_room : 4096;
		struct scenario_op *ops = realloc(s->ops, room * sizeof(*ops));

		if (!ops)
			return err_set(c->err, -ENOMEM, "%s: out of memory", c->path);
		s->ops = ops;
		s->ops_room = room;
	}
	s->ops[s->head.nr_ops++] = *op;
	if (op->code < SCENARIO_NR_ACCESSES)
		s->head.nr_accesses += op->nr;
	return 0;
}

static int add_text(struct compiler *c, uint8_t code, const char *text)
{
	struct scenario *s = c->s;
	size_t bytes = strlen(text) + 1;
	struct scenario_op op = {.code = code, .process = c->process, .page = s->head.text_bytes};

	if (s->head.text_bytes + bytes + 8 > s->texts_room) {
		size_t room = 2 * s->texts_room + bytes + 4096;
		char *texts = realloc(s->texts, room);

		if (!texts)
			return err_set(c->err, -ENOMEM, "%s: out of memory", c->path);
		s->texts = texts;
		s->texts_room = room;
	}
	memcpy(s->texts + s->head.text_bytes, text, bytes);
	s->head.text_bytes += (uint32_t)bytes;
	return add_op(c, &op);
}

/* ---- names ---- */

static bool put_name(char *to, const char *name)
{
	size_t n = strlen(name);

	if (n >= SCENARIO_NAME)
		return false;
	memcpy(to, name, n + 1);
	return true;
}

static int find_file(const struct scenario *s, const char *name)
{
	for (uint32_t i = 0; i < s->head.nr_files; i++)
		if (!strcmp(s->files[i].name, name))
			return (int)i;
	return -1;
}

static int find_op(const char *name)
{
	static const char *const names[SCENARIO_NR_ACCESSES] = {"read", "write", "load", "store"};

	for (int i = 0; i < SCENARIO_NR_ACCESSES; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* ---- generators ---- */

static int start_generator(struct compiler *c, struct generator *g, char **words, int n)
{
	uint64_t v[4] = {0};
	int numbers = g->kind == GEN_TRACE ? 0 : n - 4;

	if (g->kind == GEN_ZIPF) {
		if (n != 8 || !number(words[4], &g->n) || !number(words[6], &v[0]) ||
		    !number(words[7], &v[1]))
			return bad(c, "zipf GEN FILE OP N THETA SEED PERMSEED", NULL);
		if (zipf_oracle_init(&g->zipf, (uint32_t)g->n, strtod(words[5], NULL), v[0], v[1]))
			return bad(c, "not a zipf distribution", words[5]);
		return 0;
	}
	if (g->kind == GEN_TRACE) {
		g->own_ops = !strcmp(words[3], "its");
		return n == 5 ? trace_open(words[4], NULL, &g->trace, c->err)
			      : bad(c, "trace GEN FILE OP|its PATH", NULL);
	}
	if (numbers != 3)
		return bad(c, "three numbers are needed", words[0]);
	for (int i = 0; i < 3; i++)
		if (!number(words[4 + i], &v[i]))
			return bad(c, "not a number", words[4 + i]);
	g->first = v[0];
	g->n = v[1];
	if (g->kind == GEN_SCAN)
		g->nr = (uint32_t)v[2];
	g->state = v[2];
	return !g->n || !g->nr || g->nr > 64 ? bad(c, "nothing to choose from", words[1]) : 0;
}

static int add_generator(struct compiler *c, enum generator_kind kind, char **words, int n)
{
	struct generator *g = &c->generators[c->nr_generators];
	int file = n > 3 ? find_file(c->s, words[2]) : -1, op = n > 3 ? find_op(words[3]) : -1;
	int rc;

	if (c->nr_generators == GENERATORS_MAX)
		return bad(c, "too many generators", NULL);
	if (file < 0 || (op < 0 && kind != GEN_TRACE))
		return bad(c, "GEN FILE OP expected, with a file declared above",
			   n > 2 ? words[2] : NULL);
	*g = (struct generator){
		.kind = kind, .file = (uint16_t)file, .op = (uint8_t)MAX(op, 0), .nr = 1};
	if (!put_name(g->name, words[1]))
		return bad(c, "name too long", words[1]);
	rc = start_generator(c, g, words, n);
	if (!rc && kind != GEN_TRACE && g->first + g->n > c->s->files[file].pages)
		rc = bad(c, "beyond the end of the file", words[2]);
	c->nr_generators++;
	return rc;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* The trace's next page; -ENODATA at its end. */
static int next_of_trace(struct compiler *c, struct generator *g, struct scenario_op *op)
{
	static const uint8_t codes[TRACE_NR_OPS] = {SCENARIO_READ, SCENARIO_WRITE, SCENARIO_LOAD,
						    SCENARIO_STORE, SCENARIO_LOAD};

	while (!g->record.nr) {
		ssize_t n = trace_read(g->trace, &g->record, 1, c->err);

		if (n <= 0)
			return n ? (int)n : -ENODATA;
	}
	op->page = g->record.page++ % c->s->files[g->file].pages;
	g->record.nr--;
	if (g->own_ops)
		op->code = codes[g->record.op];
	return 0;
}

static int next_access(struct compiler *c, struct generator *g)
{
	struct scenario_op op = {
		.code = g->op, .process = c->process, .file = g->file, .nr = g->nr};
	uint32_t page;
	int rc;

	switch (g->kind) {
	case GEN_ZIPF:
		zipf_oracle_fill(&g->zipf, &page, 1);
		op.page = page;
		break;
	case GEN_UNIFORM:
		op.page = g->first + next_random(&g->state) % g->n;
		break;
	case GEN_SCAN:
		op.nr = (uint32_t)MIN((uint64_t)g->nr, g->n - g->at);
		op.page = g->first + g->at;
		g->at = (g->at + op.nr) % g->n;
		break;
	case GEN_TRACE:
		rc = next_of_trace(c, g, &op);
		if (rc)
			return rc;
		break;
	}
	return add_op(c, &op);
}

static int run_generators(struct compiler *c, char **words, int n)
{
	struct generator *turns[WORDS_MAX];
	uint64_t weights[WORDS_MAX], count;
	int rc = 0;

	if (n < 3 || !number(words[1], &count))
		return bad(c, "run COUNT GEN[*WEIGHT] ...", NULL);
	for (int i = 2; i < n; i++) {
		char *star = strchr(words[i], '*');

		weights[i - 2] = 1;
		if (star && !number(star + 1, &weights[i - 2]))
			return bad(c, "not a weight", star);
		if (star)
			*star = '\0';
		turns[i - 2] = NULL;
		for (uint32_t k = 0; k < c->nr_generators; k++)
			if (!strcmp(c->generators[k].name, words[i]))
				turns[i - 2] = &c->generators[k];
		if (!turns[i - 2])
			return bad(c, "unknown generator", words[i]);
	}
	while (count && !rc)
		for (int i = 0; i < n - 2 && !rc; i++)
			for (uint64_t k = 0; k < weights[i] && count && !rc; k++, count--)
				rc = next_access(c, turns[i]);
	return rc == -ENODATA ? 0 : rc;
}

/* ---- lines ---- */

static int declare_file(struct compiler *c, enum scenario_kind kind, char **words, int n)
{
	struct scenario_file *f = &c->s->files[c->s->head.nr_files];

	if (c->s->head.nr_files == SCENARIO_FILES_MAX || n != 3)
		return bad(c, "NAME PAGES expected, or too many files", NULL);
	*f = (struct scenario_file){.kind = kind};
	if (!put_name(f->name, words[1]) || !number(words[2], &f->pages) || !f->pages)
		return bad(c, "NAME PAGES expected", words[1]);
	c->s->head.nr_files++;
	return 0;
}

static int declare_group(struct compiler *c, char **words, int n)
{
	if (c->s->head.nr_groups == SCENARIO_GROUPS_MAX || n != 2 ||
	    !put_name(c->s->groups[c->s->head.nr_groups].path, words[1]))
		return bad(c, "group PATH, or too many groups", NULL);
	c->s->head.nr_groups++;
	return 0;
}

static int declare_process(struct compiler *c, char **words, int n)
{
	struct scenario_process *p = &c->s->processes[c->s->head.nr_processes];

	if (c->s->head.nr_processes == SCENARIO_PROCESSES_MAX || n != 3 ||
	    !put_name(p->name, words[1]))
		return bad(c, "process NAME GROUP, or too many processes", NULL);
	for (p->group = 0; p->group < c->s->head.nr_groups; p->group++)
		if (!strcmp(c->s->groups[p->group].path, words[2]))
			break;
	if (p->group == c->s->head.nr_groups)
		return bad(c, "unknown group", words[2]);
	c->process = (uint8_t)c->s->head.nr_processes++;
	return 0;
}

static int switch_process(struct compiler *c, const char *name)
{
	for (uint32_t i = 0; i < c->s->head.nr_processes; i++)
		if (!strcmp(c->s->processes[i].name, name)) {
			c->process = (uint8_t)i;
			return 0;
		}
	return bad(c, "unknown process", name);
}

static int repeat(struct compiler *c, char **words, int n)
{
	uint64_t left;

	if (!strcmp(words[0], "repeat")) {
		if (n != 2 || !number(words[1], &left) || !left || c->depth == REPEAT_DEPTH)
			return bad(c, "repeat N, or too deep", NULL);
		c->repeats[c->depth].at = ftell(c->in);
		c->repeats[c->depth].line = c->line;
		c->repeats[c->depth++].left = left;
		return 0;
	}
	if (!c->depth)
		return bad(c, "end of no repeat", NULL);
	if (--c->repeats[c->depth - 1].left == 0) {
		c->depth--;
	} else {
		if (fseek(c->in, c->repeats[c->depth - 1].at, SEEK_SET))
			return bad(c, strerror(errno), NULL);
		c->line = c->repeats[c->depth - 1].line;
	}
	return 0;
}

static int machine(struct compiler *c, char **words, int n)
{
	if (n != 2)
		return bad(c, "one word expected", words[0]);
	if (!strcmp(words[0], "zram"))
		return number(words[1], &c->s->zram) ? 0 : bad(c, "not a size", words[1]);
	if (!strcmp(words[0], "tlb")) {
		uint64_t entries;

		if (!number(words[1], &entries) || entries & (entries - 1) || entries > UINT32_MAX)
			return bad(c, "not a power of two", words[1]);
		c->s->tlb = (uint32_t)entries;
		return 0;
	}
	if (!strcmp(words[0], "lru"))
		snprintf(c->s->lru, sizeof(c->s->lru), "%s", words[1]);
	else
		snprintf(c->s->policy, sizeof(c->s->policy), "%s", words[1]);
	return 0;
}

static int expect(struct compiler *c, char **words, int n)
{
	char *end = NULL;
	double percent = n == 3 ? strtod(words[2], &end) : 0;

	if (n != 3 || *end || percent <= 0)
		return bad(c, "expect agree|within PERCENT, expect room PAGES", NULL);
	if (!strcmp(words[1], "agree"))
		c->s->agree = percent;
	else if (!strcmp(words[1], "within"))
		c->s->within = percent;
	else if (!strcmp(words[1], "room") && percent <= 8)
		c->s->room_within = (int)percent;
	else
		return bad(c, "expect agree|within PERCENT, expect room PAGES", words[1]);
	return 0;
}

static int compile_words(struct compiler *c, char **words, int n, const char *line)
{
	static const struct {
		const char *word;
		enum scenario_kind kind;
	} kinds[] = {
		{"file", SCENARIO_FILE}, {"exec", SCENARIO_FILE_EXEC}, {"anon", SCENARIO_ANON}};
	static const char *const generators[] = {"zipf", "uniform", "scan", "trace"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(words[0], kinds[i].word))
			return declare_file(c, kinds[i].kind, words, n);
	for (size_t i = 0; i < ARRAY_SIZE(generators); i++)
		if (!strcmp(words[0], generators[i]))
			return add_generator(c, (enum generator_kind)i, words, n);
	if (!strcmp(words[0], "group"))
		return declare_group(c, words, n);
	if (!strcmp(words[0], "process"))
		return declare_process(c, words, n);
	if (!strcmp(words[0], "as") && n == 2)
		return switch_process(c, words[1]);
	if (!strcmp(words[0], "run"))
		return run_generators(c, words, n);
	if (!strcmp(words[0], "repeat") || !strcmp(words[0], "end"))
		return repeat(c, words, n);
	if (!strcmp(words[0], "lru") || !strcmp(words[0], "zram") || !strcmp(words[0], "policy") ||
	    !strcmp(words[0], "tlb"))
		return machine(c, words, n);
	if (!strcmp(words[0], "expect"))
		return expect(c, words, n);
	if (!strcmp(words[0], "do"))
		return add_text(c, SCENARIO_PROCESS, line + strlen("do "));
	return add_text(c, SCENARIO_CONTROL, line);
}

static int compile_line(struct compiler *c, char *line)
{
	char copy[LINE_MAX_BYTES], *words[WORDS_MAX], *word, *save = NULL;
	size_t end;
	int n = 0;

	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t");
	for (end = strlen(line); end && isspace((unsigned char)line[end - 1]); end--)
		line[end - 1] = '\0';
	if (!*line)
		return 0;
	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " \t", &save); word && n < WORDS_MAX;
	     word = strtok_r(NULL, " \t", &save))
		words[n++] = word;
	if (!n)
		return 0;
	return compile_words(c, words, n, line);
}

int scenario_compile(const char *path, struct scenario *s, struct err *err)
{
	struct compiler *c = calloc(1, sizeof(*c));
	char line[LINE_MAX_BYTES];
	int rc = 0;

	*s = (struct scenario){.head.magic = SCENARIO_MAGIC, .lru = "y"};
	if (!c)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	c->path = path;
	c->s = s;
	c->err = err;
	c->in = fopen(path, "r");
	if (!c->in) {
		rc = err_set(err, -errno, "%s: %s", path, strerror(errno));
		free(c);
		return rc;
	}
	while (!rc && fgets(line, sizeof(line), c->in)) {
		c->line++;
		rc = compile_line(c, line);
	}
	if (!rc && (c->depth || !s->head.nr_processes))
		rc = bad(c, c->depth ? "a repeat without end" : "no process", NULL);
	for (uint32_t i = 0; i < c->nr_generators; i++) {
		zipf_oracle_free(&c->generators[i].zipf);
		if (c->generators[i].trace)
			trace_close(c->generators[i].trace);
	}
	fclose(c->in);
	free(c);
	/* What follows the texts must be aligned. */
	while (!rc && s->head.text_bytes % 8)
		s->texts[s->head.text_bytes++] = '\0';
	if (rc)
		scenario_free(s);
	return rc;
}

int scenario_write(const struct scenario *s, const char *path, struct err *err)
{
	FILE *f = fopen(path, "w");
	bool ok =
		f && fwrite(&s->head, sizeof(s->head), 1, f) == 1 &&
		fwrite(s->files, sizeof(*s->files), s->head.nr_files, f) == s->head.nr_files &&
		fwrite(s->groups, sizeof(*s->groups), s->head.nr_groups, f) == s->head.nr_groups &&
		fwrite(s->processes, sizeof(*s->processes), s->head.nr_processes, f) ==
			s->head.nr_processes &&
		fwrite(s->texts, 1, s->head.text_bytes, f) == s->head.text_bytes &&
		fwrite(s->ops, sizeof(*s->ops), s->head.nr_ops, f) == s->head.nr_ops;
	int rc = ok ? 0 : -errno;

	if (f && fclose(f) && !rc)
		rc = -errno;
	return rc ? err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

void scenario_free(struct scenario *s)
{
	free(s->texts);
	free(s->ops);
	*s = (struct scenario){0};
}
