/* The program `substrate`: runs `exec` and `check` itself, and becomes the CLI in Node for everything else. */
#include "check.h"
#include "exec.h"
#include "node.h"
#include "options.h"

static int run(const struct options *options) {
  return options->verb == EXEC ? exec_run(options) : check_run(options);
}

int main(int count, char *words[]) {
  struct options options;
  int code = count > 0 && options_read(&options, words) ? run(&options) : TO_NODE;
  return code == TO_NODE ? node_become(words) : code;
}
