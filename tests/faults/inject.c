/* Preloaded into a process under test: kills it, or lets a call fail, at a chosen write to files below a folder.
 *
 *   FAULT_UNDER  the folder
 *   FAULT_CALL   open, write, fsync, rename, unlink or truncate; empty: any of them
 *   FAULT_FILE   a part of the file's name; empty: any file
 *   FAULT_AT     the number of the matching call, from 1
 *   FAULT_DO     before, half, after: SIGKILL before the call, after half of what is to be written, after the call;
 *                or a number: that errno, instead of the call
 *   FAULT_TIMES  how many calls fail so, from FAULT_AT on; 1 where it is not set
 *   FAULT_LOG    a file to which every matching call is added: "call name"
 *   FAULT_CLOCK  the wall clock jumps by years, back and forth, whenever it is read
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long calls;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static void add_to_log(const char *call, const char *file) {
    const char *path = setting("FAULT_LOG");
    if (!*path) return;
    char line[512];
    int length = snprintf(line, sizeof line, "%s %s\n", call, file);
    int log = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (log >= 0 && REAL(write)(log, line, length) < length) abort();
    if (log >= 0) close(log);
}

/* What becomes of a call: 0 nothing, -1 "half", -2 "after", or an errno. "before" does not come back. */
static int fault_of(const char *call, const char *path) {
    const char *under = setting("FAULT_UNDER"), *wanted = setting("FAULT_CALL"), *action = setting("FAULT_DO");
    if (!*under || strncmp(path, under, strlen(under))) return 0;
    if (*wanted && strcmp(wanted, call)) return 0;
    const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!strstr(file, setting("FAULT_FILE"))) return 0;
    pthread_mutex_lock(&mutex);
    long number = ++calls;
    add_to_log(call, file);
    pthread_mutex_unlock(&mutex);
    long from = atol(setting("FAULT_AT")), times = *setting("FAULT_TIMES") ? atol(setting("FAULT_TIMES")) : 1;
    if (!from || number < from || number >= from + times) return 0;
    if (!strcmp(action, "before")) die();
    return !strcmp(action, "half") ? -1 : !strcmp(action, "after") ? -2 : atoi(action);
}

static int fault_of_handle(const char *call, int handle) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fault_of(call, path);
}

#define FAIL_OR(fault, type, done)           \
    if (fault > 0) return errno = fault, -1; \
    type result = done;                      \
    if (fault < 0) die();                    \
    return result;

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    int fault = flags & (O_WRONLY | O_RDWR) ? fault_of("open", path) : 0;
    FAIL_OR(fault, int, REAL(open64)(path, flags, mode))
}

ssize_t write(int handle, const void *data, size_t size) {
    int fault = handle > 2 ? fault_of_handle("write", handle) : 0;
    FAIL_OR(fault, ssize_t, REAL(write)(handle, data, fault == -1 ? size / 2 : size))
}

int fsync(int handle) {
    int fault = fault_of_handle("fsync", handle);
    FAIL_OR(fault, int, REAL(fsync)(handle))
}

int ftruncate64(int handle, off64_t length) {
    int fault = fault_of_handle("truncate", handle);
    FAIL_OR(fault, int, REAL(ftruncate64)(handle, length))
}

int rename(const char *from, const char *to) {
    int fault = fault_of("rename", to);
    FAIL_OR(fault, int, REAL(rename)(from, to))
}

int unlink(const char *path) {
    int fault = fault_of("unlink", path);
    FAIL_OR(fault, int, REAL(unlink)(path))
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static uint32_t state = 1;
    int result = REAL(clock_gettime)(clock, now);
    if (clock == CLOCK_REALTIME && *setting("FAULT_CLOCK")) {
        state = state * 1664525u + 1013904223u;
        now->tv_sec += (time_t)(state >> 1) - (time_t)(1u << 30); /* up to 34 years */
    }
    return result;
}
