/* SPDX-License-Identifier: MIT
 *
 * The tables of data/ that are compiled in; cmake/data.cmake turns each file into one of these.
 */
#ifndef FOLIAGE_WORKLOAD_DATA_H
#define FOLIAGE_WORKLOAD_DATA_H

/* Zero-terminated. */
extern const char data_published[];    /* data/published.csv */
extern const char data_kernel_612[];   /* data/kernel-6.12.csv */
extern const char data_kernel_newer[]; /* data/kernel-newer.csv */

#endif
