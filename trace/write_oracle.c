/* SPDX-License-Identifier: MIT
 *
 * oracleGeneral: one record a page access, as an object trace: the page's identity is the id, the
 * size 1, the time the record's number (32 bits, staying at the largest). A record tells when its
 * page comes next, so everything is kept, resolved, until the end.
 */
#include "trace/format.h"
#include "trace/resolve.h"
#include "trace/writer.h"

#include <errno.h>

enum { RECORD = 24 };

static int oracle_open(struct trace_writer *w, struct err *err)
{
	struct resolver *resolver;
	int code = resolver_open(0, &resolver);

	if (code)
		return err_set(err, code, "%s: no memory", w->path);
	w->state = resolver;
	return 0;
}

static int oracle_write(struct trace_writer *w, const struct trace_record *records, size_t n,
			struct err *err)
{
	int code = resolver_add(w->state, records, n);

	w->place += n;
	return code < 0 ? err_set(err, code, "%s: no memory", w->path) : 0;
}

static int put_resolved(struct trace_writer *w, const struct resolved *r, struct err *err)
{
	for (uint64_t i = 0; i < r->n; i++) {
		uint8_t raw[RECORD];
		int code;

		put_le(raw, i < UINT32_MAX ? i : UINT32_MAX, 4);
		put_le(raw + 4, r->pages[r->ids[i]], 8);
		put_le(raw + 12, 1, 4);
		put_le(raw + 16, r->next[i], 8); /* FOLIAGE_NEVER is -1 */
		code = output_put(w->out, raw, sizeof(raw), err);
		if (code)
			return code;
	}
	return 0;
}

static int oracle_finish(struct trace_writer *w, struct err *err)
{
	struct resolved r;
	int code;

	resolver_finish(w->state, &r);
	w->state = NULL;
	code = resolved_next(&r);
	code = code ? err_set(err, code, "%s: no memory", w->path) : put_resolved(w, &r, err);
	resolved_free(&r);
	return code;
}

static void oracle_close(struct trace_writer *w)
{
	struct resolved r;

	if (!w->state)
		return;
	resolver_finish(w->state, &r);
	resolved_free(&r);
}

const struct writer_ops writer_oracle = {
	.name = "oracle",
	.suffixes = ".oracleGeneral .oracleGeneral.bin .oracle ",
	.open = oracle_open,
	.write = oracle_write,
	.finish = oracle_finish,
	.close = oracle_close,
};
