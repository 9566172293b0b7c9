import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { actorsWith } from "../support/run/needs.ts";
import { connectionsTo, namesAsked } from "../support/network/internet.ts";
import { NetworkPlace, networkPolicy } from "../support/network/place.ts";

const ALLOWED = ["registry.example.test", "*.wild.example.test", "xn--bcher-kva.example.test"];

/** Each looks like an allowed name, and is none. `\xNN` is a byte. */
const OTHERS = [
  "evilregistry.example.test",
  "evil-registry.example.test",
  "registry.example.test.evil.test",
  "stranger.example.test",
  "sub.registry.example.test",
  "example.test",
  "test",
  "wild.example.test",
  "evilwild.example.test",
  "xn--bcher-kvb.example.test",
  "bucher.example.test",
  // A Cyrillic letter in the place of a Latin one.
  "r\\u0435gistry.example.test",
];

/** As they may stand in a question, where every byte is allowed (RFC 2181, 11). */
const ODD_QUESTIONS = [
  "registry.example.test\\x00",
  "registry.example.test\\x00.evil.test",
  "registry\\x00.example.test",
  "collector.evil.test\\x00.wild.example.test",
  "registry.example.test\\x20",
  "\\x20registry.example.test",
  "registry.example.tes\\xf4",
  "registry\\x2fexample\\x2ftest",
  "*.wild.example.test",
];

describe.each(actorsWith("python3", "nft"))("names, as $kind", (actor) => {
  let place: NetworkPlace;
  beforeAll(async () => {
    place = await NetworkPlace.open(actor, { default: networkPolicy(ALLOWED) });
  });
  afterAll(() => place.close());

  test("that only look like an allowed one are unknown at once, and nobody outside hears of them", async () => {
    const { dialled, seen } = await place.dial(OTHERS.map((name) => `${name} 80`));
    expect(dialled).toHaveLength(OTHERS.length);
    for (const [index, { came, ms }] of dialled.entries()) {
      expect(came, OTHERS[index]).toBe("NXDOMAIN");
      expect(ms, OTHERS[index]).toBeLessThan(2000);
    }
    expect(seen.connections).toEqual([]);
    expect(seen.questions).toEqual([]);
  });

  test("that are allowed are reached in any case, with a trailing dot, below a wildcard, and in their own script", async () => {
    const same = [
      "registry.example.test",
      "REGISTRY.Example.TEST",
      "registry.example.test.",
      "a.wild.example.test",
      "a.b.wild.example.test",
      "b\\u00fccher.example.test",
    ];
    const { dialled, seen } = await place.dial(same.map((name) => `${name} 80`));
    expect(dialled.map(({ came }) => came)).toEqual(same.map(() => "connected"));
    expect(seen.connections.map(({ to }) => to.address)).toEqual([
      "203.0.113.10",
      "203.0.113.10",
      "203.0.113.10",
      "203.0.113.40",
      "203.0.113.40",
      "203.0.113.42",
    ]);
  });

  test("with NUL, blanks, slashes or no ASCII in a question are unknown, and the plain one is known", async () => {
    for (const over of ["udp", "tcp"] as const) {
      const odd = await place.ask(
        over,
        "127.0.0.53",
        ODD_QUESTIONS.map((name) => `${name} A`),
      );
      // NXDOMAIN, or FORMERR for what is no host name.
      for (const [index, answer] of odd.answers.entries())
        expect(answer, ODD_QUESTIONS[index]).toMatch(/^[13]$/);
      expect(odd.seen.questions).toEqual([]);
      const known = await place.ask(over, "127.0.0.53", [
        "registry.example.test A",
        "ReGiStRy.example.test AAAA",
      ]);
      expect(known.answers[0]).toMatch(/^0 198\.1[89]\.\d+\.\d+$/);
      expect(known.answers[1]).toBe("0");
    }
  });

  test("that a client makes from the C library's search list are unknown too", async () => {
    const { seen, result } = await place.during(
      "LOCALDOMAIN=evil.test RES_OPTIONS=ndots:9 python3 dial.py collector 80 registry.example.test 80",
    );
    expect(result.stdout).toMatch(/^NXDOMAIN \d+\nconnected \d+\n$/);
    // An answer that is still fresh is not asked for again.
    for (const name of namesAsked(seen)) expect(name).toBe("registry.example.test");
    expect(seen.connections.map(({ to }) => to.address)).toEqual(["203.0.113.10"]);
  });

  test("behind one address stay two: the allowed one is reached, the other is not", async () => {
    const { dialled, seen } = await place.dial(["stranger.example.test 80", "registry.example.test 80"]);
    expect(dialled.map(({ came }) => came)).toEqual(["NXDOMAIN", "connected"]);
    expect(connectionsTo(seen, "http").map(({ first }) => /Host: (\S+)/.exec(first)?.[1])).toEqual([
      "registry.example.test",
    ]);
  });

  test("have one address each that stands for them again, and never for another", async () => {
    const names = ["registry.example.test", "a.wild.example.test", "b.wild.example.test"];
    const twice = [...names, ...names].map((name) => `${name} A`);
    const { answers } = await place.ask("udp", "127.0.0.53", twice);
    expect(new Set(answers).size).toBe(3);
    expect(answers.slice(3)).toEqual(answers.slice(0, 3));
  });

  test("are not what /etc/hosts and /etc/resolv.conf say, which nobody inside may write", async () => {
    const lines = `for f in /etc/hosts /etc/resolv.conf; do
  (echo '203.0.113.66 registry.example.test' >> $f) 2>/dev/null && echo wrote $f
  if [ -e $f ]; then rm -f $f 2>/dev/null; [ -e $f ] || echo removed $f; fi
done; grep -v '^#' /etc/resolv.conf | grep -c nameserver; grep nameserver /etc/resolv.conf; cat /etc/hosts 2>/dev/null | grep -c evil`;
    expect((await place.run(lines)).stdout).toBe("1\nnameserver 127.0.0.53\n0\n");
  });
});
