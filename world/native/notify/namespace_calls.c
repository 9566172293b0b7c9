#define _GNU_SOURCE
#include "notify/namespace_calls.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "notify/notices.h"
#include "notify/refused_calls.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define NAMESPACE_FLAGS                                                                             \
  ((uint32_t)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |            \
              CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME))

/* Refuses every notified call, whatever its flags: the filter has selected the call, and its flags lie in a
   register that the caller cannot change any more. */
bool namespace_call_serve(int listener, const struct seccomp_notif *notice, struct command *command) {
  const struct seccomp_data *call = &notice->data;
  if (call->nr != SYS_unshare && call->nr != SYS_clone) return false;
  bool makes = ((uint32_t)call->args[0] & NAMESPACE_FLAGS) != 0;
  if (makes && command != NULL) refused_calls_note(command, call, EPERM);
  notice_answer(listener, notice->id, EPERM);
  return true;
}
