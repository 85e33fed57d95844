/* SPDX-License-Identifier: MIT
 *
 * Help texts are written once, in the commands; manual pages are the same texts in roff. The texts
 * keep to a few shapes that are told apart by their indentation:
 *
 *     usage: ...            the synopsis, up to the first empty line
 *     Title:                alone at the left: a section
 *       --option  text      two blanks, a head, two blanks or more, text: an item
 *                 text      indented further: the item goes on
 *       anything else       an example, printed as it is
 *     text                  a paragraph
 */
#include "cli/help.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/record/source.h"
#include "cli/mount.h"
#include "cli/outfile.h"
#include "cli/top.h"
#include "foliage/version.h"

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

void help_version(FILE *out)
{
	fprintf(out, "foliage %s\n", foliage_version());
#ifdef HAVE_ZSTD
	fprintf(out, "zstd %s\n", ZSTD_versionString());
#else
	fprintf(out, "zstd: not built in, .zst cannot be read\n");
#endif
#ifdef HAVE_ZLIB
	fprintf(out, "zlib %s\n", zlibVersion());
#else
	fprintf(out, "zlib: not built in, .gz cannot be read\n");
#endif
#ifdef HAVE_LZMA
	fprintf(out, "lzma %s\n", lzma_version_string());
#else
	fprintf(out, "lzma: not built in, .xz cannot be read\n");
#endif
	if (top_screen_version())
		fprintf(out, "ncurses %s\n", top_screen_version());
	else
		fprintf(out, "ncurses: not built in, top has no screen\n");
	if (source_bpf_version())
		fprintf(out, "libbpf %s\n", source_bpf_version());
	else
		fprintf(out, "libbpf: not built in, record works by preloading\n");
	if (mount_fuse_version())
		fprintf(out, "libfuse %s\n", mount_fuse_version());
	else
		fprintf(out, "libfuse: not built in, mount says so\n");
#ifdef HAVE_LIBURING
	fprintf(out, "liburing\n");
#else
	fprintf(out,
		"liburing: not built in, files of the cache are read and written one call at a "
		"time\n");
#endif
}

static const char main_help[] =
	"usage: foliage COMMAND [ARGUMENT...]\n"
	"       foliage help [COMMAND]\n"
	"       foliage --version\n"
	"       foliage --completion bash\n"
	"\n"
	"Linux page reclaim on traces of page accesses: the classic LRU, the multi-generational\n"
	"LRU with its variants, and the policies of the literature to compare with.\n"
	"\n"
	"Commands:\n";

static const char main_help_end[] =
	"\n"
	"Exit status:\n"
	"  0                   done\n"
	"  2                   bad input or a failure, told in one line on standard error\n"
	"  130                 stopped by SIGINT, after printing what there was\n"
	"\n"
	"When the reader of the output leaves (a closed pipe), the tool ends silently by SIGPIPE,\n"
	"which shells report as 141.\n";

void help_print(FILE *out, const struct command *const *commands)
{
	fputs(main_help, out);
	for (size_t i = 0; commands[i]; i++)
		fprintf(out, "  %-18s  %s\n", commands[i]->name, commands[i]->summary);
	fputs(main_help_end, out);
}

/* ---- roff ---- */

enum shape { SHAPE_NONE, SHAPE_TEXT, SHAPE_ITEM, SHAPE_LITERAL };

struct page {
	FILE *out;
	enum shape shape; /* of the line before */
	bool synopsis;    /* still in it */
};

static void put_escaped(FILE *out, const char *text, size_t n)
{
	if (n && (text[0] == '.' || text[0] == '\''))
		fputs("\\&", out);
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\\')
			fputs("\\e", out);
		else if (text[i] == '-')
			fputs("\\-", out);
		else
			fputc(text[i], out);
	}
	fputc('\n', out);
}

static void set_shape(struct page *page, enum shape shape)
{
	if (page->shape == SHAPE_LITERAL && shape != SHAPE_LITERAL)
		fputs(".fi\n.RE\n", page->out);
	if (page->shape != SHAPE_LITERAL && shape == SHAPE_LITERAL)
		fputs(".PP\n.RS 4\n.nf\n", page->out);
	page->shape = shape;
}

static void put_section(struct page *page, const char *title, size_t n)
{
	set_shape(page, SHAPE_NONE);
	fputs(".SH ", page->out);
	for (size_t i = 0; i < n; i++)
		fputc(toupper((unsigned char)title[i]), page->out);
	fputc('\n', page->out);
}

/* Length of the head of an item ("--pages N,N,..."), 0 when the line is none. */
static size_t item_head(const char *line, size_t n)
{
	for (size_t i = 1; i + 1 < n; i++) {
		if (line[i] == ' ' && line[i + 1] == ' ')
			return i;
	}
	return n && line[0] == '-' ? n : 0;
}

static void put_item(struct page *page, const char *line, size_t n, size_t head)
{
	size_t text = head;

	set_shape(page, SHAPE_ITEM);
	fputs(".TP\n.B ", page->out);
	put_escaped(page->out, line, head);
	while (text < n && line[text] == ' ')
		text++;
	if (text < n)
		put_escaped(page->out, line + text, n - text);
}

static void put_synopsis(struct page *page, const char *line, size_t n)
{
	size_t skip = strlen("usage: ");

	if (!n) {
		fputs(".fi\n.SH DESCRIPTION\n", page->out);
		page->synopsis = false;
	} else {
		put_escaped(page->out, n > skip ? line + skip : line, n > skip ? n - skip : n);
	}
}

static void put_line(struct page *page, const char *line, size_t n)
{
	size_t indent = 0, head;

	if (page->synopsis) {
		put_synopsis(page, line, n);
		return;
	}
	while (indent < n && line[indent] == ' ')
		indent++;
	if (indent == n) {
		set_shape(page, SHAPE_NONE);
		return;
	}
	if (!indent && line[n - 1] == ':' && n < 40 && page->shape == SHAPE_NONE) {
		put_section(page, line, n - 1);
		return;
	}
	if (!indent) {
		if (page->shape != SHAPE_TEXT)
			fputs(page->shape == SHAPE_LITERAL ? "" : ".PP\n", page->out);
		set_shape(page, SHAPE_TEXT);
		put_escaped(page->out, line, n);
		return;
	}
	if (page->shape == SHAPE_ITEM && indent > 4) {
		put_escaped(page->out, line + indent, n - indent);
		return;
	}
	head = indent == 2 ? item_head(line + indent, n - indent) : 0;
	if (head) {
		put_item(page, line + indent, n - indent, head);
		return;
	}
	set_shape(page, SHAPE_LITERAL);
	put_escaped(page->out, line + indent, n - indent);
}

static void put_text(struct page *page, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		put_line(page, text, n);
		text += n + (text[n] == '\n');
	}
}

static void put_head(FILE *out, const char *command, const char *summary)
{
	fprintf(out, ".TH FOLIAGE");
	for (const char *c = command; c && *c; c++)
		fprintf(out, "%s%c", c == command ? "\\-" : "", toupper((unsigned char)*c));
	fprintf(out, " 1 \"\" \"foliage %s\" \"Foliage\"\n.SH NAME\nfoliage", foliage_version());
	fprintf(out, "%s%s \\- %s\n.SH SYNOPSIS\n.nf\n", command ? "\\-" : "",
		command ? command : "", summary);
}

static void put_see_also(FILE *out, const struct command *const *commands,
			 const struct command *command)
{
	fputs(".SH SEE ALSO\n", out);
	if (command)
		fputs(".BR foliage (1),\n", out);
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i] != command)
			fprintf(out, ".BR foliage\\-%s (1),\n", commands[i]->name);
	}
	fputs(".BR libfoliage (3)\n", out);
}

void help_man(FILE *out, const struct command *const *commands, const struct command *command)
{
	struct page page = {.out = out, .synopsis = true};

	if (command) {
		put_head(out, command->name, command->summary);
		put_text(&page, command->help);
	} else {
		put_head(out, NULL, "page reclaim on traces of page accesses");
		put_text(&page, main_help);
		for (size_t i = 0; commands[i]; i++)
			fprintf(out, ".TP\n.BR foliage\\-%s (1)\n%s\n", commands[i]->name,
				commands[i]->summary);
		put_text(&page, main_help_end);
	}
	set_shape(&page, SHAPE_NONE);
	put_see_also(out, commands, command);
}

static int man_file(const char *folder, const struct command *const *commands,
		    const struct command *command, struct err *err)
{
	struct outfile output;
	char *path;
	int r;

	if (asprintf(&path, "%s/foliage%s%s.1", folder, command ? "-" : "",
		     command ? command->name : "") < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = outfile_open(&output, path, err);
	if (!r) {
		help_man(output.stream, commands, command);
		r = outfile_commit(&output, err);
	}
	free(path);
	return r;
}

int help_man_all(const char *folder, const struct command *const *commands, struct err *err)
{
	int r = man_file(folder, commands, NULL, err);

	for (size_t i = 0; commands[i] && !r; i++)
		r = man_file(folder, commands, commands[i], err);
	return r;
}
