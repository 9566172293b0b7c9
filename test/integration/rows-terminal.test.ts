/** A command whose blanks are as wide as the terminal: no row of what a person reads is written by it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Person } from "../support/broker/approvals.ts";
import { TestBroker } from "../support/broker/broker.ts";
import { type Screen, Screens } from "../support/programs/screen.ts";
import { actorsWith } from "../support/run/needs.ts";

const POLICY = "id: default\nname: Asks\nmode: enforce\napproval: { require: true }\n";

const COLUMNS = 80;
const REAL = "ls -l; touch pwned #";

/** The command as the screen would show it: the last screen reads as a question about `ls -l`. */
function forging(label: string, fill: string): string {
  const row = (text: string): string => text.padEnd(COLUMNS);
  const first = `${label}${REAL}`;
  const filled = (first + fill.repeat(COLUMNS * 25)).slice(0, COLUMNS * 25);
  return `${filled}${row("  command  ls -l")}${row("  agent    test in /project")}`
    .slice(label.length)
    .trimEnd();
}

describe.each(actorsWith("tmux"))("on a terminal of 80 columns, as $kind", (actor) => {
  let broker: TestBroker;
  let screens: Screens;
  let screen: Screen;
  const ids: string[] = [];
  const commands = [" ", "x "].map((fill) => forging("  command  ", fill));
  beforeAll(async () => {
    broker = await TestBroker.start(actor, { policies: { default: POLICY } });
    screens = await Screens.beside(broker);
    screen = await screens.open();
    await screen.resize(COLUMNS, 200);
    const person = new Person(broker);
    for (const cmd of commands) ids.push((await person.told({ cmd, agent_id: "test" })).approval_id ?? "");
  }, 60_000);
  afterAll(async () => {
    await screens.close();
    await broker.stop();
  });

  /** The rows that a command prints. */
  async function rowsOf(words: string, end: RegExp): Promise<readonly string[]> {
    await screen.type(["clear", "<Enter>"]);
    await screen.shows(/^OUTSIDE>$/);
    await screen.type([words, "<Enter>"]);
    const { text } = await screen.shows(end);
    return text.split("\n");
  }

  test("approvals shows one row for each command, and its blanks as their number", async () => {
    const rows = await rowsOf("substrate approvals", /deny ID\nOUTSIDE>$/);
    const shown = rows.filter((row) => /^ {0,11}command/.test(row));
    expect(shown).toHaveLength(2);
    expect(shown).toContainEqual(expect.stringContaining(`  command  ${REAL}x x x`));
    expect(shown).toContainEqual(
      expect.stringMatching(/^ {2}command {2}ls -l; touch pwned #\[19\d\d blanks\]command {2}ls -l/),
    );
    expect(rows.filter((row) => /^ {0,11}agent /.test(row))).toHaveLength(2);
    for (const id of ids) expect(rows.some((row) => row.startsWith(id))).toBe(true);
  });

  test("approve shows the same, and nothing is approved without a yes", async () => {
    for (const id of ids) {
      const rows = await rowsOf(`substrate approve ${id} --once`, /\(once\)\? y\)es n\)o \[n\]$/);
      expect(rows.filter((row) => /^ {0,11}command/.test(row))).toEqual([
        expect.stringContaining(`  command  ${REAL}`),
      ]);
      await screen.type(["n", "<Enter>"]);
      await screen.shows(/it still waits\nOUTSIDE>$/);
    }
  });

  test("trace list and status begin every span and question with words of their own", async () => {
    const listed = await rowsOf("substrate trace list", /OUTSIDE>$/);
    const spans = listed.filter((row) => row.includes("spn_"));
    expect(spans.length).toBeGreaterThanOrEqual(2);
    expect(listed.length).toBeLessThanOrEqual(3 * spans.length + 2);
    for (const row of listed.slice(1, -1)) expect(row).toMatch(/^(?:\d{4}-\d\d-\d\dT| {12})/);
    const status = await rowsOf("substrate status", /held {7}no changes[^\n]*\n(?: {12}.*\n)?OUTSIDE>$/);
    expect(status.filter((row) => /^ {0,10}(?:command|agent )/.test(row))).toEqual([]);
  });

  test("trace shows the command with its indentation, and a here-document as its lines", async () => {
    const cmd = "cat <<E\nif x:\n                    deep\nname          kind\nE";
    const { span_id: span } = await new Person(broker).told({ cmd, agent_id: "test" });
    const rows = await rowsOf(`substrate trace ${span}`, /\n {2}child[^]*\nOUTSIDE>$/);
    const from = rows.findIndex((row) => row.includes("cat <<E"));
    expect(rows.slice(from, from + 5)).toEqual([
      "  command   cat <<E",
      "            if x:",
      "                                deep",
      "            name          kind",
      "            E",
    ]);
  });

  test("a pipe gets every blank", async () => {
    const { stdout } = await broker.cli(["approvals"]);
    for (const cmd of commands) expect(stdout).toContain(`  command  ${cmd}`);
  });
});
