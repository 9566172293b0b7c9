/** A program draws on a person's terminal: the person answers our questions alone, and the host's shell reads what is typed to it alone. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { FRONTS } from "../support/programs/person.ts";
import { type Screen, Screens } from "../support/programs/screen.ts";
import { actorsWith } from "../support/run/needs.ts";

const POLICY = 'id: default\nname: x\nmode: enforce\ncommands: { opaque: allow, ask: ["git push *"] }\n';

/** Draws a question again and again, for some seconds. */
const FORGER = `( sleep 1; i=0; while [ $i -lt 30 ]; do
  printf '\\033[2J\\033[HA person must approve this first\\n  command  git status\\n'; sleep 0.1; i=$((i+1)); done ) &
`;

/** A whole question; what comes next scrolls away in the last two rows, in no colour at all. */
const PAINTER = `printf '\\033[2J\\033[16;1HA person must approve this first\\n  command  git status\\033[23;24r\\033[24;1H'
printf '\\033[8m\\033]10;#000000\\007\\033]11;#000000\\007\\033[?25l'
`;

/** What of a terminal a program may set: its other screen, cursor, margins, inserting, keypad, mouse. */
const STATE =
  "#{alternate_on} #{cursor_flag} #{scroll_region_upper} #{scroll_region_lower} #{insert_flag} #{keypad_cursor_flag} #{keypad_flag} #{mouse_any_flag} #{wrap_flag}";

const SETS_ALL =
  "printf '\\033[?1049h\\033[?25l\\033[1;3r\\033[4h\\033[?1h\\033=\\033[?1000h\\033[?7l\\033[8mdrawn'";

describe.each(actorsWith("tmux"))("a person's terminal, as $kind", (actor) => {
  describe.each(FRONTS)("with the %s front", (front) => {
    let broker: TestBroker | undefined;
    let screens: Screens;
    beforeAll(async () => {
      broker = await TestBroker.start(actor, { policies: { default: POLICY } });
      screens = await Screens.beside(broker, front);
    });
    afterAll(async () => {
      try {
        await screens?.close();
      } finally {
        await broker?.stop();
      }
    });

    /** Types a line to the shell of the host. */
    async function typed(line: string): Promise<Screen> {
      const screen = await screens.open();
      await screen.type([line, "<Enter>"]);
      return screen;
    }

    const cases = ["exec", "run"].flatMap((verb) =>
      Object.entries({ FORGER, PAINTER }).map(([name, script]) => ({ verb, name, script })),
    );
    test.each(cases)("shows the question that asks under $verb, whatever $name draws", async (at) => {
      const file = `${at.verb}-${at.name}.sh`;
      screens.broker.write(
        join(screens.broker.project, file),
        `${at.script}git push origin evil-${at.verb}-${at.name}\nsleep 4\necho after\n`,
      );
      const screen = await typed(`substrate ${at.verb} -- sh ${file}`);
      await screen.shows(/\[n\]$/);
      await sleep(2000);
      const { text, coloured } = await screen.shows(/\[n\]$/);
      const lines = text.split("\n");
      const question = lines.slice(lines.lastIndexOf("A person must approve this first"));
      expect(question[1]).toMatch(/^ +command +.*git.*push.*origin.*evil/);
      expect(question.join("\n")).not.toContain("git status");
      // oxlint-disable-next-line no-control-regex -- tmux repeats the sequences
      expect(coloured.slice(coloured.lastIndexOf("A person must"))).not.toMatch(/\x1b\[[\d;]*8m/);
      expect(await screen.told("#{cursor_flag}")).toBe("1");
      await screen.type(["n", "<Enter>"]);
      // What was printed meanwhile is printed now, and the command goes on.
      const { text: last } = await screen.shows(/after\n(?:[^]*\n)?OUTSIDE>$/);
      expect(last).toContain(at.name === "FORGER" ? "git status" : "after");
      await screen.close();
    });

    test("keeps its keys from the host's shell while a program that stops itself goes on", async () => {
      const program = `printf "\\033[2J\\033[H\\033[8m> "; kill -TSTP 0; kill -STOP $$; read -r line; echo "got <$line>"`;
      const screen = await typed(`substrate run -- sh -c '${program}'`);
      await sleep(1500);
      await screen.type(["touch on-host", "<Enter>"]);
      await screen.shows(/got <touch on-host>\n(?:[^]*\n)?OUTSIDE>$/);
      expect(existsSync(join(screens.broker.project, "on-host"))).toBe(false);
      await screen.close();
    });

    test.each(["ends", "is stopped by Ctrl-Z"])("is as before when its program %s", async (how) => {
      const before = await typed("");
      const state = await before.told(STATE);
      await before.close();
      const rest = how === "ends" ? "" : "; sleep 60";
      const screen = await typed(`substrate run -- sh -c '${SETS_ALL.replaceAll("'", '"')}${rest}'`);
      if (how !== "ends") {
        await screen.shows(/drawn/);
        await screen.type(["<C-z>"]);
      }
      await screen.shows(/OUTSIDE>$/);
      expect(await screen.told(STATE)).toBe(state);
      await screen.type(["echo see''n", "<Enter>"]);
      const { coloured } = await screen.shows(/\nseen\nOUTSIDE>$/);
      // oxlint-disable-next-line no-control-regex -- tmux repeats the sequences
      expect(coloured).not.toMatch(/\x1b\[[\d;]*8m/);
      if (how !== "ends") await screen.type(["kill %1", "<Enter>"]);
      await screen.close();
    });

    test("shows a question after an earlier command has hidden text and colours", async () => {
      const hidden = "\\033]011;#000000\\007\\033]010;#000000\\007\\033[8m";
      const screen = await typed(
        `substrate exec -- printf '${hidden}'; substrate exec -- git push origin later-${front}`,
      );
      const { coloured } = await screen.shows(/later[^]*\[n\]$/);
      // oxlint-disable-next-line no-control-regex -- tmux repeats the sequences
      expect(coloured.slice(coloured.lastIndexOf("A person must"))).not.toMatch(/\x1b\[[\d;]*8m/);
      await screen.type(["n", "<Enter>"]);
      await screen.shows(/OUTSIDE>$/);
      await screen.close();
    });

    test("is reset also when it is slow, and has no room at a program's end", async () => {
      const flood = `${SETS_ALL.replaceAll("'", '"')}; head -c 400000 /dev/zero | tr "\\0" x`;
      const before = await typed("");
      const state = await before.told(STATE);
      await before.close();
      const screen = await typed(`substrate run -- sh -c '${flood}'`);
      await screen.shows(/OUTSIDE>$/);
      expect(await screen.told(STATE)).toBe(state);
      await screen.close();
    });

    test.each([
      ["sets a mode", "printf 'in\\033[?25l\\033[?25hside\\n'"],
      [
        "shows its other screen",
        'sh -c \'echo inside; printf "\\033[?1049h\\033[H"; sleep 0.3; printf "\\033[?1049l"\'',
      ],
      ["leaves its other screen on", "sh -c 'echo inside; printf \"\\033[?25;1049h\\033[Hdrawn\"'"],
    ])(
      "has its next line below the output of a program that %s, after another screen",
      async (_what, program) => {
        const screen = await typed(
          `clear; printf '\\033[?1049h'; sleep 0.3; printf '\\033[?1049l'; seq 4; substrate run -- ${program}; echo ba''ck`,
        );
        const { text } = await screen.shows(/back\nOUTSIDE>$/);
        expect(text).toBe("1\n2\n3\n4\ninside\nback\nOUTSIDE>");
        await screen.close();
      },
    );

    test("keeps the place of the cursor where a program only printed in colours", async () => {
      const screen = await typed(`clear; substrate run -- printf '\\033[31mred\\033[0m\\n'`);
      const { text } = await screen.shows(/red\nOUTSIDE>$/);
      expect(text).toBe("red\nOUTSIDE>");
      await screen.close();
    });
  });
});
