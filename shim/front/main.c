/* The program `substrate`, and compiled with SUBSTRATE_SH the program `substrate-sh`. The first runs `exec`, `run`, `attach`, `check` and `hook` itself, and becomes the CLI in Node for
   everything else. */
#include <string.h>

#include "check.h"
#include "exec.h"
#include "hook.h"
#include "node.h"
#include "../stream/refusal.h"
#include "options.h"
#include "run.h"
#include "sh.h"

static int run_verb(const struct options *options) {
  switch (options->verb) {
    case EXEC: return exec_run(options);
    case RUN: return run_run(options);
    case ATTACH: return attach_run(options);
    default: return check_run(options);
  }
}

static int run(char *const words[]) {
  struct options options;
  if (words[0] != NULL && words[1] != NULL && strcmp(words[1], "hook") == 0) return hook_run(words + 2);
  return options_read(&options, words) ? run_verb(&options) : TO_NODE;
}

int main(int count, char *words[]) {
#ifdef SUBSTRATE_SH
  return count > 0 ? sh_run(words) : EXIT_FAILED;
#endif
  int code = count > 0 ? run(words) : TO_NODE;
  return code == TO_NODE ? node_become(words) : code;
}
