/** A question at the terminal whose job is stopped, whose process is killed, and which other processes must not find. */
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { processesWith } from "../support/processes/processes.ts";
import { FRONTS, Person } from "../support/programs/person.ts";
import { actors } from "../support/users/users.ts";

const POLICY = "id: default\nname: x\nmode: enforce\ncommands: { opaque: allow, ask: ['touch *'] }\n";

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

const MODES = "$(stty -a | tr ' ;' '\\n\\n' | grep -cx -e icanon -e echo -e isig -e opost)";

describe.each(actors().slice(0, 1))("a question at the terminal, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
  });
  afterAll(() => broker.stop());

  const people: Person[] = [];
  afterEach(() => people.splice(0).forEach((person) => person.leave()));

  /** A person who is asked about a command. */
  async function asked(words: string, front: (typeof FRONTS)[number] = "native"): Promise<Person> {
    const person = await Person.at(broker, {}, front);
    people.push(person);
    person.type(`${words}\r`);
    await person.sees(/\[n\] /);
    return person;
  }

  /** The pid of the process that asks for the native front. */
  function asking(): number {
    const all = processesWith("--call").filter((pid) =>
      readFileSync(`/proc/${pid}/environ`, "utf8").includes(`SUBSTRATE_HOME=${broker.home}\0`),
    );
    expect(all).toHaveLength(1);
    return all[0] ?? 0;
  }

  const cases = FRONTS.flatMap((front) => ["exec", "run"].map((verb) => ({ front, verb })));
  test.each(cases)("is stopped as a job by Ctrl-Z, and asked again by fg: $verb, $front", async (at) => {
    const person = await asked(`substrate ${at.verb} -- touch ${at.verb}-${at.front}`, at.front);
    person.type("\x1a");
    await person.sees(/Stopped[^]*OUTSIDE> $/);
    person.type("fg\r");
    await person.sees(/\[n\] /);
    person.type("n\r");
    await person.sees(/denied; nothing ran\r\n[^]*OUTSIDE> $/);
  });

  test.each(["exec", "run"])("leaves a usable terminal when its process is killed: %s", async (verb) => {
    const person = await asked(`substrate ${verb} -- touch killed-${verb}`);
    process.kill(asking(), "SIGKILL");
    await person.sees(/the question was killed; 'substrate approvals' lists what waits/);
    person.type("\x03");
    await person.sees(/OUTSIDE> $/);
    person.type(`echo "modes ${MODES}"\r`);
    await person.sees(/modes 4\r\n/);
  });

  test.each(["exec", "run"])(
    "ends at once with a signal for the front, though its process is stopped: %s",
    async (verb) => {
      const person = await asked(`substrate ${verb} -- touch ended-${verb}`);
      const pid = asking();
      const front = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
      process.kill(pid, "SIGSTOP");
      process.kill(front, "SIGTERM");
      await person.sees(/OUTSIDE> $/);
      expect(await eventually(() => processesWith("--call").includes(pid) === false, 5000)).toBe(true);
    },
  );

  test("has its call's id in no process's words, by which another caller's question would be put here", async () => {
    await asked("substrate exec -- touch secret");
    const pid = asking();
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toMatch(UUID);
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toMatch(UUID);
  });
});
