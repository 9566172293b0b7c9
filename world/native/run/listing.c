#define _GNU_SOURCE
#include "run/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/channel.h"
#include "lib/commands.h"
#include "lib/failure.h"
#include "lib/fields.h"
#include "lib/frames.h"
#include "lib/tree.h"
#include "run/children.h"

#define COMMAND_LINE_MAX 4096

/* Reads the arguments, joined by spaces; empty for a process that has ended. The arguments are in the
   process's memory: this read waits for the file system behind that memory (README.md, "Limits"). */
static size_t read_command_line(int proc, pid_t pid, char *text) {
  char path[32];
  snprintf(path, sizeof path, "%d/cmdline", pid);
  int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t count = read(fd, text, COMMAND_LINE_MAX);
  close(fd);
  if (count <= 0) return 0;
  if (text[count - 1] == 0) count--;
  for (ssize_t i = 0; i < count; i++) {
    if (text[i] == 0) text[i] = ' ';
  }
  return (size_t)count;
}

static void put_processes(struct field_writer *writer, int proc, const struct command *command) {
  int count;
  const struct tree_process *processes = tree_below(proc, command->leader->pid, 1, &count);
  for (int i = 0; i < count; i++) {
    char text[64 + COMMAND_LINE_MAX];
    int head = snprintf(text, 64, "%u%c%d%c%d%c", command->id, 0, processes[i].pid, 0, processes[i].parent, 0);
    size_t tail = read_command_line(proc, processes[i].pid, text + head);
    field_put(writer, TAG_PROCESS, text, (size_t)head + tail);
  }
}

void listing_send(int proc) {
  /* Address space, not memory: only written pages count. */
  void *space = mmap(NULL, FRAME_MAX_PAYLOAD, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) fail_world("list", "", errno);
  struct field_writer writer = {.data = space, .capacity = FRAME_MAX_PAYLOAD};
  for (struct command *command = command_after(NULL); command != NULL; command = command_after(command)) {
    if (command->leader != NULL) put_processes(&writer, proc, command);
  }
  channel_send(FRAME_LISTED, 0, space, writer.length);
  munmap(space, FRAME_MAX_PAYLOAD);
}
