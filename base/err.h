/* SPDX-License-Identifier: MIT
 *
 * Errors: every function that can fail returns 0 or a negative errno; where a person must learn
 * why, it also fills a struct err with one line that names the file or argument, the place and the
 * reason.
 */
#ifndef FOLIAGE_BASE_ERR_H
#define FOLIAGE_BASE_ERR_H

struct err {
	char text[512]; /* empty when there is nothing to say */
};

/* Store the message (when `e` is not NULL) and return `code`, a negative errno. */
int err_set(struct err *e, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
