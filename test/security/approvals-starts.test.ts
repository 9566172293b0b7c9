import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actors } from "../support/users/users.ts";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { needs } from "../support/run/needs.ts";

const POLICY = `id: default
name: Asks
mode: enforce
commands: { ask: ["touch *", "perl", "git tag *", "git push *"] }
`;

describe.each(actors())("an answer about a program that a running command starts, as $kind", (actor) => {
  let broker: TestBroker;
  let person: Person;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    person = new Person(broker);
    broker.write(inProject("sub/kept"), "");
  });
  afterAll(() => broker.stop());

  const inProject = (name: string): string => join(broker.project, name);
  const question = async (cmd: string): Promise<string | undefined> => {
    const { notices } = await broker.run(cmd);
    return notices.find(({ kind }) => kind === "approval_required")?.approval_id;
  };

  test("holds in the folder where it was asked, and in no other", async () => {
    broker.write(inProject("here.sh"), "touch made\n");
    broker.write(inProject("there.sh"), "cd sub && touch made\n");
    const here = await question("sh here.sh");
    expect(await person.question(here)).toMatchObject({ cwd: broker.project });
    await person.answer(here, "session");
    const there = await question("sh there.sh");
    expect(existsSync(inProject("sub/made"))).toBe(false);
    expect(await person.question(there)).toMatchObject({ cwd: inProject("sub") });
    expect(await question("sh here.sh")).toBeUndefined();
    expect(existsSync(inProject("made"))).toBe(true);
    await person.answer(there, "once");
    expect(await question("sh there.sh")).toBeUndefined();
    expect(existsSync(inProject("sub/made"))).toBe(true);
    // The same words in the same folder as a command of their own.
    expect(await person.told({ cmd: "touch made" })).toMatchObject({ code: "approval_required" });
    expect(await person.told({ argv: ["touch", "made"] })).toMatchObject({ status: 200 });
  });

  test("about a line holds for its words where the line goes, and in no folder to which a program that it starts goes", async () => {
    const ran = async (cmd: string): Promise<boolean> => {
      const { code, approval_id } = await person.told({ cmd });
      expect(code, cmd).toBe("approval_required");
      await person.answer(approval_id, "once");
      return (await broker.run(cmd)).exit === 0;
    };
    broker.write(inProject("elsewhere.sh"), "cd sub && touch own\n");
    expect(await ran("sh elsewhere.sh; touch own")).toBe(true);
    expect([existsSync(inProject("own")), existsSync(inProject("sub/own"))]).toEqual([true, false]);
    for (const [cmd, made] of [
      ["cd sub && touch one", "sub/one"],
      ["cd missing 2>/dev/null; touch two", "two"],
      ["(cd sub; touch three); touch three", "sub/three"],
      ["sh -c 'cd sub; touch four'", "sub/four"],
      ["for name in five; do touch $name; done", "five"],
      ["env -C sub touch six", "sub/six"],
    ] as const) {
      expect(await ran(cmd), cmd).toBe(true);
      expect(existsSync(inProject(made)), cmd).toBe(true);
    }
  });

  test("is given in a folder that only the world has", async () => {
    broker.write(inProject("away.sh"), "mkdir -p /tmp/away && cd /tmp/away && touch made && echo done\n");
    const away = await question("sh away.sh");
    expect(await person.question(away)).toMatchObject({ cwd: "/tmp/away" });
    await person.answer(away, "once");
    expect((await broker.run("sh away.sh")).stdout).toBe("done\n");
  });

  test("is bound to the name by which the program is started, and shows it", async () => {
    broker.write(inProject("tag.sh"), "exec -a git-tag git v1\n");
    broker.write(inProject("push.sh"), "exec -a git-push git v1\n");
    broker.write(inProject("plain.sh"), "git tag v1\n");
    const tag = await question("bash tag.sh");
    expect((await person.question(tag)).notes).toContain('The program is told that its name is "git-tag"');
    await person.answer(tag, "session");
    expect(await question("bash tag.sh")).toBeUndefined();
    expect(await question("bash push.sh")).toBeDefined();
    const plain = await question("bash plain.sh");
    expect((await person.question(plain)).notes.join()).not.toContain("its name is");
    await person.answer(plain, "session");
    expect(await question("sh plain.sh")).toBeUndefined();
  });

  test("is for one run where the program runs its input", async () => {
    needs("perl");
    broker.write(inProject("fed.sh"), "printf 'print 1' | perl\n");
    const fed = await question("sh fed.sh");
    expect((await person.question(fed)).offers).toEqual(["once", "deny"]);
    await person.approve({ argv: ["perl"] }, "session");
    expect((await broker.run("sh fed.sh")).stdout).toBe("");
    await person.answer(fed, "once");
    expect((await broker.run("sh fed.sh")).stdout).toBe("1");
  });
});
