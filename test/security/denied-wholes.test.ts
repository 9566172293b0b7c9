import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { TestBroker } from "../support/broker/broker.ts";

/** A policy that may write the project and what lies in `state` beside it, and denies what `denials` says. */
function policy(denials: string): string {
  return `
id: default
name: Denied wholes
mode: enforce
fs:
  write: ["$PROJECT/**", "$PROJECT/../state/**"]
${denials}
commands: { isolated: ["isolated-*"] }
`;
}

const WHOLES = [
  "$PROJECT",
  "$PROJECT/**",
  "**",
  ".",
  "$PROJECT/..",
  "$PROJECT/../*",
  "$PROJECT/../pro{ject,mise}/**",
];

describe.each(actors())("a denied name that is the whole of what may be written, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  afterEach(() => broker?.stop());

  /** `folder`: below the home folder, since what is beside a project below /tmp is not there. */
  async function started(denials: string, folder?: string): Promise<TestBroker> {
    broker = await TestBroker.start(actor, {
      policies: { default: policy(denials) },
      ...(folder === undefined ? {} : { folder }),
    });
    mkdirSync(join(broker.folder, "state"));
    broker.write(join(broker.project, "old"), "TOKEN");
    broker.write(join(broker.project, "sub/old"), "TOKEN");
    broker.write(join(broker.project, "isolated-writer"), "#!/bin/sh\necho x > new; cat new\n");
    return broker;
  }

  const atHome = (): string => mkdtempSync(join(actor.home, "sb-wholes-"));

  test.each(WHOLES)(
    "'%s' in deny_write lets no command change the project, and every command read it",
    async (name) => {
      const { project, run } = bound(await started(`  deny_write: ["${name}"]`));
      const ran = await run(
        "echo x > new; echo x >> old; echo x >> sub/old; rm -f sub/old; mv sub s; cat old sub/old",
      );
      expect(ran.stdout).toBe("TOKENTOKEN");
      expect(existsSync(join(project, "new"))).toBe(false);
      expect(readFileSync(join(project, "sub/old"), "utf8")).toBe("TOKEN");
      const held = await run(
        "PATH=$PWD:$PATH sh -c 'chmod +x isolated-writer'; PATH=$PWD:$PATH isolated-writer; true",
      );
      expect(held.stdout).toBe("");
    },
  );

  test.each(WHOLES)(
    "'%s' in deny_read lets no command read the project, wherever it stands",
    async (name) => {
      const { project, run } = bound(await started(`  deny_read: ["${name}"]`));
      expect(await broker?.refused({ cmd: "cat old sub/old" })).toMatchObject({
        message: expect.stringContaining("Cannot enter"),
      });
      const ran = await run({ cmd: `cat '${project}/old' '${project}/sub/old'; true`, cwd: "/" }).catch(
        String,
      );
      expect(JSON.stringify(ran)).not.toContain("TOKEN");
    },
  );

  test("a writable folder beside the project is sealed and masked alone, and the project can still be written", async () => {
    const sealed = bound(await started(`  deny_write: ["$PROJECT/../state"]`, atHome()));
    expect((await sealed.run("echo x > ../state/f; echo y > f; cat f")).stdout).toBe("y\n");
    expect(existsSync(join(sealed.project, "../state/f"))).toBe(false);
    await broker?.stop();
    const masked = bound(await started(`  deny_read: ["$PROJECT/../state/**"]`, atHome()));
    expect((await masked.run("echo x > ../state/f; ls ../state; echo y > f; cat f")).stdout).toBe("y\n");
    expect(existsSync(join(masked.project, "../state/f"))).toBe(false);
  });

  test("without such a name both can be written", async () => {
    const { project, run } = bound(await started(`  deny_write: ["$PROJECT/sub"]`, atHome()));
    expect(
      (await run("echo x > ../state/f; echo y > f; echo z > sub/old; cat ../state/f f sub/old")).stdout,
    ).toBe("x\ny\nTOKEN");
    expect(readFileSync(join(project, "../state/f"), "utf8")).toBe("x\n");
  });
});

function bound(broker: TestBroker): Pick<TestBroker, "project"> & { readonly run: TestBroker["run"] } {
  return { project: broker.project, run: broker.run.bind(broker) };
}
