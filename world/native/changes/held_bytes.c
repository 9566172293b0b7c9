#define _GNU_SOURCE
#include "changes/held_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "changes/held_text.h"

#define PIECE (128 * 1024)

static int copy_range(int from, int to, off_t at, off_t end) {
  static char piece[PIECE];
  if (at > 0 && lseek(to, at, SEEK_SET) < 0) return -1;
  while (at < end) {
    size_t wanted = end - at < PIECE ? (size_t)(end - at) : PIECE;
    ssize_t got = pread(from, piece, wanted, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || !write_all(to, piece, (size_t)got)) return -1;
    if (got == 0) return 0;
    at += got;
  }
  return 0;
}

static int copy_sparse(int from, int to, off_t size) {
  off_t at = 0;
  while (at < size) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return copy_range(from, to, at, size);
    off_t hole = lseek(from, data, SEEK_HOLE);
    if (hole < 0 || copy_range(from, to, data, hole) < 0) return -1;
    at = hole;
  }
  return ftruncate(to, size);
}

int copy_bytes(int from, int to, const struct stat *status) {
  if (status->st_size == 0) return 0;
  /* Shares the blocks where the file system can (Btrfs, XFS); pays only for what is not small. */
  if (status->st_size > PIECE && ioctl(to, FICLONE, from) == 0) return 0;
  bool sparse = status->st_blocks * 512 < status->st_size;
  return sparse ? copy_sparse(from, to, status->st_size) : copy_range(from, to, 0, status->st_size);
}
