/* SPDX-License-Identifier: MIT
 *
 * The live screen of `foliage top`: the lines that `--once` prints, drawn again at every reading.
 * Nothing of the terminal is used but its size: no colour, no characters beyond ASCII.
 */
#include "cli/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#ifdef HAVE_NCURSES
#include <curses.h>
#include <locale.h>

enum { WIDTH_MAX = 500 };

const char *top_screen_version(void)
{
	const char *version = curses_version();

	return strncmp(version, "ncurses ", 8) ? version : version + 8;
}

/* `from`: the first line that is shown, for more lines than the screen has. */
static void draw(const char *text, int from)
{
	int row = 0;

	erase();
	for (int line = 0; *text; line++) {
		size_t n = strcspn(text, "\n");

		if (line >= from && row < LINES - 1)
			mvaddnstr(row++, 0, text, (int)n);
		text += n + (text[n] == '\n');
	}
	mvaddnstr(LINES - 1, 0, "q leaves, arrows scroll, blank holds still", COLS - 1);
	refresh();
}

static int show(const struct top_view *view, int from)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return -ENOMEM;
	top_text(view, COLS < WIDTH_MAX ? COLS : WIDTH_MAX, out);
	fclose(out);
	draw(text, from);
	free(text);
	return 0;
}

static void watch(struct top_view *view, double interval, top_reader again, void *ctx)
{
	bool still = false;
	int from = 0, key;

	timeout((int)(interval * 1000));
	while (!cli_interrupted && !show(view, from)) {
		key = getch();
		switch (key) {
		case 'q':
		case 'Q':
			return;
		case ' ':
			still = !still;
			break;
		case KEY_DOWN:
			from++;
			break;
		case KEY_UP:
			from -= from > 0;
			break;
		case KEY_NPAGE:
			from += LINES - 1;
			break;
		case KEY_PPAGE:
			from = from > LINES - 1 ? from - (LINES - 1) : 0;
			break;
		case ERR: /* time is up */
			if (!still)
				again(ctx, view);
			break;
		}
	}
}

int top_screen(struct top_view *view, double interval, top_reader again, void *ctx)
{
	SCREEN *screen;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return -ENOTTY;
	setlocale(LC_CTYPE, "");
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -ENOTTY;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	watch(view, interval, again, ctx);
	endwin();
	delscreen(screen);
	return 0;
}

#else

const char *top_screen_version(void)
{
	return NULL;
}

int top_screen(struct top_view *view, double interval, top_reader again, void *ctx)
{
	(void)view;
	(void)interval;
	(void)again;
	(void)ctx;
	return -ENOTSUP;
}

#endif
