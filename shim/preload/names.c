/* Wrappers of calls that remove or rename files. A rename reports the new name. */
#define _GNU_SOURCE
#include "real.h"
#include "report.h"

SHOWN int unlink(const char *path) {
  report_path(REPORT_UNLINK, AT_FDCWD, path);
  return REAL(unlink)(path);
}

SHOWN int unlinkat(int folder, const char *path, int flags) {
  report_path(REPORT_UNLINK, folder, path);
  return REAL(unlinkat)(folder, path, flags);
}

SHOWN int remove(const char *path) {
  report_path(REPORT_UNLINK, AT_FDCWD, path);
  return REAL(remove)(path);
}

SHOWN int rmdir(const char *path) {
  report_path(REPORT_UNLINK, AT_FDCWD, path);
  return REAL(rmdir)(path);
}

SHOWN int rename(const char *from, const char *to) {
  report_path(REPORT_RENAME, AT_FDCWD, to);
  return REAL(rename)(from, to);
}

SHOWN int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  report_path(REPORT_RENAME, to_folder, to);
  return REAL(renameat)(from_folder, from, to_folder, to);
}

SHOWN int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned int flags) {
  report_path(REPORT_RENAME, to_folder, to);
  return REAL(renameat2)(from_folder, from, to_folder, to, flags);
}
