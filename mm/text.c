/* SPDX-License-Identifier: MIT
 *
 * What the engine says of itself and takes as commands, in the kernel's formats: lru_gen,
 * lru_gen_full (B.13), memory.stat; `+ memcg node seq [swappiness [force_scan]]` and `- memcg node
 * seq [swappiness [nr_to_reclaim]]`.
 *
 *   memcg     1 /
 *    node     0
 *             3       1200          0       4096        seq, age in ms, anon, file pages
 *                       0        512R       2048T ...   full: per tier, anon then file
 *
 * Letters in lru_gen_full: a size below min_seq x; of the youngest generation R,T the averages of
 * refaulted and total; of the oldest (with history, of every one) r,e,p refaulted, evicted,
 * protected; T,Y,F,A of the page-table walk: leaf entries seen and young, tables found in the Bloom
 * filter and added to it (lower case: history); x nothing.
 */
#include "mm/gen.h"
#include "mm/walk.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

/* ---- lru_gen ---- */

static void put_path(const struct foliage_engine *e, FILE *out, uint32_t memcg)
{
	if (memcg == 0)
		return;
	put_path(e, out, e->memcgs[memcg].parent);
	fprintf(out, "/%s", e->memcgs[memcg].name);
}

static void put_number(FILE *out, uint64_t n, char mark)
{
	fprintf(out, " %10" PRIu64 "%c", n, mark);
}

static void put_tier(const struct foliage_engine *e, FILE *out, const struct lruvec *lv,
		     uint64_t seq, unsigned int tier)
{
	const struct lru_gen *g = &lv->gen;
	const struct gen_knobs *k = gen_knobs(e);
	unsigned int hist = gen_hist(k, seq);

	fprintf(out, "            %10u", tier);
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		uint64_t n[3] = {0};
		const char *marks = "xxx";

		if (seq == gen_max_seq(lv)) {
			marks = "RTx";
			n[0] = g->avg_refaulted[type][tier];
			n[1] = g->avg_total[type][tier];
		} else if (seq == gen_min_seq(lv, type) || k->histgens) {
			marks = "rep";
			n[0] = counter_size(&g->refaulted[hist][type][tier]);
			n[1] = counter_size(&g->evicted[hist][type][tier]);
			n[2] = g->protected_[hist][type][tier];
		}
		for (int i = 0; i < 3; i++)
			put_number(out, n[i], marks[i]);
	}
	fputc('\n', out);
}

/* With history each generation shows the walk made while it was the youngest, else the youngest
 * shows the last walk: the one that opened it. */
static void put_walk(const struct foliage_engine *e, FILE *out, const struct lruvec *lv,
		     uint64_t seq)
{
	bool history = gen_knobs(e)->histgens;
	const char *marks = "xxxx";
	uint64_t n[4] = {0};

	if ((seq == gen_max_seq(lv)) != history) {
		marks = history ? "tyfa" : "TYFA";
		walk_stats(e, lv, history ? seq : seq - 1, n);
	}
	fprintf(out, "%22s", "");
	for (int i = 0; i < 4; i++)
		put_number(out, n[i], marks[i]);
	fputc('\n', out);
}

static void put_generation(const struct foliage_engine *e, FILE *out, const struct lruvec *lv,
			   uint64_t seq, bool full)
{
	uint64_t born = lv->gen.timestamps[gen_of(seq)], now = engine_now_ms(e);

	fprintf(out, " %10" PRIu64 " %10" PRIu64, seq, now > born ? now - born : 0);
	for (unsigned int type = 0; type < NR_TYPES; type++) {
		uint64_t size = 0;

		for (unsigned int zone = 0; zone < e->nr_zones; zone++)
			size += counter_size(&lv->gen.nr_pages[gen_of(seq)][type][zone]);
		put_number(out, size, full && seq < gen_min_seq(lv, type) ? 'x' : ' ');
	}
	fputc('\n', out);
	if (!full)
		return;
	for (unsigned int tier = 0; tier < MAX_NR_TIERS; tier++)
		put_tier(e, out, lv, seq, tier);
	put_walk(e, out, lv, seq);
}

static void put_lruvec(struct foliage_engine *e, FILE *out, struct lruvec *lv, bool full)
{
	uint64_t seq, max_seq;

	fprintf(out, " node %5u\n", lv->node);
	lruvec_lock(e, lv);
	max_seq = gen_max_seq(lv);
	if (full)
		seq = max_seq >= MAX_NR_GENS ? max_seq - MAX_NR_GENS + 1 : 0;
	else
		seq = MIN(gen_min_seq(lv, TYPE_ANON), gen_min_seq(lv, TYPE_FILE));
	for (; seq <= max_seq; seq++)
		put_generation(e, out, lv, seq, full);
	lruvec_unlock(e, lv, 0);
}

static int put_lru_gen(struct foliage_engine *e, FILE *out, bool full)
{
	uint32_t memcg = UINT32_MAX;

	if (!e->ops->rules)
		return -EOPNOTSUPP;
	while ((memcg = memcg_next(e, 0, memcg)) != UINT32_MAX) {
		/* The folios of a dying memcg are its parent's. */
		if (atomic_load(&lruvec_of(e, memcg, 0)->dying))
			continue;
		fprintf(out, "memcg %5u ", (unsigned int)e->memcgs[memcg].id);
		put_path(e, out, memcg);
		fputs(memcg == 0 ? "/\n" : "\n", out);
		for (uint32_t node = 0; node < e->nr_nodes; node++)
			put_lruvec(e, out, lruvec_of(e, memcg, node), full);
	}
	return 0;
}

/* ---- memory.stat ---- */

void memcg_sizes(struct foliage_engine *e, uint32_t root, struct memcg_sizes *s)
{
	uint32_t memcg = UINT32_MAX;

	*s = (struct memcg_sizes){.unevictable = 0};
	while ((memcg = memcg_next(e, root, memcg)) != UINT32_MAX) {
		for (uint32_t node = 0; node < e->nr_nodes; node++) {
			struct lruvec *lv = lruvec_of(e, memcg, node);

			if (atomic_load(&lv->dying))
				continue;
			for (unsigned int type = 0; type < NR_TYPES; type++) {
				uint64_t size = e->ops->size(e, lv, type);
				uint64_t active = MIN(size, e->ops->active(e, lv, type));

				s->active[type] += active;
				s->inactive[type] += size - active;
			}
			s->unevictable += counter_size(&lv->clru.size[LIST_UNEVICTABLE]);
		}
	}
}

static void put_amount(FILE *out, const char *name, uint64_t bytes)
{
	fprintf(out, "%s %" PRIu64 "\n", name, bytes);
}

static void put_events(const struct foliage_engine *e, FILE *out, uint32_t memcg)
{
	static const struct {
		const char *name;
		enum stat_item first, second; /* equal: one counter */
	} lines[] = {
		{"workingset_refault_anon", STAT_REFAULT_ANON, STAT_REFAULT_ANON},
		{"workingset_refault_file", STAT_REFAULT_FILE, STAT_REFAULT_FILE},
		{"workingset_activate_anon", STAT_ACTIVATE_ANON, STAT_ACTIVATE_ANON},
		{"workingset_activate_file", STAT_ACTIVATE_FILE, STAT_ACTIVATE_FILE},
		{"workingset_restore_anon", STAT_RESTORE_ANON, STAT_RESTORE_ANON},
		{"workingset_restore_file", STAT_RESTORE_FILE, STAT_RESTORE_FILE},
		{"pswpout", STAT_PSWPOUT, STAT_PSWPOUT},
		{"pgscan", STAT_PGSCAN_ANON, STAT_PGSCAN_FILE},
		{"pgsteal", STAT_PGSTEAL_ANON, STAT_PGSTEAL_FILE},
		{"pgscan_anon", STAT_PGSCAN_ANON, STAT_PGSCAN_ANON},
		{"pgscan_file", STAT_PGSCAN_FILE, STAT_PGSCAN_FILE},
		{"pgsteal_anon", STAT_PGSTEAL_ANON, STAT_PGSTEAL_ANON},
		{"pgsteal_file", STAT_PGSTEAL_FILE, STAT_PGSTEAL_FILE},
		{"pgrefill", STAT_PGREFILL, STAT_PGREFILL},
		{"pgactivate", STAT_PGACTIVATE, STAT_PGACTIVATE},
		{"pgdeactivate", STAT_PGDEACTIVATE, STAT_PGDEACTIVATE},
		{"pglazyfreed", STAT_PGLAZYFREED, STAT_PGLAZYFREED},
		/* Not a kernel's: what the multi-gen family did. */
		{"pgpromoted", STAT_PROMOTED, STAT_PROMOTED},
		{"pgprotected", STAT_PROTECTED, STAT_PROTECTED},
		{"agings", STAT_AGINGS, STAT_AGINGS},
		{"refault_stale", STAT_REFAULT_STALE, STAT_REFAULT_STALE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		int64_t n = memcg_stat(e, memcg, lines[i].first);

		if (lines[i].second != lines[i].first)
			n += memcg_stat(e, memcg, lines[i].second);
		fprintf(out, "%s %" PRId64 "\n", lines[i].name, MAX(n, (int64_t)0));
	}
}

/* anon and file are what stands on the lists by type (shmem is anon there); pages in batches are in
 * neither yet. */
int memcg_put_stat(struct foliage_engine *e, FILE *out, uint32_t memcg, uint64_t page)
{
	struct memcg_sizes s;

	memcg_sizes(e, memcg, &s);
	put_amount(out, "anon", (s.active[TYPE_ANON] + s.inactive[TYPE_ANON]) * page);
	put_amount(out, "file", (s.active[TYPE_FILE] + s.inactive[TYPE_FILE]) * page);
	put_amount(out, "inactive_anon", s.inactive[TYPE_ANON] * page);
	put_amount(out, "active_anon", s.active[TYPE_ANON] * page);
	put_amount(out, "inactive_file", s.inactive[TYPE_FILE] * page);
	put_amount(out, "active_file", s.active[TYPE_FILE] * page);
	put_amount(out, "unevictable", s.unevictable * page);
	put_events(e, out, memcg);
	return 0;
}

/* The memcg of "/", "/a", "/a/b"; UINT32_MAX: there is none. */
static uint32_t find_path(const struct foliage_engine *e, const char *path)
{
	uint32_t memcg = 0;

	while (*path == '/' && path[1]) {
		size_t len = strcspn(++path, "/");
		uint32_t child = e->memcgs[memcg].children;

		while (child != UINT32_MAX &&
		       (!e->memcgs[child].online || strlen(e->memcgs[child].name) != len ||
			strncmp(e->memcgs[child].name, path, len)))
			child = e->memcgs[child].next_sibling;
		if (child == UINT32_MAX)
			return child;
		memcg = child;
		path += len;
	}
	return *path && strcmp(path, "/") ? UINT32_MAX : memcg;
}

static int put_text(struct foliage_engine *e, FILE *out, const char *what)
{
	static const char stat[] = "memory.stat";
	uint32_t memcg;

	if (!strcmp(what, "lru_gen") || !strcmp(what, "lru_gen_full"))
		return put_lru_gen(e, out, what[strlen("lru_gen")] != '\0');
	if (!strcmp(what, "enabled")) {
		fprintf(out, "0x%04x\n", e->ops->rules ? e->caps : 0);
		return 0;
	}
	if (!strcmp(what, "min_ttl_ms")) {
		fprintf(out, "%" PRIu64 "\n", e->min_ttl_ms);
		return 0;
	}
	if (strncmp(what, stat, sizeof(stat) - 1))
		return -EINVAL;
	what += sizeof(stat) - 1;
	if (*what && *what != ':')
		return -EINVAL;
	memcg = find_path(e, *what ? what + 1 : "/");
	return memcg == UINT32_MAX ? -ENOENT : memcg_put_stat(e, out, memcg, PAGE_BYTES);
}

int foliage_text(struct foliage_engine *e, const char *what, char **text)
{
	unsigned int session;
	size_t size = 0;
	FILE *out;
	int err;

	*text = NULL;
	out = open_memstream(text, &size);
	if (!out)
		return -ENOMEM;
	session = memcg_enter(e);
	err = put_text(e, out, what);
	memcg_leave(e, session);
	if (fclose(out) && !err)
		err = -ENOMEM;
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}

/* ---- commands ---- */

struct command {
	char op;
	uint64_t memcg, node, seq;
	bool has_swappiness;
	uint64_t swappiness;
	uint64_t option; /* force_scan or nr_to_reclaim; UINT64_MAX when omitted */
};

static bool is_end(char c)
{
	return !c || c == ',' || c == ';' || c == '\n';
}

static const char *skip_space(const char *at)
{
	while (*at != '\n' && isspace((unsigned char)*at))
		at++;
	return at;
}

/* One decimal number and the space behind it; -EINVAL at anything else. */
static int parse_number(const char **at, uint64_t *n)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	*n = strtoull(*at, &end, 10);
	if (errno || (!is_end(*end) && !isspace((unsigned char)*end)))
		return -EINVAL;
	*at = skip_space(end);
	return 0;
}

static int parse_swappiness(const struct foliage_engine *e, const char **at, struct command *c)
{
	bool v612 = e->ops->rules->v612; /* no "max", no 201 */

	c->has_swappiness = true;
	if (!v612 && !strncmp(*at, "max", 3) &&
	    (is_end((*at)[3]) || isspace((unsigned char)(*at)[3]))) {
		c->swappiness = SWAPPINESS_ANON_ONLY;
		*at = skip_space(*at + 3);
		return 0;
	}
	if (parse_number(at, &c->swappiness))
		return -EINVAL;
	return c->swappiness > (v612 ? 200u : (unsigned int)SWAPPINESS_ANON_ONLY) ? -EINVAL : 0;
}

/* Parse up to the separator, which *at then points to. */
static int parse_command(const struct foliage_engine *e, const char **at, struct command *c)
{
	*c = (struct command){.op = **at, .option = UINT64_MAX};
	if (c->op != '+' && c->op != '-')
		return -EINVAL;
	*at = skip_space(*at + 1);
	if (parse_number(at, &c->memcg) || parse_number(at, &c->node) || parse_number(at, &c->seq))
		return -EINVAL;
	if (!is_end(**at) && parse_swappiness(e, at, c))
		return -EINVAL;
	if (!is_end(**at) && parse_number(at, &c->option))
		return -EINVAL;
	return is_end(**at) ? 0 : -EINVAL;
}

static int run_aging(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
		     uint64_t seq, int swappiness, bool force_scan)
{
	uint64_t max_seq = gen_max_seq(lv);
	unsigned int type = swappiness ? TYPE_ANON : TYPE_FILE;

	if (seq > max_seq)
		return -EINVAL;
	if (!e->ops->rules->v612)
		return gen_try_inc_max_seq(e, lv, sc, seq, swappiness, force_scan) ? 0 : -EEXIST;
	if (seq < max_seq)
		return 0;
	if (!force_scan && gen_nr(lv, type) == MAX_NR_GENS)
		return -ERANGE;
	gen_try_inc_max_seq(e, lv, sc, seq, swappiness, force_scan);
	return 0;
}

/* The oldest sequence of the types that this swappiness lets go. */
static uint64_t oldest_seq(const struct lruvec *lv, int swappiness)
{
	uint64_t seq = UINT64_MAX;

	for (unsigned int type = 0; type < NR_TYPES; type++)
		if (type_evictable(type, swappiness))
			seq = MIN(seq, gen_min_seq(lv, type));
	return seq;
}

/* Folios that reclaim cannot free may come back to where they were found: one fruitless round is
 * enough. */
static int run_eviction(struct foliage_engine *e, struct lruvec *lv, struct scan_control *sc,
			uint64_t seq, int swappiness)
{
	int64_t batch = e->ops->rules->v612 ? MIN_LRU_BATCH : MAX_LRU_BATCH, fruitless = 0;
	uint64_t oldest;

	if (seq > UINT64_MAX - MIN_NR_GENS || seq + MIN_NR_GENS > gen_max_seq(lv))
		return -EINVAL;
	while ((oldest = oldest_seq(lv, swappiness)) <= seq &&
	       sc->nr_reclaimed < sc->nr_to_reclaim) {
		int64_t before = sc->nr_reclaimed;
		int64_t n =
			gen_evict(e, lv, sc, MIN(batch, sc->nr_to_reclaim - before), swappiness);

		if (!n)
			break;
		fruitless = sc->nr_reclaimed > before || oldest_seq(lv, swappiness) > oldest
				    ? 0
				    : fruitless + n;
		if (fruitless >
		    (int64_t)(gen_type_size(e, lv, TYPE_ANON) + gen_type_size(e, lv, TYPE_FILE)))
			break;
		engine_yield(e);
	}
	return 0;
}

static int run_in_session(struct foliage_engine *e, struct foliage_cpu *cpu,
			  const struct command *c)
{
	uint16_t slot = c->memcg <= UINT16_MAX ? e->memcg_of_id[c->memcg] : 0;
	struct foliage_reclaim_request request = {
		.swappiness = -1, .proactive = true, .nr = c->option};
	struct scan_control sc;
	struct lruvec *lv;
	int swappiness;
	bool was = cpu->in_reclaim;
	int err;

	if (!slot || c->node >= e->nr_nodes)
		return -EINVAL;
	request.memcg = slot - 1u;
	request.node = (uint32_t)c->node;
	if (c->has_swappiness)
		request.swappiness = (int)c->swappiness;
	lv = lruvec_of(e, request.memcg, request.node);
	scan_control_init(e, &sc, cpu, &request);
	if (!c->option)
		sc.nr_to_reclaim = 0;
	swappiness = c->has_swappiness ? (int)c->swappiness : get_swappiness(e, lv, &sc);
	cpu->in_reclaim = true;
	if (c->op == '+')
		err = run_aging(e, lv, &sc, c->seq, swappiness, c->option != 0);
	else
		err = run_eviction(e, lv, &sc, c->seq, swappiness);
	cpu->in_reclaim = was;
	return err;
}

static int run_command(struct foliage_engine *e, struct foliage_cpu *cpu, const struct command *c)
{
	unsigned int session = memcg_enter(e);
	int err = run_in_session(e, cpu, c);

	memcg_leave(e, session);
	return err;
}

int foliage_lru_gen_write(struct foliage_engine *e, struct foliage_cpu *cpu, const char *commands)
{
	const char *at = commands;

	if (!e->ops->rules)
		return -EOPNOTSUPP;
	for (;; at++) {
		struct command c;
		int err;

		at = skip_space(at);
		if (is_end(*at)) {
			if (!*at)
				return 0;
			continue;
		}
		err = parse_command(e, &at, &c);
		if (!err)
			err = run_command(e, cpu, &c);
		if (err || !*at)
			return err;
	}
}

/* ---- settings ---- */

static int set_enabled(struct foliage_engine *e, const char *value)
{
	const uint32_t all =
		FOLIAGE_LRU_GEN_CORE | FOLIAGE_LRU_GEN_MM_WALK | FOLIAGE_LRU_GEN_NONLEAF_YOUNG;
	unsigned long caps;
	char *end;

	if (!e->ops->rules)
		return -EOPNOTSUPP;
	if (!strcmp(value, "y"))
		value = "7";
	if (!strcmp(value, "n"))
		value = "0";
	if (!isdigit((unsigned char)*value))
		return -EINVAL;
	errno = 0;
	caps = strtoul(value, &end, 0);
	if (errno || *end || caps & ~(unsigned long)all)
		return -EINVAL;
	/* Without the core the engine would run another policy: that is foliage_engine_switch(). */
	if (!(caps & FOLIAGE_LRU_GEN_CORE))
		return -EOPNOTSUPP;
	e->caps = (uint32_t)caps;
	return 0;
}

int foliage_lru_gen_set(struct foliage_engine *e, const char *name, const char *value)
{
	uint64_t ms;

	if (!strcmp(name, "enabled"))
		return set_enabled(e, value);
	if (strcmp(name, "min_ttl_ms"))
		return -EINVAL;
	if (parse_number(&value, &ms) || *value)
		return -EINVAL;
	e->min_ttl_ms = ms;
	return 0;
}
