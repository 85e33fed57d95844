/* SPDX-License-Identifier: MIT */
#ifndef FOLIAGE_VERSION_H
#define FOLIAGE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FOLIAGE_API __attribute__((visibility("default")))
#else
#define FOLIAGE_API
#endif

/* The version of the library that is linked, "major.minor.patch". Thread-safe; a static string. */
FOLIAGE_API const char *foliage_version(void);

#ifdef __cplusplus
}
#endif
#endif
