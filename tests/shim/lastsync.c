/*
 * A disk that forgets: keeps, for every file in a folder, a copy of what it held when it was last synced.
 *
 * Loaded with LD_PRELOAD. After each fsync or fdatasync that succeeded on a file directly in LASTSYNC_DATA, and
 * before the call returns, the file's content is copied to LASTSYNC_COPIES under the same name (written aside
 * and renamed, so that a copy is whole at any moment). A file that was removed keeps its copy until the folder
 * is synced. A power cut then is: kill the process, put the copies in place of the files, and drop what has no
 * copy, since it was never synced.
 *
 * The copy is made through the file's own descriptor: to open and close the file once more would drop the
 * process's POSIX locks on it. sync_file_range and msync promise nothing about a power cut and are let through
 * without a copy. A fault of the shim itself ends the process, so that it never looks like a loss.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void give_up(const char *what, const char *name)
{
    fprintf(stderr, "lastsync: %s %s: %s\n", what, name, strerror(errno));
    abort();
}

/* The path of an open file below the data folder, from the folder on: "" for the folder itself, "/name" for a
 * file in it. NULL for everything else. */
static const char *below_folder(int fd, char *path, size_t size)
{
    const char *folder = getenv("LASTSYNC_DATA");
    char link[64];
    ssize_t length;
    size_t prefix;

    if (!folder)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, size - 1);
    if (length < 0)
        give_up("readlink", link);
    path[length] = '\0';
    prefix = strlen(folder);
    if (strncmp(path, folder, prefix) != 0 || (path[prefix] != '/' && path[prefix] != '\0'))
        return NULL;
    return path + prefix;
}

static void copy(int from, int to, const char *name)
{
    char buffer[1 << 16];
    off_t at = 0;
    ssize_t moved;

    do {
        moved = copy_file_range(from, &at, to, NULL, 1 << 30, 0);
    } while (moved > 0);
    if (moved == 0 && at > 0)
        return;
    /* Nothing moved: an empty file, or a file system that cannot do it. */
    while ((moved = pread(from, buffer, sizeof buffer, at)) > 0) {
        for (ssize_t done = 0; done < moved;) {
            ssize_t wrote = write(to, buffer + done, (size_t)(moved - done));
            if (wrote < 0)
                give_up("write the copy of", name);
            done += wrote;
        }
        at += moved;
    }
    if (moved < 0)
        give_up("read", name);
}

/* What is kept of a file at its sync. */
static void keep(int fd, const char *path, const char *name, const char *copies)
{
    char aside[PATH_MAX], copied[PATH_MAX];
    int from = fd, to;

    snprintf(aside, sizeof aside, "%s/.aside", copies);
    snprintf(copied, sizeof copied, "%s/%s", copies, name);
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY && (from = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        give_up("open", name);
    to = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0)
        give_up("create the copy of", name);
    copy(from, to, name);
    if (close(to) != 0 || rename(aside, copied) != 0)
        give_up("keep the copy of", name);
    if (from != fd)
        close(from);
}

/* What was removed from the folder before its sync is gone for good. */
static void forget_removed(const char *folder, const char *copies)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *list = opendir(copies);

    if (!list)
        give_up("list", copies);
    while ((entry = readdir(list)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (access(path, F_OK) == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", copies, entry->d_name);
        if (unlink(path) != 0)
            give_up("remove the copy of", entry->d_name);
    }
    closedir(list);
}

static void synced(int fd)
{
    char path[PATH_MAX];
    const char *copies = getenv("LASTSYNC_COPIES");
    const char *below = below_folder(fd, path, sizeof path);
    struct stat about;

    if (!copies || !below || fstat(fd, &about) != 0 || about.st_nlink == 0)
        return;
    pthread_mutex_lock(&lock);
    if (S_ISDIR(about.st_mode) && *below == '\0')
        forget_removed(path, copies);
    else if (S_ISREG(about.st_mode) && *below == '/' && !strchr(below + 1, '/'))
        keep(fd, path, below + 1, copies);
    pthread_mutex_unlock(&lock);
}

static int sync_with(const char *symbol, int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, symbol);
    int done, error;

    if (!real)
        give_up("find", symbol);
    done = real(fd);
    error = errno;
    if (done == 0)
        synced(fd);
    errno = error;
    return done;
}

int fsync(int fd)
{
    return sync_with("fsync", fd);
}

int fdatasync(int fd)
{
    return sync_with("fdatasync", fd);
}
