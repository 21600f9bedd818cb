// Holds back, or fails, the syncs of tenants' logs: loaded before the C library by a server under test.
//
// The directory SYNC_GATE has the orders: while it has a file `hold`, a sync waits, and makes a file `held`; while it has a
// file `fail`, a sync fails as a broken disk does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int has(const char *gate, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", gate, name);
  return access(path, F_OK) == 0;
}

static int refused(int fd) {
  const char *gate = getenv("SYNC_GATE");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (!gate || length < 4) return 0;
  path[length] = 0;
  if (!strstr(path, "/backends/") || strcmp(path + length - 4, "-wal") != 0) return 0;
  if (has(gate, "hold")) {
    char held[4096];
    snprintf(held, sizeof held, "%s/held", gate);
    int mark = open(held, O_CREAT | O_WRONLY, 0600);
    if (mark >= 0) close(mark);
    while (has(gate, "hold")) usleep(1000);
  }
  return has(gate, "fail");
}

#define GATED(name)                                              \
  int name(int fd) {                                             \
    static int (*real)(int);                                     \
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name);     \
    if (refused(fd)) {                                           \
      errno = EIO;                                               \
      return -1;                                                 \
    }                                                            \
    return real(fd);                                             \
  }

GATED(fsync)
GATED(fdatasync)
