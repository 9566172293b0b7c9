import { describe, expect, test } from "vitest";
import { mountPlan } from "../../world/plan/mounts.ts";
import { denialWords } from "../../world/plan/denials.ts";
import type { OtherName } from "../../world/plan/mount-table.ts";
import { host, lines, PROJECT, spec } from "../support/world/planned.ts";

const SSH = "/home/ann/.ssh";

function planned(
  others: Readonly<Record<string, readonly OtherName[]>>,
  change: Partial<Parameters<typeof spec>[0]> = {},
) {
  const facts = { ...host(), otherNames: (path: string) => others[path] ?? [] };
  const plan = mountPlan(spec(change), facts);
  return { lines: lines(plan), denied: plan.denied.map((each) => denialWords(each).join(" ")) };
}

function denying(denyRead: readonly string[]): Parameters<typeof spec>[0] {
  return { files: { ...spec().files, denyRead } };
}

describe("a second mount of a tree", () => {
  test("hides what is denied there too", () => {
    const plan = planned({ [SSH]: [{ path: "/var/x/.ssh", part: "" }] }, denying([SSH]));
    expect(plan.lines).toContain(`hide ${SSH}`);
    expect(plan.lines).toContain("hide /var/x/.ssh");
  });
  test("hides SUBSTRATE_HOME", () => {
    const plan = planned(
      { "/home/ann/.substrate": [{ path: "/var/s", part: "sock" }] },
      { hidden: ["/home/ann/.substrate"] },
    );
    expect(plan.lines).toContain("hide /var/s");
  });
  test("covers it below the project, where a command could write", () => {
    const other = { path: `${PROJECT}/keys`, part: "" };
    expect(planned({ [SSH]: [other] }, denying([SSH])).denied).toContain("r Lhome Lann Lwork Lkeys");
  });
  test("is read-only where it shows the installation", () => {
    const write = [`${PROJECT}/**`, "/srv/**"];
    const plan = planned(
      { "/opt/substrate": [{ path: "/srv/s", part: "" }] },
      { sealed: ["/opt/substrate"], files: { ...spec().files, write } },
    );
    expect(plan.lines).toContain("readonly /srv/s");
  });
});

describe("a pattern at a second mount", () => {
  const pattern = `${PROJECT}/**/.env`;
  const at = (part: string, deny = pattern) =>
    planned({ [PROJECT]: [{ path: "/var/x", part }] }, denying([deny])).denied.filter((words) =>
      words.startsWith("h"),
    );

  test("holds below all of its folder, and below a part of it", () => {
    expect(at("")).toEqual(["h Lvar Lx D L.env"]);
    expect(at("a/b")).toEqual(["h Lvar Lx D L.env"]);
  });
  test("goes on where the part ends", () => {
    expect(at("a", `${PROJECT}/*/x*`)).toEqual(["h Lvar Lx Gx*"]);
    expect(at("a/b", `${PROJECT}/[a]/*/t*`)).toEqual(["h Lvar Lx Gt*"]);
    expect(at("b", `${PROJECT}/a*/t*`)).toEqual([]);
  });
  test("denies the whole mount when it shows what the pattern names, or something in it", () => {
    const plan = planned({ [PROJECT]: [{ path: "/var/x", part: "a/.env/deep" }] }, denying([pattern]));
    expect(plan.lines).toContain("hide /var/x");
  });
});
