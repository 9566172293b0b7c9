#define _GNU_SOURCE
#include "deny/find_names.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "deny/rules.h"
#include "deny/scan.h"
#include "deny/scan_roots.h"
#include "lib/fields.h"
#include "lib/frames.h"

#define INPUT_MAX (4U * 1024 * 1024)
/* A machine with a few people's projects and packages has some hundred thousand folders. */
#define FOLDERS_MAX 1000000

static bool on_enter(int folder, const char *path, const struct rule_states *states) {
  (void)folder;
  (void)states;
  return !is_scan_root(path);
}

/* Prints a name and skips its contents. */
static bool on_found(const char *path, unsigned denies) {
  (void)denies;
  /* Flush at once: an impatient reader uses the output so far. */
  if (fwrite(path, strlen(path) + 1, 1, stdout) != 1 || fflush(stdout) != 0) _exit(1);
  return false;
}

static void read_rules(void) {
  uint8_t *input = malloc(INPUT_MAX);
  size_t length = input == NULL ? 0 : fread(input, 1, INPUT_MAX, stdin);
  if (length == 0 || length == INPUT_MAX || ferror(stdin)) _exit(1);
  struct field_reader reader = {input, input + length};
  struct field field;
  int more;
  while ((more = field_next(&reader, &field)) > 0) {
    const char *wrong = "unknown field";
    if (field.tag == TAG_DENY) wrong = rules_add(field.data, field.length);
    else if (field.tag == TAG_ZONE) wrong = scan_roots_take(field.data, field.length);
    if (wrong != NULL) _exit(1);
  }
  if (more < 0) _exit(1);
  free(input);
}

void find_names_run(void) {
  bool cut = false;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) _exit(1);
  signal(SIGPIPE, SIG_DFL);
  read_rules();
  int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const struct rule_states *states = rules_begin(DENY_HOST);
  if (root < 0 || states == NULL) _exit(1);
  const struct scan scan = {
      .root = root, .enter = on_enter, .found = on_found, .folders_max = FOLDERS_MAX, .cut = &cut};
  scan_below(&scan, "/", states);
  fputc(0, stdout);
  fputs(cut ? "cut" : "whole", stdout);
  fputc(0, stdout);
  _exit(fflush(stdout) == 0 ? 0 : 1);
}
