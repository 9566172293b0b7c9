/** Commands behind a shim that the policy isolates, at a terminal: it is the command's until its end, and then as before. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { eventually, TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { installShim, isolating, shimsEnvironment, shimsOf } from "../support/broker/shims.ts";
import { processesWith } from "../support/processes/processes.ts";
import { Person } from "../support/programs/person.ts";
import { actors } from "../support/users/users.ts";

/** Runs a command at a terminal, and says whether the terminal's modes are the same afterwards. */
const AROUND = `before=$(stty -g)
"$@"
code=$?
[ "$before" = "$(stty -g)" ] && echo "same modes, code $code"
`;

describe.each(actors())("isolated commands behind shims at a terminal, as $kind", (actor) => {
  let broker: TestBroker;
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: isolating("enforce") } });
    await installShim(broker, "bash");
    broker.write(join(broker.project, "around.sh"), AROUND);
  });
  afterAll(() => broker.stop());

  const people: Person[] = [];
  afterEach(() => people.splice(0).forEach((person) => person.leave()));

  async function atTerminal(at = broker): Promise<Person> {
    const person = await Person.at(at, shimsEnvironment(at));
    people.push(person);
    return person;
  }

  test("have this terminal's size and kind and changes of size, and give it back with their last line", async () => {
    const person = await atTerminal();
    const inside = `tty; stty size; echo $TERM; until [ "$(stty size)" = "20 70" ]; do sleep 0.05; done; stty raw -echo; echo sized > sized; exit 7`;
    person.type(`sh around.sh bash -c '${inside}'\r`);
    await person.sees(/\/dev\/pts\/0\r\n30 100\r\nxterm-256color\r\n/);
    person.resize(70, 20);
    await person.sees(/substrate: Changes are held, [^\r\n]*\r\nsame modes, code 7\r\n/);
    expect(existsSync(join(broker.project, "sized"))).toBe(false);
  });

  test("are typed to, and alone get Ctrl-C, also inside their own shell", async () => {
    const person = await atTerminal();
    person.type(`sh around.sh bash -c 'echo re""ady; read -r line; echo "got <$line>"; exec sleep 1000'\r`);
    await person.sees(/ready\r\n/);
    person.type("some words\r");
    await person.sees(/got <some words>\r\n/);
    person.type("\x03");
    await person.sees(/\^C[^]*same modes, code 130\r\n/);
    person.type(`sh around.sh bash -c 'PS1="INSIDE> " exec bash --norc --noprofile -i'\r`);
    await person.sees(/INSIDE> $/);
    person.type("sh -c 'echo in''side; exec sleep 1000'\r");
    await person.sees(/inside\r\n/);
    person.type("\x1a");
    await person.sees(/Stopped[^]*INSIDE> $/);
    person.type("fg\r");
    await person.sees(/fg\r\n[^]*sleep 1000'\r\n/);
    person.type("\x03");
    await person.sees(/\^C\r\n[^]*INSIDE> $/);
    person.type("exit 5\r");
    await person.sees(/same modes, code 5\r\n/);
  });

  test.each([
    ["SIGSEGV", 139],
    ["SIGQUIT", 131],
    ["SIGUSR1", 138],
    ["SIGTERM", 143],
  ] as const)("give the terminal back when %s ends the shim, and end with it", async (name, code) => {
    const person = await atTerminal();
    const marker = `marker-${randomBytes(6).toString("hex")}`;
    person.type(
      `sh around.sh bash -c 'trap "" TERM; stty raw -echo; echo re""ady; while :; do sleep 0.05; done; : ${marker}'\r`,
    );
    await person.sees(/ready\n/);
    const [pid] = shimsOf(broker.home);
    expect(modesOf(pid)).toContain(" -icanon");
    process.kill(Number(pid), name);
    if (name === "SIGTERM") {
      await sleep(300);
      process.kill(Number(pid), name);
    }
    await person.sees(new RegExp(`same modes, code ${code}\\r\\n`));
    expect(await eventually(() => processesWith(marker).length === 0, 5000)).toBe(true);
  });

  test("give the terminal back when the broker dies under them", async () => {
    await withBroker(actor, { policies: { default: isolating("enforce") } }, async (at) => {
      await installShim(at, "bash");
      at.write(join(at.project, "around.sh"), AROUND);
      const person = await atTerminal(at);
      person.type("sh around.sh bash -c 'stty raw -echo; echo re\"\"ady; sleep 1000'\r");
      await person.sees(/ready\n/);
      await at.kill("SIGKILL");
      await person.sees(/substrate: The broker ended [^\r\n]*\r\nsame modes, code 125\r\n/);
    });
  });

  test("give the terminal back while they are stopped, and take it again", async () => {
    const person = await atTerminal();
    person.type(`bash -c 'stty -echo; echo re""ady; read -r line; echo "got <$line>"'\r`);
    await person.sees(/ready\r\n/);
    const [pid] = shimsOf(broker.home);
    process.kill(Number(pid), "SIGTSTP");
    await person.sees(/Stopped[^]*OUTSIDE> $/);
    person.type("sh around.sh fal''se\r");
    await person.sees(/same modes, code 1\r\n/);
    person.type("fg\r");
    await person.sees(/fg\r\n[^]*bash -c [^\n]*\n/);
    expect(await eventually(() => modesOf(pid).includes(" -icanon"), 5000)).toBe(true);
    person.type("words\r");
    await person.sees(/got <words>\r\n[^]*OUTSIDE> $/);
  });

  test("have pipes instead where an output goes elsewhere or a job is in the background, and say that nobody can type", async () => {
    const person = await atTerminal();
    person.type(`sh around.sh bash -c 'tty; echo to-err >&2' 2> err-of-it\r`);
    await person.sees(/not a tty\r\nsame modes, code 0\r\n/);
    expect(readFileSync(join(broker.project, "err-of-it"), "utf8")).toBe("to-err\n");
    person.type(`bash -c 'tty; cat; echo end' | sed 's/^/| /'\r`);
    await person.sees(/gets no input from this terminal[^]*\| not a tty\r\n\| end\r\n/);
    person.type(`bash -c 'tty; cat; echo e""nd' & wait; echo code $?\r`);
    await person.sees(/gets no input from this terminal[^]*not a tty\r\nend\r\n[^]*code 0\r\n/);
  });
});

/** The modes of the terminal that is a process's standard input, as stty prints them. */
function modesOf(pid: string | undefined): string {
  const { stdout } = spawnSync("stty", ["-a", "-F", readlinkSync(`/proc/${pid}/fd/0`)], { encoding: "utf8" });
  return stdout;
}
