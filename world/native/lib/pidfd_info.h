/* PIDFD_GET_INFO of Linux 6.13, with PIDFD_INFO_EXIT of 6.15, for older headers
   (include/uapi/linux/pidfd.h). */
#ifndef SUBSTRATE_LIB_PIDFD_INFO_H
#define SUBSTRATE_LIB_PIDFD_INFO_H

#include <stdint.h>
#include <sys/ioctl.h>

struct pidfd_process {
  uint64_t mask, cgroup;
  uint32_t pid, tgid, ppid, ids[8]; /* in the pid namespace of the asking process */
  int32_t exit_code;                /* in the form of wait(2) */
};

#define PIDFD_PROCESS _IOWR(0xFF, 11, struct pidfd_process)
#define PIDFD_PROCESS_IDS (1ULL << 0)
#define PIDFD_PROCESS_EXIT (1ULL << 3)

#endif
