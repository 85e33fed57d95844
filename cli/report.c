/* SPDX-License-Identifier: MIT
 *
 * foliage report: one page for people, out of the json of replay, mrc and bench. The page needs
 * nothing but itself: charts are SVG within it, and each has its numbers in a table beneath.
 */
#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/outfile.h"

enum { PAGE_MAX = 2000000 };

static int check(int nr, char **paths, struct err *err)
{
	if (nr < 2)
		return err_set(
			err, -EINVAL,
			"report: needs OUT.html and at least one FROM.json (foliage help report)");
	for (int i = 1; i < nr; i++) {
		if (outfile_is_same(paths[0], paths[i]))
			return err_set(
				err, -EINVAL,
				"%s: is both the report and its source; the report comes first",
				paths[0]);
	}
	return outfile_check(paths[0], err);
}

static int write_page(const char *path, const char *page, size_t size, struct err *err)
{
	struct outfile output;
	int r;

	if (size >= PAGE_MAX)
		return err_set(
			err, -EFBIG,
			"%s: would be %zu bytes, a report is below %d: give it fewer results", path,
			size, PAGE_MAX);
	r = outfile_open(&output, path, err);
	if (r)
		return r;
	fwrite(page, 1, size, output.stream);
	return outfile_commit(&output, err);
}

static int make(const char *path, const struct report_input *inputs, size_t nr, struct err *err)
{
	char *page = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&page, &size);
	int r = out ? report_html(inputs, nr, out) : -ENOMEM;

	if (out && fclose(out))
		r = -ENOMEM;
	if (r)
		err_set(err, r, "%s: %s", path, strerror(-r));
	else
		r = write_page(path, page, size, err);
	free(page);
	return r;
}

static int report_main(int argc, char **argv)
{
	struct report_input *inputs = NULL;
	struct err err = {""};
	int nr = options_parse(argc, argv, NULL, 0, &err), read = 0;
	int r = nr < 0 ? nr : check(nr, argv + 1, &err);

	if (!r) {
		inputs = calloc((size_t)nr, sizeof(*inputs));
		r = inputs ? 0 : -ENOMEM;
	}
	while (!r && read < nr - 1) {
		r = report_read(argv[2 + read], &inputs[read], &err);
		read += !r;
	}
	if (!r)
		r = make(argv[1], inputs, (size_t)read, &err);
	for (int i = 0; i < read; i++)
		report_input_free(&inputs[i]);
	free(inputs);
	return r ? cli_fail("%s", err.text[0] ? err.text : strerror(-r)) : 0;
}

const struct command command_report = {
	.name = "report",
	.summary = "one page to show around, from the results of replay, mrc and bench",
	.help = "usage: foliage report OUT.html FROM.json...\n"
		"\n"
		"Makes one page out of results that replay, mrc and bench wrote with --format "
		"json: curves, the\n"
		"policies side by side, published numbers beside measured ones, a verdict, the "
		"ages of pages over\n"
		"time (of replay --ages), and the command lines that made them. The page needs "
		"no network and no\n"
		"other file; it can be read on a phone and in print, in light and dark; every "
		"chart has its numbers\n"
		"in a table beneath. It appears when it is whole and is smaller than 2 MB.\n"
		"\n"
		"Exit status:\n"
		"  0                   done\n"
		"  2                   bad input or a failure: one line on standard error, no "
		"output\n"
		"\n"
		"Examples:\n"
		"  foliage mrc db.trace --policy lru,fg --target 0.1 --format json -o mrc.json\n"
		"  foliage replay db.trace --ages 100 --format json -o ages.json\n"
		"  foliage bench fio-read --format json -o fio.json\n"
		"  foliage report db.html mrc.json ages.json fio.json\n",
	.run = report_main,
};
