import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Person } from "../support/broker/approvals.ts";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { installationFor } from "../support/broker/installation.ts";
import { actors, spawnAs } from "../support/users/users.ts";

const POLICY = `id: default
name: Desktop
mode: enforce
commands:
  ask: ["touch *"]
`;

describe.each(actors().slice(0, 1))("approvals --watch at a desktop, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
  });
  afterAll(() => broker.stop());

  test.each([
    { name: "shows", config: "", count: 1 },
    { name: "does not show", config: "approvals: { notify: false }", count: 0 },
  ])("approvals --watch $name a question on the desktop as configured", async ({ name, config, count }) => {
    const log = join(broker.folder, "bin", `${count}.log`);
    broker.write(
      join(broker.folder, "bin/notify-send"),
      `#!/bin/sh\nprintf '%s\\n' "$@" >> "$LOG"\nexit 1\n`,
    );
    chmodSync(join(broker.folder, "bin/notify-send"), 0o755);
    const settings = readFileSync(join(broker.home, "config.yaml"), "utf8");
    broker.write(join(broker.home, "config.yaml"), `${settings}\n${config}\n`);
    const { node, launcher } = await installationFor(actor);
    const watch = spawnAs(actor, [node, launcher, "approvals", "--watch"], {
      cwd: broker.project,
      env: {
        SUBSTRATE_HOME: broker.home,
        DISPLAY: ":9",
        LOG: log,
        PATH: `${broker.folder}/bin:${process.env["PATH"] ?? ""}`,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const long = await person.told({ cmd: `touch x; : ${"x".repeat(2000)}; touch y` });
    let text = "";
    watch.stdout?.on("data", (data: Buffer) => {
      text += data.toString();
    });
    const asked = await person.told({ cmd: `touch '<b>${name}'` });
    const isPrinted = await eventually(() => text.includes(`${asked.approval_id}`), 5000);
    expect(isPrinted, text).toBe(true);
    const isShown = await eventually(() => existsSync(log), count === 1 ? 5000 : 500);
    const gone = new Promise<number | null>((resolve) => watch.once("exit", resolve));
    watch.kill("SIGINT");
    expect(await gone).toBe(130);
    await person.answer(asked.approval_id, "deny");
    await person.answer(long.approval_id, "deny");
    expect(isShown).toBe(count === 1);
    if (!isShown) return;
    const words = readFileSync(log, "utf8");
    expect(words).toContain(`&lt;b&gt;${name}`);
    expect(words).toContain(`substrate approve ${asked.approval_id} --once`);
    // A notification with a part of a command names no way to approve the whole.
    expect(words).toContain("characters are not shown");
    expect(words).toContain("substrate approvals shows all");
    expect(words).not.toContain(`substrate approve ${long.approval_id}`);
  });
});
