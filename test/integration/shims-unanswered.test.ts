/** Shims that go away before the broker has answered them: their spans say so, and stay open for nobody. */
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Span } from "../../schemas/generated/types.ts";
import { TestBroker, eventually } from "../support/broker/broker.ts";
import { SHIM_POLICY, SHIM_POLICY as POLICY, pathWithShims, toolFor } from "../support/broker/shims.ts";
import { buildProgram } from "../support/programs/programs.ts";
import { type Ended, actors, runAs } from "../support/users/users.ts";

describe.each(actors())("a shim that goes away, as $kind", (actor) => {
  let broker: TestBroker;
  let bin = "";
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: SHIM_POLICY } });
    bin = await toolFor(broker);
  });
  afterAll(() => broker.stop());

  function tool(words: readonly string[], env: object = {}, signal?: AbortSignal): Promise<Ended> {
    const all = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home, ...env };
    const ends = signal === undefined ? {} : { signal };
    return runAs(actor, [join(broker.home, "shims/tool"), ...words], {
      cwd: broker.project,
      env: all,
      ...ends,
    });
  }

  /** What stands last of a start; once there is something, and it is closed. */
  async function closed(words: readonly string[]): Promise<Span | undefined> {
    const cmd = JSON.stringify(["tool", ...words]);
    const last = (): Span | undefined => broker.spans().findLast((span) => span.cmd === cmd);
    await eventually(() => last()?.event_type === "command_complete", 5000);
    return last();
  }

  async function whileStopped(act: () => Promise<void>): Promise<void> {
    const { pid } = broker.process;
    if (pid === undefined) throw new Error("The broker has ended");
    process.kill(pid, "SIGSTOP");
    try {
      await act();
    } finally {
      process.kill(pid, "SIGCONT");
    }
  }

  test("because a broker takes too long starts nothing, and its span is closed when the broker goes on", async () => {
    const [late, bypassed] = ["late", "bypassed"].map((name) => join(broker.project, name));
    await whileStopped(async () => {
      const [refused, started] = await Promise.all([
        tool(["late", "touch", String(late)]),
        tool(["denied", "touch", String(bypassed)], { SHIM_BYPASS: "1" }),
      ]);
      expect([refused.code, started.code]).toEqual([126, 0]);
      expect(refused.stderr).toContain("the broker did not answer");
      expect(started.stderr).toContain("nothing records this call of 'tool'");
    });
    expect([existsSync(String(late)), existsSync(String(bypassed))]).toEqual([false, true]);
    expect(await closed(["late", "touch", String(late)])).toMatchObject({
      outcome: "cancelled",
      exit: null,
      message: expect.stringContaining("so nothing was started"),
    });
    expect(await closed(["denied", "touch", String(bypassed)])).toMatchObject({
      outcome: "cancelled",
      message: expect.stringMatching(/SHIM_BYPASS=1.*may have started the program/),
    });
  }, 60_000);

  test("because it is killed while it waits leaves no span that stands open", async () => {
    await whileStopped(async () => {
      const ending = new AbortController();
      const running = tool(["killed"], {}, ending.signal).catch(() => undefined);
      await sleep(500);
      ending.abort();
      await running;
    });
    expect((await closed(["killed"]))?.outcome).toBe("cancelled");
  });

  test("in the moment in which it has asked leaves no span that stands open", async () => {
    const names = Array.from({ length: 50 }, (_, at) => `hasty-${at}`);
    for (const name of names)
      await hasty(JSON.stringify({ agent_id: "human", argv: ["tool", name], cwd: broker.project }));
    await eventually(() => names.every(isClosed), 10_000);
    expect(names.filter((name) => !isClosed(name))).toEqual([]);
  });

  function isClosed(name: string): boolean {
    const cmd = JSON.stringify(["tool", name]);
    return broker.spans().findLast((span) => span.cmd === cmd)?.event_type === "command_complete";
  }

  /** Sends a start and is gone. */
  function hasty(body: string): Promise<void> {
    const head = `POST /v1/report HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
    return new Promise((resolve, reject) => {
      const socket = connect(join(broker.home, "sock/agent.sock"), () =>
        socket.write(head + body, () => socket.destroy()),
      );
      socket.once("close", () => resolve()).once("error", reject);
    });
  }

  test("after its answer, as all do, leaves the span to the program's end", async () => {
    const running = tool(["exit", "7"]);
    expect((await running).code).toBe(7);
    expect(await closed(["exit", "7"])).toMatchObject({ outcome: "ended", exit: 7 });
    const long = tool(["pid"]);
    await sleep(100);
    const cmd = JSON.stringify(["tool", "pid"]);
    expect(
      broker
        .spans()
        .filter((span) => span.cmd === cmd)
        .map((span) => span.event_type),
    ).toEqual(["command_start"]);
    expect((await long).code).toBe(0);
    expect((await closed(["pid"]))?.outcome).toBe("ended");
  });
});

const OBSERVE = POLICY.replace("enforce", "observe");

describe.each(actors())("shims without a broker, as $kind", (actor) => {
  test.each([
    ["enforce", POLICY, 126],
    ["observe", OBSERVE, 0],
    ["enforce that says allow", `${POLICY}shims: { offline: allow }\n`, 0],
    ["observe that says deny", `${OBSERVE}shims: { offline: deny }\n`, 126],
  ])("do as the last policy that was read says: %s", async (_mode, policy, code) => {
    const broker = await TestBroker.start(actor, { policies: { default: policy } });
    try {
      const bin = await toolFor(broker);
      const env = { PATH: pathWithShims(broker, bin), SUBSTRATE_HOME: broker.home };
      await broker.run("true");
      expect(await eventually(() => existsSync(join(broker.home, "shims/.offline")), 5000)).toBe(true);
      const file = join(broker.project, "offline");
      await broker.kill("SIGKILL");
      const words = ["/bin/sh", "-c", `tool x touch '${file}'`];
      const ended = await runAs(actor, words, { cwd: broker.project, env, stdin: "" });
      expect([ended.code, existsSync(file)], ended.stderr).toEqual([code, code === 0]);
      expect(ended.stderr).toContain("no broker runs");
    } finally {
      await broker.stop();
    }
  });
});

// Shims in places where the process that watches would be a child of the program.

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
