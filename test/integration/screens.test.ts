/** Programs with screens, in tmux: in a world's terminal they show and do what they show and do outside. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestBroker } from "../support/broker/broker.ts";
import { begun } from "../support/broker/budgets.ts";
import { type Keys, type Look, type Screen, Screens, type Way } from "../support/programs/screen.ts";
import { actorsWith, needs, type Optional } from "../support/run/needs.ts";

/** What a person does, and what the screen then has: outside this is waited for, in a world for the same screen as outside. */
type Step = {
  readonly keys?: Keys;
  readonly paste?: string;
  /** Columns and rows. */
  readonly resize?: readonly [number, number];
  readonly shows: RegExp;
  /** The colours that the screen has then, as tmux repeats them. */
  readonly coloured?: RegExp;
  /** Where the cursor is then: column, row. */
  readonly cursor?: string;
};

type Row = {
  readonly title: string;
  readonly needs?: Optional;
  /** A command of a shell; without one the keys are typed to an interactive shell. */
  readonly command?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  /** What of a screen must be as outside; else all of it, with colours where a program has the whole screen. */
  readonly counts?: (look: Look) => string;
  /** Keys that end the program. */
  readonly ends?: Keys;
  /** Files of the project, afterwards. */
  readonly leaves?: Readonly<Record<string, string>>;
};

const LINES = Array.from(
  { length: 300 },
  (_, at) => `line ${at + 1}${at % 100 === 98 ? " needle" : ""}\n`,
).join("");

/** Says that it runs: the typed line is on the screen before its program has started. */
const SLEEPER = "sh -c 'echo in\"\"side; exec sleep 99'";

const ROWS: readonly Row[] = [
  {
    title: "vim edits and saves, and follows a new size",
    needs: "vim",
    command: "vim --clean -ni NONE notes.txt",
    files: { "notes.txt": "first\nsecond 日本語 x\nthird\n" },
    steps: [
      { shows: /^first\nsecond 日本語 x\nthird\n~\n[^]*"notes\.txt"/ },
      { keys: ["Go", "added ü\tend", "<Escape>"], shows: /third\nadded ü end\n~/ },
      { keys: ["ggjA!", "<Escape>", "0fxrY"], shows: /日本語 Y!\n/, cursor: "14,1" },
      { resize: [90, 30], shows: /\n~\n[^\n]*2,\d+(?:-\d+)? +All$/ },
      { keys: [":w", "<Enter>"], shows: /"notes\.txt" 4L, \d+B written/ },
      { keys: ["ggdG"], shows: /^\n~/ },
    ],
    ends: [":q!", "<Enter>"],
    leaves: { "notes.txt": "first\nsecond 日本語 Y!\nthird\nadded ü\tend\n" },
  },
  {
    title: "fzf narrows what is typed, and picks",
    needs: "fzf",
    command: "fzf < fruits.txt > picked.txt",
    files: { "fruits.txt": "apple\nbanana\ncherry\nmango\npineapple\n" },
    steps: [
      { shows: /5\/5/ },
      { keys: ["app"], shows: /2\/5/ },
      { keys: ["<BSpace>", "<BSpace>", "<BSpace>", "an"], shows: /2\/5[^]*> an/ },
      { keys: ["<Up>"], shows: /> (?:banana|mango)/ },
    ],
    ends: ["<Enter>"],
    leaves: { "picked.txt": "banana\n" },
  },
  {
    title: "less turns pages, searches, goes to the end and follows a new size",
    needs: "less",
    command: "less lines.txt",
    files: { "lines.txt": LINES },
    steps: [
      { shows: /^line 1\n[^]*\nlines\.txt$/ },
      { keys: [" "], shows: /^line 24\n[^]*\n:$/ },
      { keys: ["/needle", "<Enter>"], shows: /^line 99 needle\n/ },
      { keys: ["n"], shows: /^line 199 needle\n/ },
      { resize: [60, 12], shows: /^line 199 needle\n(?:line \d+\n){10}:$/ },
      { keys: ["G"], shows: /line 300\n\(END\)$/ },
    ],
    ends: ["q"],
  },
  {
    title: "htop fills its screen, also one of another size",
    needs: "htop",
    command: "htop",
    steps: [
      { shows: /F1Help.*F10Quit$/ },
      { resize: [120, 40], shows: /^(?:[^\n]*\n){39}F1Help.*F10Quit$/ },
      { resize: [80, 15], shows: /^(?:[^\n]*\n){14}F1Help.*F10Quit$/ },
    ],
    // What runs in a world differs.
    counts: ({ text }) => {
      const lines = text.split("\n");
      return [lines.length, lines.find((line) => line.includes("PRI")), lines.at(-1)].join("\n");
    },
    ends: ["q"],
  },
  {
    title: "a Python REPL edits lines, has a history and takes Ctrl-C and Ctrl-D",
    needs: "python3",
    command: "python3 -q",
    steps: [
      { shows: /^>>>$/ },
      { keys: ["print('日本', 4 + 3)", "<Left>", "<BSpace>", "5", "<Enter>"], shows: /\n日本 9\n>>>$/ },
      { keys: ["print(4 + 2)", "<Left>", "0", "<Enter>"], shows: /\n24\n>>>$/ },
      { keys: ["<Up>"], shows: />>> print\(4 \+ 20\)$/ },
      { keys: ["<C-c>"], shows: /\nKeyboardInterrupt\n>>>$/ },
      { keys: ["import time; time.sleep(99)", "<Enter>"], shows: /sleep\(99\)\n$/ },
      { keys: ["<C-c>"], shows: /KeyboardInterrupt\n>>>$/ },
    ],
    ends: ["<C-d>"],
  },
  {
    title: "stty -a says the same",
    command: "stty -a; read -r _",
    steps: [{ shows: /rows 24; columns 100;[^]*icanon[^]*\n$/ }],
    ends: ["<Enter>"],
  },
  {
    title: "24-bit colours arrive as they are",
    command: "printf '\\033[38;2;12;200;77mtext\\033[0m \\033[48;2;1;22;133mground\\033[0m\\n'; read -r _",
    steps: [
      {
        shows: /^text ground\n$/,
        // oxlint-disable-next-line no-control-regex -- tmux repeats the sequences
        coloured: /^\x1b\[38;2;12;200;77mtext\x1b\[0?m?(?:\x1b\[39m)? ?.*\x1b\[48;2;1;22;133mground/,
      },
    ],
    ends: ["<Enter>"],
  },
  {
    title: "wide and combining characters take the columns that they take",
    command: "printf '日本|e\\314\\201|😀|\\n日本e\\314\\201'; read -r word; echo \"<$word>\"; read -r _",
    steps: [
      { shows: /^日本\|e\u0301\|😀\|\n日本e\u0301$/, cursor: "5,1" },
      { keys: ["語é", "x", "<BSpace>", "y", "<Enter>"], shows: /語éy\n<語éy>\n$/ },
    ],
    ends: ["<Enter>"],
  },
  {
    title: "a paste comes in brackets for a program that asks for them",
    command:
      "M=$(stty -g); printf '\\033[?2004h'; stty raw -echo; echo ready; head -c 23 | cat -v; stty $M; printf '\\033[?2004l\\n'; read -r _",
    steps: [
      { shows: /^ready/ },
      { paste: "one\n日本\n", shows: /\^\[\[200~one\^MM-fM-\^WM-%M-fM-\^\\M-,\^M\^\[\[201~/ },
    ],
    ends: ["<Enter>"],
  },
  {
    title: "a paste of several lines into a shell waits for Enter",
    steps: [
      { paste: "echo one\necho two", shows: /echo two$/ },
      { keys: ["<Enter>"], shows: /\none\ntwo\n\$$/ },
      { paste: "echo three\n", shows: /echo three\n$/ },
      { keys: ["<C-c>"], shows: /\^C\n\$$/ },
    ],
  },
  {
    title: "Ctrl-C, Ctrl-\\, Ctrl-Z and fg mean the program of the foreground",
    steps: [
      { keys: [SLEEPER, "<Enter>"], shows: /\ninside\n$/ },
      { keys: ["<C-z>"], shows: /Stopped .*\n\$$/ },
      { keys: ["fg", "<Enter>"], shows: /fg\n.*sleep 99'\n$/ },
      { keys: ["<C-c>"], shows: /\^C\n\$$/ },
      { keys: ["echo $?", "<Enter>"], shows: /\n130\n\$$/ },
      { keys: [SLEEPER, "<Enter>"], shows: /130\n[^]*\ninside\n$/ },
      { keys: ["<C-\\>"], shows: /\^\\Quit.*\n\$$/ },
      { keys: ["echo not run"], shows: /echo not run$/ },
      { keys: ["<C-c>"], shows: /echo not run\^C\n\$$/ },
    ],
    // A world may make no dumps.
    counts: ({ text, cursor }) => `${text.replace(" (core dumped)", "")}\ncursor at ${cursor}`,
  },
  {
    title: "Ctrl-Z and fg take vim from its screen and back to it",
    needs: "vim",
    files: { "notes.txt": "first\n" },
    steps: [
      { keys: ["vim --clean -ni NONE notes.txt", "<Enter>"], shows: /^first\n~/ },
      { keys: ["onew line", "<Escape>"], shows: /^first\nnew line\n~/ },
      { keys: ["<C-z>"], shows: /Stopped .*\n\$$/ },
      { keys: ["fg", "<Enter>"], shows: /^first\nnew line\n~/ },
      { keys: [":wq", "<Enter>"], shows: /\n\$$/ },
    ],
    leaves: { "notes.txt": "first\nnew line\n" },
  },
  {
    title: "a shell that waits for a line learns a new size",
    steps: [
      { resize: [90, 20], shows: /^\$$/ },
      { keys: ['stty size; echo "$COLUMNS $LINES"', "<Enter>"], shows: /\n20 90\n90 20\n\$$/ },
    ],
  },
  {
    title: "lines with wide and combining characters can be edited in a shell",
    steps: [
      { keys: ["echo 日本|e\u0301"], shows: /echo 日本\|e\u0301$/ },
      { keys: ["<C-u>", "echo '日本語'", "<Left>", "<Left>", "<BSpace>", "x"], shows: /日x語'$/ },
      { keys: ["<Enter>"], shows: /\n日x語\n\$$/ },
    ],
  },
];

const WAYS: readonly Exclude<Way, "directly">[] = [
  "substrate shell",
  "substrate run",
  "a raw WebSocket client",
];

const TITLED = ROWS.map((row) => [row.title, row] as const);

describe.each(actorsWith("tmux"))("screens, as $kind", (actor) => {
  let broker: TestBroker | undefined;
  let screens: Screens;
  /** What the rows showed outside. */
  const outside = new Map<Row, Promise<readonly string[]>>();

  beforeAll(async () => {
    broker = await TestBroker.start(actor);
    screens = await Screens.beside(broker);
  });
  afterAll(async () => {
    try {
      await screens?.close();
    } finally {
      await broker?.stop();
    }
  });

  describe.each(WAYS)("through %s", (way) => {
    test.each(TITLED)("%s", { timeout: 120_000 }, async (_title, row) => {
      if (row.needs !== undefined) needs(row.needs);
      if (!outside.has(row)) outside.set(row, played(screens, row, "directly"));
      const expected = await outside.get(row);
      const before = begun(screens.broker);
      await played(screens, row, way, expected);
      expect(begun(screens.broker)).toBeGreaterThan(before);
    });
  });

  test("the prompt of substrate shell begins a line, and shows a paste without its control characters", async () => {
    const screen = await screens.open();
    await screen.start("substrate shell", undefined);
    await screen.type(["printf 'no line end'", "<Enter>"]);
    await screen.shows(/\nno line end\n\$$/);
    await screen.type(["printf '\\n\\n'; clear", "<Enter>"]);
    await screen.shows(/^\$$/);
    await screen.type(["echo <>", "<Left>"]);
    await screen.paste("one\ttwo\x1b[2Jthree\x03\n\n");
    await screen.shows(/^\$ echo <one +two\[2Jthree\n\n>$/);
    await screen.type(["<C-u>", "<BSpace>", "<BSpace>", "<C-k>", "echo done", "<Enter>"]);
    await screen.shows(/\ndone\n\$$/);
    await screen.end("substrate shell", undefined);
    await screen.close();
  });
});

/** Plays a row; returns what counts of the screen after each step. `expected`: what must be seen after each. */
async function played(
  screens: Screens,
  row: Row,
  way: Way,
  expected?: readonly string[],
): Promise<readonly string[]> {
  const { broker } = screens;
  for (const name of Object.keys(row.leaves ?? {})) rmSync(join(broker.project, name), { force: true });
  for (const [name, text] of Object.entries(row.files ?? {})) broker.write(join(broker.project, name), text);
  const screen = await screens.open();
  try {
    await screen.start(way, row.command);
    const seen: string[] = [];
    for (const step of row.steps) seen.push(await after(screen, row, step, expected?.[seen.length]));
    if (row.ends !== undefined) await screen.type(row.ends);
    await screen.end(way, row.command);
    const left = Object.keys(row.leaves ?? {}).map((name) => [
      name,
      readFileSync(join(broker.project, name), "utf8"),
    ]);
    expect(Object.fromEntries(left)).toEqual(row.leaves ?? {});
    return seen;
  } finally {
    await screen.close();
  }
}

async function after(screen: Screen, row: Row, step: Step, expected: string | undefined): Promise<string> {
  if (step.keys !== undefined) await screen.type(step.keys);
  if (step.paste !== undefined) await screen.paste(step.paste);
  if (step.resize !== undefined) await screen.resize(...step.resize);
  const counts = row.counts ?? ((look) => whole(look, row.command !== undefined));
  const look = await (expected === undefined ? screen.shows(step.shows) : screen.equals(expected, counts));
  expect(look.text).toMatch(step.shows);
  if (step.coloured !== undefined) expect(look.coloured).toMatch(step.coloured);
  if (step.cursor !== undefined) expect(look.cursor).toBe(step.cursor);
  return counts(look);
}

function whole({ text, coloured, cursor }: Look, hasColours: boolean): string {
  return `${hasColours ? coloured : text}\ncursor at ${cursor}`;
}
