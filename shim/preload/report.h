/* Says what a program is about to do, to whoever listens in this world. Nobody listens: it is not said. */
#ifndef SUBSTRATE_PRELOAD_REPORT_H
#define SUBSTRATE_PRELOAD_REPORT_H

#include <stddef.h>

/* What a wrapper is to the program that is looked up in this library; everything else stays inside it. */
#define SHOWN __attribute__((visibility("default")))

/* A message: u8 kind, u8 flags, u16 (little-endian) how many before it were not taken, and at most REPORT_TEXT bytes. The numbers
   are read again in world/native/telemetry/telemetry.c. */
enum report_kind { REPORT_EXEC = 1, REPORT_WRITE, REPORT_CONNECT, REPORT_UNLINK, REPORT_RENAME };
enum report_flag { REPORT_CUT = 1 };
#define REPORT_HEADER 4
#define REPORT_TEXT 1024

/* All of these are made of plain system calls: for signal handlers, threads, and children of vfork(2) that share our memory. None
   of them changes errno, waits, or is a point at which a thread can be cancelled. */

/* A path, from the folder of a descriptor (AT_FDCWD: the working directory) unless it is absolute. It may be no pointer at all. */
void report_path(enum report_kind kind, int folder, const char *path);
/* The file of a descriptor. */
void report_descriptor(enum report_kind kind, int fd);
/* Bytes that only the kernel looks at. */
void report_bytes(enum report_kind kind, const void *bytes, size_t length);
/* From now on nothing of this process is said. */
void report_no_more(void);

#endif
