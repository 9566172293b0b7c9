/** Shims in places where the process that watches would be a child of the program. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors, runAs } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { pathWithShims, SHIM_POLICY, toolFor } from "../support/broker/shims.ts";

/** Adopts the orphans below it (PR_SET_CHILD_SUBREAPER), which outlives execve(2). */
const REAPER = `
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) {
  if (count < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) return 1;
  execvp(words[1], words + 1);
  return 1;
}
`;

/** Waits for a child that it never had: 0 when there is none, 3 when it adopts orphans no more. */
const CHILDLESS = `
#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
int main(void) {
  int reaper = 0;
  if (prctl(PR_GET_CHILD_SUBREAPER, &reaper) < 0 || reaper != 1) return 3;
  return waitpid(-1, 0, WNOHANG) == -1 && errno == ECHILD ? 0 : 1;
}
`;

describe.each(actors().slice(0, 1))("a shim, as $kind", (actor) => {
  let broker: TestBroker;
  let bin = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, {
      policies: { default: SHIM_POLICY },
    });
    bin = await toolFor(broker);
  });
  afterAll(() => broker.stop());

  test("gives a program that adopts orphans no child it did not start", async () => {
    buildProgram(broker, "reaper", REAPER);
    buildProgram(broker, "childless", CHILDLESS);
    const inner = `exec '${join(broker.project, "reaper")}' tool run`;
    broker.write(join(bin, "tool"), `#!/bin/sh\nexec '${join(broker.project, "childless")}'\n`);
    const env = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home };
    const ended = await runAs(actor, ["/bin/sh", "-c", inner], { cwd: broker.project, env });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
  });
});
