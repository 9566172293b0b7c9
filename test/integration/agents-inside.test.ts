/** Coding agents from npm, each inside `substrate run` with its preset, in an internet of the tests' own. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { agentProgram, notInstalled } from "../support/programs/agents.ts";
import { Person } from "../support/programs/person.ts";
import { NetworkPlace } from "../support/network/place.ts";
import type { Zone } from "../support/network/messages.ts";
import { RESOLVER } from "../support/network/zone.ts";
import { actorsWith } from "../support/run/needs.ts";
import { skippedTest } from "../support/run/skips.ts";

type Agent = {
  readonly preset: string;
  readonly program: string;
  readonly package: string;
  /** A part of its first screen; its words may be apart by movements of the cursor. */
  readonly screen: RegExp;
  /** A file in its home by which it knows this installation from its first start on, and the part that stays the same. */
  readonly kept: { readonly path: string; readonly part: RegExp };
  /** Hosts that the agent connects to at its start, and that its preset allows. */
  readonly reached: readonly string[];
  /** Hosts whose names the agent looks up at its start, and that its preset does not allow. */
  readonly refused: readonly string[];
};

const AGENTS: readonly Agent[] = [
  {
    preset: "claude-code",
    program: "claude",
    package: "@anthropic-ai/claude-code",
    screen: /Choose\s*the\s*text\s*style/,
    kept: { path: ".claude.json", part: /"userID": "[0-9a-f]{16,}"/ },
    reached: ["api.anthropic.com", "platform.claude.com"],
    refused: ["raw.githubusercontent.com"],
  },
  {
    preset: "codex",
    program: "codex",
    package: "@openai/codex",
    screen: /Sign\s*in\s*with\s*ChatGPT/,
    kept: { path: ".codex/installation_id", part: /^[0-9a-f-]{36}/ },
    reached: ["chatgpt.com"],
    refused: ["ab.chatgpt.com", "raw.githubusercontent.com"],
  },
];

const ZONE: Zone = Object.fromEntries(
  AGENTS.flatMap(({ reached, refused }) => [...reached, ...refused]).map((name, index) => [
    name,
    { addresses: [`203.0.113.${120 + index}`] },
  ]),
);

/** The shipped default, which asks the internet's own resolver. */
const DEFAULT = `id: default
name: The shipped one, in the tests' internet
extends: default
net: { dns: { servers: ["${RESOLVER}"] } }
`;

/** Names at servers that presets open. */
const NAMED = AGENTS.flatMap(({ reached }) => reached);

const MINUTE = 60_000;

const here = AGENTS.filter(({ program }) => agentProgram(program) !== undefined);
for (const { program, package: name } of AGENTS)
  if (agentProgram(program) === undefined)
    skippedTest(`${name} inside substrate run`, notInstalled(program, name));

describe.skipIf(here.length === 0).each(actorsWith("nft"))("as $kind", (actor) => {
  let place: NetworkPlace;
  const people: Person[] = [];
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: DEFAULT }, ZONE);
  });
  afterEach(() => people.splice(0).forEach((person) => person.leave()));
  afterAll(() => place.close());

  test.each(here)(
    "$package shows its first screen, finds its settings again, and reaches what its preset names",
    { timeout: 3 * MINUTE },
    async ({ preset, program, screen, kept, reached, refused }) => {
      const person = await Person.at(place.broker);
      people.push(person);
      const ca = join(place.broker.project, "ca.pem");
      const start = `substrate run --profile ${preset} --env SSL_CERT_FILE=${ca} --env NODE_EXTRA_CA_CERTS=${ca} -- ${agentProgram(program)}\r`;
      const { result: ids, seen } = await place.internet.during(async () => {
        const ids: (string | undefined)[] = [];
        for (const round of ["first", "second"]) {
          person.type(start);
          await person.sees(screen);
          await leave(person);
          person.type(
            `echo "${round} $(stty -a | tr " ;" "\\n\\n" | grep -cx -e icanon -e echo -e opost)"\r`,
          );
          await person.sees(new RegExp(`${round} 3\r\n`));
          ids.push(
            kept.part.exec(readFileSync(join(place.broker.home, "homes", preset, kept.path), "utf8"))?.[0],
          );
        }
        return ids;
      });
      expect(ids[0]).toBeDefined();
      expect(ids[1]).toBe(ids[0]);
      const asked = new Set(seen.questions.map(({ name }) => name.toLowerCase()));
      expect([...asked]).toEqual(expect.arrayContaining([...reached]));
      expect(refused.filter((name) => asked.has(name))).toEqual([]);
      const dialled = new Set(seen.connections.map(({ sni }) => sni));
      expect([...dialled]).toEqual([...dialled].filter((name) => name !== null && NAMED.includes(name)));
      expect([...dialled]).toEqual(expect.arrayContaining([...reached]));
      const told = await place.broker.cli(["trace", "list", "-n", "200"]);
      for (const name of refused) expect(told.stdout).toMatch(new RegExp(`violation  name  \\S+  ${name}`));
    },
  );
});

/** Ctrl-C until the program has ended: each asks in its own way whether it is meant. */
async function leave(person: Person): Promise<void> {
  const typing = setInterval(() => person.type("\x03"), 500);
  try {
    await person.sees(/OUTSIDE> $/);
  } finally {
    clearInterval(typing);
  }
}
