#define _GNU_SOURCE
#include "lib/credentials.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/failure.h"

/* Each with its lock: no privileges for uid 0 on exec, no ambient capabilities, no keeping over setuid. */
#define SECURE_BITS                                                                                  \
  (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |   \
   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* More than any kernel has; the loop ends at the first unknown number. */
#define CAPABILITY_NUMBERS 64

static void must(int result, const char *what) {
  if (result < 0) fail_world("credentials", what, errno);
}

/* Bits in the first word of a capability set. CAP_DAC_OVERRIDE opens a folder without permissions while its
   files are sealed (seals/settle.h). */
#define MOUNTING ((1U << CAP_SYS_ADMIN) | (1U << CAP_DAC_READ_SEARCH) | (1U << CAP_DAC_OVERRIDE))

/* For reading the memory and folders of a program that is not dumpable: ssh-agent and gpg start programs too, and the gate
   must read their paths. */
#define READING (1U << CAP_SYS_PTRACE)

/* Capability sets of this process, as the last capset(2) made them. */
static uint32_t permitted, effective;

static void set_effective(uint32_t wanted) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  effective = wanted & permitted;
  struct __user_cap_data_struct sets[2] = {{.effective = effective, .permitted = permitted}, {0}};
  must((int)syscall(SYS_capset, &header, sets), "capset");
}

static uint32_t permitted_now(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  must((int)syscall(SYS_capget, &header, sets), "capget");
  return sets[0].permitted;
}

static void drop(uint32_t kept) {
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient");
  /* Before the sets are emptied: both need CAP_SETPCAP. */
  must(prctl(PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0), "securebits");
  for (int number = 0; number < CAPABILITY_NUMBERS; number++) {
    if (prctl(PR_CAPBSET_READ, number, 0, 0, 0) < 0) break;
    must(prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "bounding set");
  }
  permitted = kept & (permitted_now() | ~READING);
  set_effective(0);
}

void credentials_drop(void) {
  drop(0);
}

void credentials_drop_but_supervise(bool mounts) {
  drop(mounts ? MOUNTING | READING : READING);
}

void credentials_raise(void) {
  set_effective(MOUNTING);
}

void credentials_lower(void) {
  set_effective(0);
}

bool credentials_raise_reading(void) {
  if ((permitted & READING) == 0) return false;
  set_effective(effective | READING);
  return true;
}

void credentials_lower_reading(void) {
  set_effective(effective & ~READING);
}

void credentials_hide(void) {
  must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable");
}

void credentials_become(uint32_t uid, uint32_t gid) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  must(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "keep capabilities");
  /* In this order: setresuid removes the right to change groups from the effective set. */
  must(setgroups(0, NULL), "setgroups");
  must(setresgid(gid, gid, gid), "setresgid");
  must(setresuid(uid, uid, uid), "setresuid");
  must((int)syscall(SYS_capget, &header, sets), "capget");
  for (int i = 0; i < 2; i++) sets[i].effective = sets[i].permitted;
  must((int)syscall(SYS_capset, &header, sets), "capset");
  /* setresuid made the process undumpable, and an undumpable process cannot write its own identity maps. */
  must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable");
}
