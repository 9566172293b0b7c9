/* The program `substrate`: runs `exec`, `run`, `attach` and `check` itself, and becomes the CLI in Node for everything else. */
#include "check.h"
#include "exec.h"
#include "node.h"
#include "options.h"
#include "run.h"

static int run(const struct options *options) {
  switch (options->verb) {
    case EXEC: return exec_run(options);
    case RUN: return run_run(options);
    case ATTACH: return attach_run(options);
    default: return check_run(options);
  }
}

int main(int count, char *words[]) {
  struct options options;
  int code = count > 0 && options_read(&options, words) ? run(&options) : TO_NODE;
  return code == TO_NODE ? node_become(words) : code;
}
