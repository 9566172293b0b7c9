/** Jobs of `substrate shell`: what bash tells of them before a prompt. */
import { afterEach, describe, expect, test } from "vitest";
import { withBroker } from "../support/broker/budgets.ts";
import { Person } from "../support/programs/person.ts";
import { actors } from "../support/users/users.ts";

const POLICY = `id: default
name: Shells
mode: enforce
commands:
  opaque: allow
`;

const PROMPT = /\[world [0-9a-f]{4}(?: \d+)?\] [^ ]+ \$ $/;

describe.each(actors().slice(0, 1))("jobs of a shell, as $kind", (actor) => {
  const people: Person[] = [];
  afterEach(() => people.splice(0).forEach((person) => person.leave()));

  test("are told when they begin and when they have ended, each once, and programs of the foreground never", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await Person.at(broker);
      people.push(person);
      /** What the shell shows after a line, without the line and the prompt. */
      const after = async (line: string): Promise<string> => {
        person.type(`${line}\r`);
        const seen = await person.sees(PROMPT);
        return seen.replace(PROMPT, "").replaceAll("\r", "").split("\n").slice(1).join("\n");
      };
      await after("substrate shell");
      expect(await after("mkfifo end")).toBe("");

      expect(await after("sleep 1000 & sleep 1001 | cat & cat end | (exit 3) &")).toMatch(
        /^\[1\] \d+\n\[2\] \d+\n\[3\] \d+\n$/,
      );
      expect(await after("ls /missing; false; (exit 4)")).toMatch(/^ls: [^\n]*\n$/);
      expect(await after("jobs")).toMatch(
        /^\[1\] +Running +sleep 1000 &\n\[2\][- ] +Running +sleep 1001 \| cat &\n\[3\]\+ +Running +cat end \| [^\n]*\n$/,
      );
      expect(await after("true")).toBe("");
      // A job's text may look like jobs.
      const document = String.raw`eval $'sleep 1003 <<X &\n[1] 1 Running x\n[section]\n[7] 5 Done y\nX'`;
      expect(await after(document)).toMatch(/^\[4\] \d+\n$/);
      expect(await after("true")).toBe("");
      expect(await after("disown %4; kill $!")).toBe("");
      // The job ends at a moment of its own: empty lines before that tell nothing.
      let ended = await after("echo > end; false");
      for (let turn = 0; ended === "" && turn < 100; turn++) ended = await after("");
      expect(ended).toMatch(/^\[3\]\+ +Exit 3 +cat end \| [^\n]*\n$/);
      const gone = "while kill -0 $! 2>/dev/null; do sleep 0.01; done";
      expect(await after(`kill %1; false & ${gone}; echo gone`)).toMatch(
        /^gone\n\[1\][- ] +Terminated +sleep 1000\n\[3\] \d+\n\[3\][-+ ] +Exit 1 +false\n$/,
      );
      // An empty line changes no exit code.
      expect(await after("(exit 7)")).toBe("");
      expect(await after("")).toBe("");
      expect(await after("echo $?")).toBe("7\n");
      // What was brought back is the foreground's.
      expect(await after("sleep 1002 & false")).toMatch(/^\[\d\] \d+\n$/);
      person.type("fg\r");
      await person.sees(/\r\nsleep 1002\r\n/);
      person.type("\x03");
      expect(await person.sees(PROMPT)).not.toContain("sleep");
      expect(await after("jobs")).toMatch(/^\[2\]\+ +Running +sleep 1001 \| cat &\n$/);
    });
  });
});
