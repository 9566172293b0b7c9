#define _GNU_SOURCE
#include "run/owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/tree.h"
#include "run/children.h"

/* TASK_COMM_LEN plus a newline. */
#define COMM_MAX 17

/* Never blocks: neither the links nor comm are in the process's memory. */
static bool has_open(int proc, pid_t pid, const char *wanted) {
  char path[32];
  char target[64];
  snprintf(path, sizeof path, "%d/fd", pid);
  int folder = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  DIR *entries = fdopendir(folder);
  if (entries == NULL) {
    close(folder);
    return false;
  }
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(entries)) != NULL;) {
    ssize_t length = readlinkat(folder, entry->d_name, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    found = strcmp(target, wanted) == 0;
  }
  closedir(entries);
  return found;
}

static size_t read_name(int proc, pid_t pid, char *name) {
  char path[32];
  snprintf(path, sizeof path, "%d/comm", pid);
  int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t count = read(fd, name, COMM_MAX);
  close(fd);
  if (count > 0 && name[count - 1] == '\n') count--;
  return count > 0 ? (size_t)count : 0;
}

static bool put_owner(struct field_writer *writer, int proc, const struct command *command, const char *wanted) {
  int count;
  char name[COMM_MAX];
  const struct tree_process *processes = tree_below(proc, command->leader->pid, 1, &count);
  for (int i = 0; i < count; i++) {
    if (!has_open(proc, processes[i].pid, wanted)) continue;
    field_put_u64(writer, TAG_COMMAND, command->id);
    field_put_u64(writer, TAG_OWNER_PID, (uint64_t)processes[i].pid);
    field_put(writer, TAG_PROGRAM, name, read_name(proc, processes[i].pid, name));
    return true;
  }
  return false;
}

void owner_send(int proc, uint32_t question, uint64_t inode) {
  char wanted[64];
  uint8_t payload[2 * (FIELD_HEADER_SIZE + 8) + FIELD_HEADER_SIZE + COMM_MAX];
  struct field_writer writer = {.data = payload, .capacity = sizeof payload};
  snprintf(wanted, sizeof wanted, "socket:[%llu]", (unsigned long long)inode);
  for (struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    if (command->leader != NULL && put_owner(&writer, proc, command, wanted)) break;
  }
  channel_send(FRAME_OWNED, question, payload, writer.length);
}
