/* SPDX-License-Identifier: MIT
 *
 * What `foliage mount` is built with.
 */
#ifndef FOLIAGE_CLI_MOUNT_H
#define FOLIAGE_CLI_MOUNT_H

/* The version of libfuse, NULL when the mount is not built in. */
const char *mount_fuse_version(void);

#endif
