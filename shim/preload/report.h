/* Reports a program's calls to the world's listener. Without a listener, reports nothing. */
#ifndef SUBSTRATE_PRELOAD_REPORT_H
#define SUBSTRATE_PRELOAD_REPORT_H

#include <stddef.h>

/* Exports a wrapper from the library; all other functions stay hidden. */
#define SHOWN __attribute__((visibility("default")))

/* A message: u8 kind, u8 flags, u16 (little-endian) number of messages lost before, and at most REPORT_TEXT
   bytes. The reader is world/native/telemetry/telemetry.c. */
enum report_kind { REPORT_EXEC = 1, REPORT_WRITE, REPORT_CONNECT, REPORT_UNLINK, REPORT_RENAME };
enum report_flag { REPORT_CUT = 1 };
#define REPORT_HEADER 4
#define REPORT_TEXT 1024

/* Made of plain system calls: safe in signal handlers, threads and children of vfork(2), which share the
   parent's memory. No function changes errno, waits, or is a cancellation point. */

/* Reports a path, absolute or below the folder of a descriptor (AT_FDCWD: the working directory). An invalid
   pointer is safe. */
void report_path(enum report_kind kind, int folder, const char *path);
/* Reports the file of a descriptor. */
void report_descriptor(enum report_kind kind, int fd);
/* Reports bytes, which only the kernel reads. */
void report_bytes(enum report_kind kind, const void *bytes, size_t length);
/* Stops the reports of this process. */
void report_no_more(void);

#endif
