/* SPDX-License-Identifier: MIT
 *
 * foliage explain: one page's story out of a file of events, in sentences. Each sentence says what
 * happened and by which rule; the letters behind a rule name its section in the description of the
 * algorithms (A: CLRU, B: MGLRU, C: FG). Equal hits one after another are told once, with their
 * number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/events.h"
#include "cli/options.h"
#include "cli/table.h"

/* Why, as the end of a sentence, and where the rule is defined. */
static const struct {
	const char *text, *section;
} rules[FOLIAGE_WHY_NR] = {
	[FOLIAGE_WHY_FIRST] = {"it had not been here before", NULL},
	[FOLIAGE_WHY_RECENT] = {"its shadow is recent and counts", "A.7, B.7, C.6"},
	[FOLIAGE_WHY_STALE] = {"its shadow is gone or too old to count", "A.7, B.7, C.6"},
	[FOLIAGE_WHY_COUNT] = {"only its counter moves", "A.2, B.2, C.2"},
	[FOLIAGE_WHY_SATURATED] = {"its counter is full", "B.2, C.2"},
	[FOLIAGE_WHY_OVERFLOW] = {"its counter overflows, which promotes it", "C.2 rule 4"},
	[FOLIAGE_WHY_DEFER] = {"it is touched at the tail, which defers its eviction",
			       "C.2 rule 5"},
	[FOLIAGE_WHY_YOUNG] = {"a page table shows that it was used", "B.2, C.2 rule 3"},
	[FOLIAGE_WHY_PROTECT] = {"its tier refaults more than the lowest one, so it is protected",
				 "B.4, C.5"},
	[FOLIAGE_WHY_ZONE] = {"its zone is of no use to this request", "A.4, B.4"},
	[FOLIAGE_WHY_LAZY] = {"it was promoted earlier and its list catches up now", "B.4, B.5"},
	[FOLIAGE_WHY_FORCED_AGE] = {"aging needs the slot of the oldest generation", "B.8"},
	[FOLIAGE_WHY_PLACE] = {"the placement table says so", "B.3, C.7"},
	[FOLIAGE_WHY_ACTIVATE] = {"it was used twice, or at the tail", "A.2, A.3"},
	[FOLIAGE_WHY_DEACTIVATE] = {"the active list is too long", "A.4"},
	[FOLIAGE_WHY_REFERENCED] = {"it was used once, so it goes round the inactive list again",
				    "A.3"},
	[FOLIAGE_WHY_SECOND_CHANCE] = {"it has uses left to pay for another round", NULL},
	[FOLIAGE_WHY_PROBATION] = {"it enters or leaves probation", NULL},
	[FOLIAGE_WHY_DIRTY] = {"it is dirty or being written", "A.6"},
	[FOLIAGE_WHY_PINNED] = {"somebody holds it", "A.6"},
	[FOLIAGE_WHY_COLD] = {"it is the coldest", NULL},
};

static const char *const list_names[] = {"inactive anonymous list", "active anonymous list",
					 "inactive list", "active list", "unevictable list"};

struct story {
	const struct events_header *header;
	FILE *out;
	struct event_line hit; /* the hits that are not told yet */
	uint64_t hits_waiting, last_hit;
	uint64_t agings; /* since the last sentence */
	uint64_t hits, refaults, evictions;
	uint64_t entry; /* the access that brought it in last */
	bool began;
};

/* "generation 7" or "the active list" */
static const char *place(const struct story *story, int where, char *text, size_t size)
{
	if (strcmp(story->header->places, "list") != 0)
		snprintf(text, size, "generation %d", where);
	else if (where < (int)ARRAY_SIZE(list_names))
		snprintf(text, size, "the %s", list_names[where]);
	else
		snprintf(text, size, "list %d", where);
	return text;
}

static void say_rule(const struct story *story, const struct foliage_event *e)
{
	if (rules[e->why].text)
		fprintf(story->out, ": %s", rules[e->why].text);
	if (rules[e->why].section)
		fprintf(story->out, " (%s)", rules[e->why].section);
	fputs(".\n", story->out);
}

static void say_refs(const struct story *story, const struct foliage_event *e)
{
	if (e->refs_from != e->refs_to)
		fprintf(story->out, ", refs %u to %u", e->refs_from, e->refs_to);
	else if (e->refs_to)
		fprintf(story->out, ", refs %u", e->refs_to);
}

static void say_move(const struct story *story, const struct foliage_event *e)
{
	char from[64], to[64];

	if (e->from >= 0 && e->to >= 0 && e->from != e->to)
		fprintf(story->out, " from %s to %s", place(story, e->from, from, sizeof(from)),
			place(story, e->to, to, sizeof(to)));
	else if (e->to >= 0)
		fprintf(story->out, " %s %s", e->what == FOLIAGE_EV_KEEP ? "in" : "to",
			place(story, e->to, to, sizeof(to)));
	else if (e->from >= 0)
		fprintf(story->out, " from %s", place(story, e->from, from, sizeof(from)));
}

static void say_when(struct story *story, uint64_t access)
{
	fprintf(story->out, "access %llu: ", (unsigned long long)access);
	story->began = true;
}

static void tell_hits(struct story *story)
{
	const struct foliage_event *e = &story->hit.event;
	char place_text[64];

	if (!story->hits_waiting)
		return;
	if (story->hits_waiting == 1) {
		say_when(story, e->access);
		fputs(e->access == story->entry ? "marked, for the access that brought it in"
						: "hit",
		      story->out);
	} else {
		fprintf(story->out, "accesses %llu to %llu: %llu hits",
			(unsigned long long)e->access, (unsigned long long)story->last_hit,
			(unsigned long long)story->hits_waiting);
	}
	if (e->from >= 0 && e->from == e->to)
		fprintf(story->out, " in %s", place(story, e->to, place_text, sizeof(place_text)));
	else if (e->from >= 0 && e->to >= 0)
		say_move(story, e);
	say_refs(story, e);
	say_rule(story, e);
	story->hits_waiting = 0;
}

static bool same_hit(const struct foliage_event *a, const struct foliage_event *b)
{
	return a->why == b->why && a->from == b->from && a->to == b->to &&
	       a->refs_from == b->refs_from && a->refs_to == b->refs_to;
}

static void add_hit(struct story *story, const struct event_line *line)
{
	if (story->hits_waiting &&
	    (!same_hit(&story->hit.event, &line->event) || story->hit.event.access == story->entry))
		tell_hits(story);
	if (!story->hits_waiting++)
		story->hit = *line;
	story->last_hit = line->event.access;
	story->hits += line->event.access != story->entry;
}

/* A hit that moves the page is told by the move alone. */
static bool moved_by_hit(const struct foliage_event *e)
{
	return e->what == FOLIAGE_EV_MOVE &&
	       (e->why == FOLIAGE_WHY_DEFER || e->why == FOLIAGE_WHY_OVERFLOW);
}

static void tell_agings(struct story *story)
{
	if (story->agings && story->began)
		fprintf(story->out, "    (%llu %s opened meanwhile)\n",
			(unsigned long long)story->agings,
			story->agings == 1 ? "generation was" : "generations were");
	story->agings = 0;
}

static void say_shadow(const struct story *story, const struct foliage_event *e)
{
	char from[64];

	if (e->from >= 0)
		fprintf(story->out, "; it had left %s", place(story, e->from, from, sizeof(from)));
	if (e->refs_to)
		fprintf(story->out, "; refs %u come back with it", e->refs_to);
}

static void tell(struct story *story, const struct event_line *line)
{
	static const char *const verbs[FOLIAGE_EV_NR] = {
		[FOLIAGE_EV_INSERT] = "came in",
		[FOLIAGE_EV_REFAULT] = "came back, a refault",
		[FOLIAGE_EV_ADD] = "was added",
		[FOLIAGE_EV_MOVE] = "moved",
		[FOLIAGE_EV_SORT] = "eviction met it and moved it",
		[FOLIAGE_EV_KEEP] = "reclaim looked at it and kept it",
		[FOLIAGE_EV_EVICT] = "was evicted",
	};
	const struct foliage_event *e = &line->event;

	if (e->what == FOLIAGE_EV_ACCESS) {
		add_hit(story, line);
		return;
	}
	tell_hits(story);
	tell_agings(story);
	if (e->what == FOLIAGE_EV_INSERT || e->what == FOLIAGE_EV_REFAULT)
		story->entry = e->access;
	story->hits += moved_by_hit(e);
	story->refaults += e->what == FOLIAGE_EV_REFAULT;
	story->evictions += e->what == FOLIAGE_EV_EVICT;
	say_when(story, e->access);
	fputs(moved_by_hit(e) ? "hit, and moved" : verbs[e->what], story->out);
	if (e->what == FOLIAGE_EV_REFAULT) {
		say_shadow(story, e);
	} else {
		say_move(story, e);
		say_refs(story, e);
	}
	say_rule(story, e);
}

static void say_total(FILE *out, uint64_t n, const char *noun, const char *end)
{
	char number[32];

	fprintf(out, "%s %s%s%s", count_text(n, number), noun, n == 1 ? "" : "s", end);
}

static int tell_story(struct events_reader *reader, uint64_t page, FILE *out, struct err *err)
{
	struct story story = {.header = &reader->header, .out = out, .entry = UINT64_MAX};
	struct event_line line;
	bool found = false;
	int r;

	fprintf(out, "Page %llu of %s under %s, room %s:\n", (unsigned long long)page,
		reader->header.trace, reader->header.policy, reader->header.room);
	while ((r = events_next(reader, &line, err)) > 0) {
		if (line.has_page && line.page == page) {
			found = true;
			tell(&story, &line);
		} else if (line.event.what == FOLIAGE_EV_AGE) {
			story.agings++;
		}
	}
	if (r)
		return r;
	if (!found)
		return err_set(err, -ENOENT, "%s: page %llu: nothing happened to it", reader->path,
			       (unsigned long long)page);
	tell_hits(&story);
	fputs("In all: ", out);
	say_total(out, story.hits, "hit", ", ");
	say_total(out, story.evictions, "eviction", ", ");
	say_total(out, story.refaults, "refault", ".\n");
	return 0;
}

static int explain_file(const char *path, const char *page_text, char **text, struct err *err)
{
	struct events_reader reader;
	uint64_t page;
	size_t size;
	FILE *out;
	int r = parse_count(page_text, "--page", &page, err);

	if (!r)
		r = events_open(&reader, path, err);
	if (r)
		return r;
	out = open_memstream(text, &size);
	r = out ? tell_story(&reader, page, out, err) : -ENOMEM;
	if (out && fclose(out) && !r)
		r = -ENOMEM;
	events_close(&reader);
	return r;
}

static int explain_main(int argc, char **argv)
{
	const char *page = NULL;
	const struct option_spec specs[] = {{"page", 0, OPTION_TEXT, &page}};
	struct err err = {""};
	char *text = NULL;
	int r = options_parse(argc, argv, specs, ARRAY_SIZE(specs), &err);

	if (r >= 0 && r != 1)
		return cli_fail("explain: needs one file of events (foliage help explain)");
	if (r >= 0 && !page)
		return cli_fail("explain: needs --page N");
	if (r >= 0)
		r = explain_file(argv[1], page, &text, &err);
	if (!r)
		fputs(text, stdout);
	free(text);
	return r ? cli_fail("%s", err.text[0] ? err.text : strerror(-r)) : 0;
}

const struct command command_explain = {
	.name = "explain",
	.summary = "tell what happened to one page in a replay, and why",
	.help = "usage: foliage explain FILE --page N\n"
		"\n"
		"Reads a file that `foliage replay --events FILE` wrote and tells one page's story "
		"in\n"
		"sentences: when it came in, its hits, how its counter moved, from which "
		"generation or\n"
		"list it went to which and by what rule, when it was evicted and when it came "
		"back.\n"
		"\n"
		"Options:\n"
		"  --page N            the page's number in the trace\n"
		"\n"
		"A hit that changes nothing, because the page's counter is full, may be missing "
		"from the\n"
		"story under an engine policy. Accesses are counted from 0. What stands in "
		"parentheses\n"
		"behind a rule is its section in the description of the algorithms: A is the "
		"classic\n"
		"LRU, B MGLRU, C MGLRU-FG.\n"
		"\n"
		"The file is text: a header of lines that start with #, a line of titles, and one "
		"event\n"
		"a line with fields separated by tabs (access, page, event, rule, from, to, "
		"refs_from,\n"
		"refs_to), so that grep, cut and awk answer what this command does not.\n"
		"\n"
		"Examples:\n"
		"  foliage replay t.csv --pages 1000 --policy fg --events t.events\n"
		"  foliage explain t.events --page 4711\n",
	.run = explain_main,
};
