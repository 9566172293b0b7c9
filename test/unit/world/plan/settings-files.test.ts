import { describe, expect, test } from "vitest";
import { mountPlan } from "../../../../world/plan/mounts.ts";
import { type MountOperation, operationLine } from "../../../../world/plan/operations.ts";
import { host, lines, spec } from "../../../support/world/planned.ts";

const NPM = "/usr/lib/node_modules/npm";
const SHOW = `show ${NPM}/npmrc retries=0`;
const VEIL = `veil ${NPM} ${NPM}`;
const settings = [{ path: `${NPM}/npmrc`, text: "retries=0" }];
const networked = { ...host(), namesServed: true };

/** The lines of a plan that are about that folder. */
function about(change: Parameters<typeof spec>[0], facts = networked): readonly string[] {
  return lines(mountPlan(spec({ settings, ...change }), facts)).filter((line) => line.includes(NPM));
}

describe("a program's settings for one world", () => {
  test("stand in a veil over their folder alone, or in one that is there anyway", () => {
    expect(about({})).toEqual([SHOW, VEIL]);
    const files = { ...spec().files, denyRead: ["/usr/share/secret"] };
    const plan = lines(mountPlan(spec({ settings, files }), networked));
    expect(plan.indexOf(SHOW)).toBeGreaterThan(plan.indexOf("hide /usr/share/secret"));
    expect(plan.indexOf("veil /usr /usr")).toBeGreaterThan(plan.indexOf(SHOW));
    expect(plan).not.toContain(VEIL);
  });

  test("are there when only a part of the host is read, if that has them", () => {
    const read = (path: string) => ({ files: { ...spec().files, read: [path] } });
    expect(about(read("/usr/**"))).toEqual([SHOW, VEIL]);
    expect(about(read("/opt/**"))).toEqual([]);
  });

  test.each([
    ["there are none", { settings: [] }, networked],
    ["the world has no network that they could tell of", {}, host()],
    ["their folder is gone", {}, { ...host({ [NPM]: "missing" }), namesServed: true }],
    ["their folder is somewhere else", {}, { ...host({}, { [NPM]: "/opt/npm" }), namesServed: true }],
    ["the kernel makes no overlay there", {}, { ...networked, unveilable: new Set([NPM]) }],
    [
      "something is mounted below",
      {},
      { ...networked, mountPoints: ["/", "/proc", `${NPM}/docs`], unveilable: new Set<string>() },
    ],
    [
      "they would lie in a folder of the world's own",
      { settings: [{ path: "/tmp/npm/npmrc", text: "" }] },
      networked,
    ],
  ])("are not there when %s", (_why, change, facts) => {
    expect(about(change, facts).filter((line) => /^(show|veil) .*npm/.test(line))).toEqual([]);
  });

  test.each([`${NPM}/npmrc`, NPM, "/usr/**/npmrc", "/usr/lib/node_modules"])(
    "are not there when the policy denies %s",
    (denied) => {
      const files = { ...spec().files, denyRead: [denied] };
      expect(about({ files }).filter((line) => line.startsWith("show"))).toEqual([]);
    },
  );

  test("are listed for people by their place and not by what they say", () => {
    const texts: MountOperation[] = [
      { op: "show", target: "/a", text: "token=x" },
      { op: "text", target: "/b", text: "token=x" },
    ];
    expect(texts.map(operationLine)).toEqual(["show /a", "text /b"]);
    expect(operationLine({ op: "mask", target: "/c" })).toBe("mask /c");
  });
});
