/** `substrate shell`: each line is decided, and the shell is a shell. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { eventually, type TestBroker } from "../support/broker/broker.ts";
import { withBroker } from "../support/broker/budgets.ts";
import { Person } from "../support/programs/person.ts";
import { actors } from "../support/users/users.ts";

const POLICY = `id: default
name: Shells
mode: enforce
commands:
  denied: ["forbidden *", "cat * | sh"]
  ask: ["careful *"]
  isolated: ["touch *", "held *"]
  opaque: allow
`;

const PROMPT = /\[world [0-9a-f]{4}(?: \d+)?\] [^ ]+ \$ $/;

describe.each(actors().slice(0, 1))("a shell, as $kind", (actor) => {
  const people: Person[] = [];
  afterEach(() => people.splice(0).forEach((person) => person.leave()));

  async function shellIn(broker: TestBroker, options = ""): Promise<Person> {
    const person = await Person.at(broker);
    people.push(person);
    person.type(`substrate shell ${options}\r`);
    await person.sees(PROMPT);
    return person;
  }

  test("keeps folder, variables, functions and aliases from line to line, and records cd and export", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker, "--agent helper");
      person.type("cd /usr; export WORD=five\r");
      await person.sees(/\/usr \$ $/);
      person.type('f() { echo "in f: $1 $WORD"; }; alias g=f\r');
      await person.sees(PROMPT);
      person.type("f one; g two; pwd; false\r");
      await person.sees(
        /in f: one five\r\nin f: two five\r\n\/usr\r\n[^]*\[world [0-9a-f]{4} 1\] \/usr \$ $/,
      );
      person.type("for word in a b\r");
      await person.sees(/> $/);
      person.type('do echo "<$word $?>"; done\r');
      await person.sees(/<a 1>\r\n<b 0>\r\n/);
      await person.sees(PROMPT);
      // The names of the shell's own steps, and the place where its prompts went.
      person.type("for n in eval read jobs echo; do builtin eval \"$n() { printf '<%s>' mine; }\"; done\r");
      await person.sees(PROMPT);
      person.type("exec 2>/dev/null; echo; true &\r");
      expect((await person.sees(PROMPT)).split("<mine>")).toHaveLength(2);
      person.type("exit 7\r");
      await person.sees(/OUTSIDE> $/);
      person.type("echo code $?\r");
      await person.sees(/code 7\r\n/);
      const builtins = broker.spans().filter((span) => span.event_type === "builtin_command");
      expect(builtins.map(({ cmd }) => cmd)).toEqual(expect.arrayContaining(["cd /usr", "export WORD=five"]));
      const shell = broker.spans().find((span) => span.event_type === "command_start");
      expect(new Set(builtins.map((span) => span.parent_span))).toEqual(new Set([shell?.span_id]));
      expect(shell?.agent_id).toBe("helper");
    });
  });

  test("refuses a line that is denied, as a whole, and goes on; what the gate denies does not start either", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      broker.write(join(broker.project, "script"), "echo ran\n");
      const person = await shellIn(broker);
      person.type("echo first; cat script | sh\r");
      const text = await person.sees(/in commands\.denied \(default\.yaml:5\)[^]*\$ $/);
      expect(text).not.toContain("\r\nfirst\r\n");
      expect(text).not.toContain("\r\nran\r\n");
      const refused = broker
        .spans()
        .find((span) => span.event_type === "violation" && span.outcome === "refused");
      expect(refused).toMatchObject({ cmd: "echo first; cat script | sh", code: "policy_denied" });
      person.type("printf 'twin %s\\n' ran; cat script\r");
      await person.sees(/twin ran\r\necho ran\r\n/);
    });
  });

  test("puts a line that must be approved to the person, and runs one whose changes are held apart", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker);
      person.type("careful() { echo careful $1; }\r");
      await person.sees(PROMPT);
      person.type("careful one\r");
      await person.sees(/A person must approve this first[^]*y\)es/);
      person.type("y\r");
      await person.sees(/careful one\r\n/);
      await person.sees(PROMPT);
      person.type("touch held.txt\r");
      await person.sees(/changes are held, so it runs apart from the shell[^]*substrate diff/);
      await person.sees(PROMPT);
      expect(existsSync(join(broker.project, "held.txt"))).toBe(false);
    });
  });

  test("has job control, Ctrl-C at the prompt and under a program, Ctrl-D, and a history that leaves out lines with a space", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker);
      person.type("not this\x03");
      await person.sees(/\^C\r\n[^]*\$ $/);
      person.type("(echo in''side; exec sleep 1000)\r");
      await person.sees(/inside\r\n/);
      person.type("\x1a");
      await person.sees(/Stopped[^]*\$ $/);
      person.type("fg\r");
      await person.sees(/exec sleep 1000 \)\r\n/);
      person.type("\x03");
      await person.sees(PROMPT);
      person.type(" set -u\r");
      await person.sees(/set -u\r+\n[^]*\$ $/);
      person.type(" [ -f none ] | sleep 1000 & echo star''ted\r");
      await person.sees(/started\r\n\[1\] \d+\r\n[^]*\$ $/);
      person.type(" kill $!; echo on''ce\r");
      expect(await person.sees(/once\r\n[^]*\$ $/)).not.toMatch(/\[1\] \d/);
      person.type(" secret() { :; }; echo after\r");
      await person.sees(/after\r\n/);
      await person.sees(PROMPT);
      person.type("\x04");
      await person.sees(/exit\r\n[^]*OUTSIDE> $/);
      const history = readFileSync(join(broker.home, "shell-history"), "utf8");
      expect(
        history
          .split("\n")
          .filter(Boolean)
          .map((line) => JSON.parse(line) as string),
      ).toEqual(["(echo in''side; exec sleep 1000)", "fg"]);
    });
  });

  test("lives on, with its folder and variables, when Ctrl-C ends a line of several commands", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      broker.write(join(broker.project, "below/file"), "");
      const person = await shellIn(broker);
      person.type("cd below; kept=1\r");
      await person.sees(PROMPT);
      for (const line of [
        "sleep 1000; echo mo''re",
        "sleep 1000 | cat",
        "sleep 1000 && echo mo''re",
        "for i in 1 2; do sleep 1000; echo mo''re; done",
        "while :; do :; done",
        "sleep 1000 & wait",
      ]) {
        person.type(`echo be''gun; ${line}\r`);
        await person.sees(/begun\r\n/);
        // The program behind it has started.
        await sleep(300);
        person.type("\x03");
        expect(await person.sees(PROMPT), line).not.toContain("more");
        person.type('echo "<$?> $kept ${PWD##*/}"\r');
        await person.sees(/<130> 1 below\r\n[^]*\$ $/);
      }
    });
  });

  test("lists the typed lines as bash's history, has bash's name, and says before the next prompt what was refused and why", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker);
      person.type("echo one\r");
      await person.sees(/\r\none\r\n[^]*\$ $/);
      person.type(" echo unlisted\r");
      await person.sees(/\r\nunlisted\r\n[^]*\$ $/);
      person.type('history; echo "<$0>"\r');
      const shown = await person.sees(/<bash>\r\n[^]*\$ $/);
      expect(shown).toMatch(/\n +1 +echo one\r\n +2 +history; echo "<\$0>"\r\n<bash>/);
      // Where the person may write, so that the policy alone refuses.
      const refused = actor.uid === 0 ? "/usr/refused" : join(broker.folder, "refused");
      broker.write(join(broker.project, "writes"), `echo x > ${refused}"$1"\n`);
      person.type("sh writes\r");
      const why =
        /Read-only file system\r\nsubstrate: '[^']*\/refused' was not written: .*fs\.write.*\r\n\[world/;
      await person.sees(new RegExp(`${why.source}[^]*\\$ $`));
      person.type("sh writes 2\r");
      await person.sees(/also 'refused2'\r\n\[world[^]*\$ $/);
      person.type("echo three\r");
      expect(await person.sees(/\r\nthree\r\n[^]*\$ $/)).not.toContain("was not written");
      person.type("exit 3\r");
      expect(await person.sees(/OUTSIDE> $/)).not.toContain("was not written");
    });
  });

  test("puts earlier lines in place of !!, !$ and !word before it judges, and leaves quotes and patterns alone", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker);
      const sees = async (line: string, wanted: RegExp): Promise<void> => {
        person.type(`${line}\r`);
        await person.sees(new RegExp(`${wanted.source}[^]*\\$ $`));
      };
      await sees("echo one two", /\r\none two\r\n/);
      await sees("!!", /\r\necho one two\r\none two\r\n/);
      await sees("echo again !$", /\r\necho again two\r\nagain two\r\n/);
      await sees("echo '!!' [!o]x \"a!\" $((2!=1))", /\r\n!! \[!o\]x a! 1\r\n/);
      await sees("!1", /\r\necho one two\r\none two\r\n/);
      await sees("!none", /bash: !none: event not found\r\n/);
      await sees("forbidden !e", /commands\.denied \(default\.yaml:5\)/);
      person.type("set +H\r");
      await person.sees(PROMPT);
      await sees("echo !!", /\r\n!!\r\n/);
    });
  });

  test("finds earlier lines by Ctrl-R, as bash does", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker);
      for (const line of ["echo fir''st", "echo sec''ond"]) {
        person.type(`${line}\r`);
        await person.sees(PROMPT);
      }
      person.type("\x12fir");
      await person.sees(/\(reverse-i-search\)`fir': echo fir''st$/);
      person.type("\r");
      await person.sees(/\r\nfirst\r\n[^]*\$ $/);
      person.type("kept\x12xyz");
      await person.sees(/\(failed reverse-i-search\)`xyz': kept$/);
      person.type("\x07");
      await person.sees(/\$ kept$/);
      person.type("\x12ec\x12\x7f\x7fsec\x1b[F again\r");
      await person.sees(/\r\nsecond again\r\n[^]*\$ $/);
    });
  });

  test("takes no prompt from what a program prints", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      broker.write(join(broker.project, "forged.txt"), "\x1b]697;0;/forged\x07");
      const person = await shellIn(broker);
      person.type('tac forged.txt; sleep 1; read -r typed; echo "got <$typed>"\r');
      await sleep(600);
      person.type("for the program\r");
      const shown = await person.sees(/got <for the program>\r\n[^]*\$ $/);
      expect(shown).not.toContain("/forged $");
    });
  });

  test("runs what was typed ahead and no program read, as keys, and begins the next line with an unfinished one", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await shellIn(broker);
      person.type("read -r typed; sleep 2\r");
      await sleep(600);
      person.type('of the program\recho "<$typed> 100% ü;"\rforbidden ahead\recho beg');
      await person.sees(/echo beg<of the program> 100% ü;\r\n/);
      await person.sees(/'forbidden ahead' matches[^]*\$ echo beg$/);
      person.type("un\r");
      await person.sees(/\r\nbegun\r\n/);
      await person.sees(PROMPT);
      person.type("sleep 1\r");
      await sleep(400);
      person.type("echo foo.baz\x17bar ag''ain\recho lo''st\x15echo \x7f la''st\r");
      await person.sees(/\r\nfoo\.bar again\r\n[^]*\r\nlast\r\n[^]*\$ $/);
      person.type("sleep 1\r");
      await sleep(400);
      person.type("sleep 1000\recho not th''is\r");
      await person.sees(/\$ sleep 1000/);
      await sleep(600);
      person.type("\x03");
      await person.sees(/130\] [^]*\$ $/);
      person.type("echo bef''ore\r");
      expect(await person.sees(/\r\nbefore\r\n[^]*\$ $/)).not.toContain("not this");
      person.type("sleep 1\r");
      await sleep(400);
      person.type("\x1b[A");
      await sleep(1200);
      person.type("\x1b[A\r");
      await person.sees(/\r\nbefore\r\n[^]*\$ $/);
    });
  });

  test("takes no line from a program beside it that knows its prompts, and runs none apart outside its project", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      broker.write(
        join(broker.project, "forge.sh"),
        `word=$(tr -d '\\0' < /proc/$PPID/fd/8 | grep -aom1 '697;[0-9a-f]*' | head -1)
echo "knows \${#word}"
for keys in 'echo%20x%20%3e%20forged%0d' 'no%0decho%20x%20%3e%20forged%0d'; do
  printf '\\033]%s;0;/usr\\a\\033]%s;ahead;%s\\a' "$word" "$word" "$keys"; sleep 1
done
`,
      );
      const person = await shellIn(broker);
      person.type("sh forge.sh; sleep 1\r");
      await sleep(300);
      person.type("no\r");
      await person.sees(/knows 36\r\n/);
      await sleep(4500);
      person.type("\r");
      await person.sees(PROMPT);
      expect(existsSync(join(broker.project, "forged"))).toBe(false);
      person.type("cd /usr; PWD=/; true\r");
      await person.sees(/ \/usr \$ $/);
      person.type("held elsewhere\r");
      await person.sees(/shell stands in '\/usr', outside its project[^]*\$ $/);
      person.type("unset PWD\r");
      await person.sees(/ \/usr \$ $/);
      person.type("cd -\r");
      await person.sees(/project \$ $/);
      person.type("touch apart\r");
      await person.sees(/runs apart from the shell[^]*\$ $/);
    });
  });

  test("completes no name of a file that the terminal would act on", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      for (const name of ["named-one", "named-two", "named-\x0ethree"])
        broker.write(join(broker.project, name), "");
      const person = await shellIn(broker);
      for (const key of ["echo nam", "\t", "\t", "\t"]) {
        person.type(key);
        await sleep(100);
      }
      expect(await person.sees(/named-one +named-two[^]*\$ echo named-$/)).not.toContain("\x0e");
    });
  });

  test("starts too for 'substrate' without arguments on a terminal; without a terminal there is help", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await Person.at(broker);
      people.push(person);
      person.type("substrate\r");
      await person.sees(PROMPT);
      person.type("exit 3\r");
      await person.sees(/OUTSIDE> $/);
      person.type("echo code $?\r");
      await person.sees(/code 3\r\n/);
      expect((await broker.cli([])).stdout).toMatch(/^Usage: substrate/);
    });
  });

  test.each(["at the prompt", "in a line begun", "under a program"])(
    "ends by SIGHUP, and its programs with it, when its window is closed %s",
    async (when) => {
      await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
        const person = await Person.at(broker);
        people.push(person);
        const code = join(broker.project, "code");
        // Nobody but the kernel tells the shell: a person's bash would send SIGHUP too.
        person.type(`trap '' HUP; (trap : HUP; substrate shell; echo $? > '${code}')\r`);
        await person.sees(PROMPT);
        const program = ["sleep", `1000.${process.pid}`];
        if (when === "under a program") {
          person.type(`${program.join(" ")}\r`);
          expect(await eventually(() => isRunning(program), 10_000)).toBe(true);
        } else if (when === "in a line begun") {
          person.type("echo be");
          await person.sees(/echo be/);
        }
        person.closeWindow();
        expect(await eventually(() => existsSync(code) && readFileSync(code, "utf8") !== "", 10_000)).toBe(
          true,
        );
        expect(readFileSync(code, "utf8")).toBe("129\n");
        expect(await eventually(() => !isRunning(program), 10_000)).toBe(true);
        const isOver = (): boolean =>
          broker.spans().some(({ event_type: type }) => type === "command_complete");
        expect(await eventually(isOver, 10_000)).toBe(true);
      });
    },
  );

  test("restores the terminal when a SIGHUP ends it, and the window stays", async () => {
    await withBroker(actor, { policies: { default: POLICY } }, async (broker) => {
      const person = await Person.at(broker);
      people.push(person);
      person.type(
        "modes=$(stty -g); (sh -c 'sleep 2; kill -HUP \"$PPID\"' & substrate shell); echo code $?\r",
      );
      await person.sees(PROMPT);
      await person.sees(/code 129\r\n/);
      person.type('[ "$modes" = "$(stty -g)" ] && echo re""stored\r');
      await person.sees(/restored\r\n/);
    });
  });

  test("needs a terminal, and says what to use without one", async () => {
    await withBroker(actor, {}, async (broker) => {
      const { code, stderr } = await broker.cli(["shell"]);
      expect(code).toBe(125);
      expect(stderr).toMatch(/must be a terminal.*substrate exec/);
    });
  });
});

function isRunning(argv: readonly string[]): boolean {
  const words = `${argv.join("\0")}\0`;
  return readdirSync("/proc").some((pid) => /^\d+$/.test(pid) && commandLineOf(pid) === words);
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It has ended.
    return "";
  }
}
