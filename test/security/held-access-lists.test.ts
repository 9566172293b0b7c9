import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { changed, diffOf, fill, isolated, isolating } from "../support/held/changes.ts";
import { actorsWith } from "../support/run/needs.ts";

describe.each(actorsWith("setfacl", "python3"))("what no patch can show is named, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating() } });
    for (const name of ["share", "beside"]) mkdirSync(join(broker.project, name));
    fill(broker, { secret: "s\n", tagged: "t\n", "beside/f": "f\n" });
  });
  afterAll(() => broker.stop());

  function listOf(name: string): string {
    return execFileSync("getfacl", ["--omit-header", "--numeric", name], {
      cwd: broker.project,
      encoding: "utf8",
    });
  }

  test("an access list that a held command gave a folder or file, before an apply gives it", async () => {
    const { span_id: span, fs_diff: diff } = await isolated(
      broker,
      "setfacl -d -m o::rwx,g::rwx share; setfacl -m g::rw,m::r secret; echo readme > notes",
    );
    expect(diff).toMatchObject({ mods: ["secret", "share"], writes: ["notes"] });
    const { changes, summary } = await diffOf(broker, span);
    expect(changes.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
      "write notes",
      "mode secret",
      "mode share",
    ]);
    expect(summary).toContain("not in the patch, the access list of secret, share");
    expect(listOf("share")).not.toContain("default:other");
    await changed(broker, "apply", span);
    expect(listOf("share")).toContain("default:other::rwx");
    expect(listOf("secret")).toContain("mask::r--");
  });

  test("that of a new folder and of a new file in it", async () => {
    const { span_id: span } = await isolated(broker, "mkdir new; setfacl -d -m o::rwx new; echo x > new/f");
    expect((await diffOf(broker, span)).summary).toContain("the access list of new");
    await changed(broker, "discard", span);
  });

  test("an extended attribute", async () => {
    const { span_id: span, fs_diff: diff } = await isolated(
      broker,
      `python3 -c 'import os; os.setxattr("tagged", "user.note", b"x")'`,
    );
    expect(diff?.mods).toEqual(["tagged"]);
    expect((await diffOf(broker, span)).summary).toBe("not in the patch, the extended attributes of tagged");
    await changed(broker, "discard", span);
  });

  test("and nothing where a command changed content alone, or nothing", async () => {
    execFileSync("setfacl", ["-d", "-m", "o::rx", join(broker.project, "beside")]);
    execFileSync("setfacl", ["-m", "g::rw,m::r", join(broker.project, "beside/f")]);
    const { span_id: span, fs_diff: diff } = await isolated(broker, "echo x >> beside/f; : >> tagged");
    expect(diff).toMatchObject({ mods: ["beside/f"], dirs: [], writes: [], summary: null });
    expect(await diffOf(broker, span)).toMatchObject({ changes: [{ path: "beside/f" }], summary: null });
    await changed(broker, "apply", span);
    expect(listOf("beside/f")).toContain("mask::r--");
  });
});
