/* PIDFD_GET_INFO, here for older headers: of Linux 6.13, its PIDFD_INFO_EXIT of 6.15 (include/uapi/linux/pidfd.h). */
#ifndef SUBSTRATE_LIB_PIDFD_INFO_H
#define SUBSTRATE_LIB_PIDFD_INFO_H

#include <stdint.h>
#include <sys/ioctl.h>

struct pidfd_process {
  uint64_t mask, cgroup;
  uint32_t pid, tgid, ppid, ids[8]; /* as whoever asks counts them */
  int32_t exit_code;                /* as wait(2) has it */
};

#define PIDFD_PROCESS _IOWR(0xFF, 11, struct pidfd_process)
#define PIDFD_PROCESS_IDS (1ULL << 0)
#define PIDFD_PROCESS_EXIT (1ULL << 3)

#endif
