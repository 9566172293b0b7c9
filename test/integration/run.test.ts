/** `substrate run` and `attach`, at a terminal and without one. */
import { afterEach, describe, expect, test } from "vitest";
import type { TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { FRONTS, Person } from "../support/programs/person.ts";
import { actors } from "../support/users/users.ts";

describe.each(
  actors()
    .slice(0, 1)
    .flatMap((actor) => FRONTS.map((front) => ({ actor, kind: actor.kind, front }))),
)("whole programs with the $front front, as $kind", ({ actor, front }) => {
  const people: Person[] = [];
  afterEach(() => people.splice(0).forEach((person) => person.leave()));

  async function personAt(broker: TestBroker): Promise<Person> {
    const person = await Person.at(broker, {}, front);
    people.push(person);
    return person;
  }

  test("have this terminal: its size, its changes of size, its keys; and give it back as it was", async () => {
    await withBroker(actor, {}, async (broker) => {
      const person = await personAt(broker);
      person.type("substrate run -- bash --norc --noprofile -i\r");
      await person.sees(/bash-[0-9.]+[#$] $/);
      person.type("PS1='INSIDE> '; tty; stty size; echo $TERM\r");
      await person.sees(/\/dev\/pts\/0\r\n30 100\r\nxterm-256color\r\n/);
      person.resize(70, 20);
      await person.sees(/INSIDE> $/);
      person.type("until [ \"$(stty size)\" = '20 70' ]; do sleep 0.05; done; echo resized\r");
      await person.sees(/resized\r\n/);
      person.type("sh -c 'echo in''side; exec sleep 1000'\r");
      await person.sees(/inside\r\n/);
      person.type("\x03");
      await person.sees(/\^C\r\n[^]*INSIDE> $/);
      person.type("exit 7\r");
      await person.sees(/OUTSIDE> $/);
      person.type('echo "code $? $(stty -a | tr " ;" "\\n\\n" | grep -cx -e icanon -e echo)"\r');
      await person.sees(/code 7 2\r\n/);
    });
  });

  test("that failed, and that did not, leave the broker's sentences in whole lines", async () => {
    const policy = "id: default\nname: x\nmode: enforce\nnet: { allowed: [] }\n";
    await withBroker(actor, { policies: { default: policy } }, async (broker) => {
      const person = await personAt(broker);
      for (const end of [0, 3]) {
        person.type(`substrate run -- sh -c 'getent hosts a.example; getent hosts b.example; exit ${end}'\r`);
        const shown = await person.sees(/b\.example' was not looked up[^]*OUTSIDE> $/);
        const lines = shown.split("\n").filter((line) => line.includes("substrate: The name"));
        expect(lines.map((line) => /'(.)\.example'.*\r$/.exec(line)?.[1])).toEqual(["a", "b"]);
      }
    });
  });

  test("give the terminal back when the broker dies under them, and when they are ended from outside", async () => {
    await withBroker(actor, {}, async (broker, again) => {
      const person = await personAt(broker);
      person.type("substrate run -- sh -c 'stty raw -echo; echo re\"\"ady; sleep 1000'\r");
      await person.sees(/ready/);
      await broker.kill("SIGKILL");
      await person.sees(/substrate: The broker ended[^]*OUTSIDE> $/);
      person.type('echo "modes $(stty -a | tr " ;" "\\n\\n" | grep -cx -e icanon -e echo)"\r');
      await person.sees(/modes 2\r\n/);
      await again();
      person.type(
        "substrate run -- sh -c 'echo re''ady $$; sleep 1000' & CHILD=$!; sleep 2; kill $CHILD; wait $CHILD; echo \"ended $?\"\r",
      );
      await person.sees(/ended (143|148|149|150)\r\n/);
    });
  });

  test("are stopped by Ctrl-Z with this job, and continued by fg; without a shell to continue them they go on", async () => {
    await withBroker(actor, {}, async (broker) => {
      const person = await personAt(broker);
      const program = `sh -c 'trap "echo conti""nued" CONT; stty -echo; echo re""ady; until read -r line; do :; done; echo "got <$line>"'`;
      person.type(`substrate run -- ${program}\r`);
      await person.sees(/ready\r\n/);
      for (const word of ["one", "two"]) {
        person.type("\x1a");
        await person.sees(/Stopped[^]*OUTSIDE> $/);
        person.type(`echo "${word} $(stty -a | tr " ;" "\\n\\n" | grep -cx -e icanon -e echo -e opost)"\r`);
        await person.sees(new RegExp(`${word} 3\r\n[^]*OUTSIDE> $`));
        person.type("fg\r");
        await person.sees(/fg\r\n[^]*continued\r\n/);
      }
      person.type("words\r");
      await person.sees(/got <words>\r\n[^]*OUTSIDE> $/);
      person.type(`set +m; substrate run -- ${program}\r`);
      await person.sees(/ready\r\n/);
      person.type("\x1a");
      await person.sees(/continued\r\n/);
      person.type("more\r");
      await person.sees(/got <more>\r\n/);
    });
  });

  test("run with pipes where there is no terminal, and their exit code is run's", async () => {
    await withBroker(actor, {}, async (broker) => {
      const piped = await broker.cli(["run", "--", "sh", "-c", "tty; tr a-z A-Z; exit 4"], {
        stdin: "typed",
      });
      expect(piped).toMatchObject({ code: 4, stdout: "not a tty\nTYPED" });
      const missing = await broker.cli(["run", "--", "no-such-program"]);
      expect(missing.code).toBe(127);
      expect(missing.stderr).toContain("substrate: no-such-program: command not found\n");
    });
  });

  test("that need a person are asked about first, and a program that they start while they run", async () => {
    const policies = {
      default: "id: default\nname: x\nmode: enforce\ncommands: { opaque: allow, ask: ['touch *'] }\n",
    };
    await withBroker(actor, { policies }, async (broker) => {
      const person = await personAt(broker);
      person.type("substrate run -- touch denied\r");
      await person.sees(/command +.*touch.*denied[^]*\[n\] /);
      person.type("n\r");
      await person.sees(/denied; nothing ran\r\n[^]*OUTSIDE> $/);
      person.type("substrate run -- bash --norc --noprofile -i\r");
      await person.sees(/bash-[0-9.]+[#$] $/);
      person.type("PS1='INSIDE> '\r");
      await person.sees(/INSIDE> $/);
      for (const name of ["one", "two"]) {
        person.type(`touch ${name} && echo made ${name}\r`);
        await person.sees(/A running command starts this program[^]*\[n\] /);
        person.type("y\r");
        await person.sees(new RegExp(`made ${name}\r\n[^]*INSIDE> $`));
      }
      person.type("stty -a | tr ' ;' '\\n\\n' | grep -cx -e icanon -e -icanon; exit\r");
      await person.sees(/OUTSIDE> $/);
      person.type('echo "modes $(stty -a | tr " ;" "\\n\\n" | grep -cx -e icanon -e echo -e opost)"\r');
      await person.sees(/modes 3\r\n/);
    });
  });

  test("that are detached print their span; attach shows their last output, types for them and ends with them", async () => {
    await withBroker(actor, {}, async (broker) => {
      const person = await personAt(broker);
      person.type(
        "SPAN=$(substrate exec --detach -- 'echo be''fore; read line; echo \"got $line\"; exit 5'); echo \"is ${SPAN%%_*}\"\r",
      );
      await person.sees(/is spn\r\n/);
      person.type("substrate attach $SPAN\r");
      await person.sees(/before\r\n/);
      person.type("typed\r");
      await person.sees(/got typed\r\n[^]*OUTSIDE> $/);
      person.type("SPAN=$(substrate run --detach -- bash --norc --noprofile -i); substrate attach $SPAN\r");
      await person.sees(/bash-[0-9.]+[#$] $/);
      person.type("echo one''two\r");
      await person.sees(/onetwo\r\n[^]*bash-[0-9.]+[#$] $/);
      person.type("\r~.");
      await person.sees(/OUTSIDE> $/);
      person.type("substrate attach $SPAN\r");
      await person.sees(/onetwo\r\n[^]*bash-[0-9.]+[#$] $/);
      person.type("exit 6\r");
      await person.sees(/exit\r\n[^]*OUTSIDE> $/);
      for (const start of ["exec", "run"]) {
        person.type(
          `echo "SPAN=$(substrate ${start} --detach -- sh -c 'echo go''es; read line; echo on $line')"\r`,
        );
        const span = /SPAN=(spn_\S+)\r\n/.exec(await person.sees(/SPAN=spn_\S+\r\n/))?.[1] ?? "";
        const gone = await personAt(broker);
        gone.type(`substrate attach ${span}\r`);
        await gone.sees(/goes\r\n/);
        gone.closeWindow();
        person.type(`substrate attach ${span}\r`);
        await person.sees(/goes\r\n/);
        person.type("still\r");
        await person.sees(/on still\r\n[^]*OUTSIDE> $/);
      }
      const unknown = await broker.cli(["attach", "spn_01a20fa9-c84d-7f39-8a07-a5213ad578a2"]);
      expect(unknown).toMatchObject({ code: 125 });
      expect(unknown.stderr).toMatch(/No running or just ended command with a stream has the span/);
    });
  });
});
