import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { attempt, learn, policy, type Told, values } from "../learned.ts";
import { skip } from "../skips.ts";

describe("a write that stayed in the world", () => {
  const text = 'id: p\nname: P\nfs: { write: ["$PROJECT/**"] }\n';
  const wrote = (...writes: string[]): Told => ({ writes, verdict: "allow" });

  test("gets the exact file, and its folder only when enough files directly in it were written", () => {
    const four = ["a", "b", "c", "d"].map((name) => `/home/ann/.cache/t/${name}.o`);
    expect(values(learn(text, [wrote(...four)]))).toEqual(
      four.map((path) => `fs.write $HOME${path.slice(9)}`),
    );
    const five = [...four, "/home/ann/.cache/t/e.o"];
    expect(values(learn(text, [wrote(...five)]))).toEqual(["fs.write $HOME/.cache/t/**"]);
    const below = five.map((path, index) => path.replace("/t/", `/t/${index}/`));
    expect(values(learn(text, [wrote(...below)]))).toHaveLength(5);
  });

  test("never speaks for the home folder", () => {
    const files = ["a", "b", "c", "d", "e", "f"].map((name) => `/home/ann/.${name}.conf`);
    expect(values(learn(text, [wrote(...files)]))).not.toContain("fs.write $HOME/**");
  });

  test("that a deny list covers would lift a denial", () => {
    const denied = `${text.replace(" }", ', deny_write: ["/home/**/secret*", "$HOME/.{a,b}/x"] }')}`;
    const proposal = learn(denied, [
      wrote("/home/ann/k/secret.txt", "/home/ann/.a/x", "/home/ann/.ssh/config.d"),
    ]);
    expect(proposal.patch).toBe("");
    expect(proposal.writes.stopped.map(({ kind, why }) => [kind, why])).toEqual([
      ["denied", "'/home/**/secret*' in fs.deny_write"],
      ["denied", "'$HOME/.{a,b}/x' in fs.deny_write"],
      ["denied", "'$HOME/.ssh' in fs.deny_read"],
    ]);
  });

  test.each([
    "/etc/hosts.x",
    "/home/ann/.bashrc",
    "/home/ann/.local/bin/x.sh",
    "/home/ann/.cargo/bin/cargo",
    "/usr/lib/x.so",
  ])("is not proposed where programs are run from: %s", (path) => {
    const proposal = learn(text, [wrote(path)], { kinds: { [path]: "file" } });
    expect([proposal.patch, proposal.writes.stopped[0]?.kind]).toEqual(["", "held_back"]);
  });

  test("of a file that is not there cannot be a scope of its own", () => {
    const path = "/home/ann/.tool/state.json";
    const proposal = learn(text, [wrote(path)], { kinds: { [path]: "missing" } });
    expect(proposal.writes.stopped).toMatchObject([{ path, kind: "unsayable" }]);
  });

  test("keeps the project writable where the policy had no list", () => {
    const proposal = learn("id: p\nname: P\n", [wrote("/home/ann/.tool/state.json")]);
    expect(policy(proposal.text).document.fs).toEqual({ write: ["$PROJECT/**", "$HOME/.tool/state.json"] });
  });
});

describe("the file", () => {
  const told: Told[] = [{ cmd: "make a" }, { cmd: "make b" }];
  const layouts = {
    "a list in one line": 'id: p\nname: P\ncommands: { allowed: ["ls"] }\n',
    "a list in one line below its key": 'id: p\nname: P\ncommands:\n  allowed: ["ls", true]  # these\n',
    "a list over several lines":
      'id: p\nname: P\ncommands:\n  allowed: [\n    "ls", # first\n    "cat",\n  ]\n  ask: []\n',
    "a list over several lines without a last comma":
      'id: p\nname: P\ncommands:\n  allowed: [\n    "ls" # first\n  ]\n',
    "items that are maps":
      "id: p\nname: P\ncommands:\n  allowed:\n  - pattern: ls\n    reason: looks # why\n  # next\n  ask: []\n",
    "no end of the last line": "id: p\nname: P\ncommands:\n  allowed:\n    - ls",
    "line ends of another system": "id: p\r\nname: P\r\ncommands:\r\n  allowed:\r\n    - ls\r\n",
  };

  test.each(Object.entries(layouts))(
    "with %s gets a patch that `patch` applies to what was checked",
    (_name, layout) => {
      const text = layout.replace("true", '"cat"');
      const proposal = learn(text, told);
      expect(policy(proposal.text).document.commands?.allowed).toEqual([
        ...(policy(text).document.commands?.allowed ?? []),
        "make a",
        "make b",
      ]);
      const folder = mkdtempSync(join(tmpdir(), "sb-learn-"));
      try {
        writeFileSync(join(folder, "p.yaml"), text);
        const ran = spawnSync("patch", ["--binary", join(folder, "p.yaml")], {
          input: proposal.patch,
          encoding: "utf8",
        });
        if (ran.error !== undefined) skip("policy learn's patch through patch(1)", ran.error.message);
        expect([ran.status, ran.stderr]).toEqual([0, ""]);
        expect(readFileSync(join(folder, "p.yaml"), "utf8")).toBe(proposal.text);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  test("that cannot be changed in place is refused, and nothing is shown", () => {
    const text = 'id: p\nname: P\ncommands:\n  denied: &list ["ls"]\n  allowed: *list\n';
    expect(attempt(text, told)).toEqual({
      wrong: expect.stringMatching(/^the patched file does not load: p\.yaml:6:3: Map keys must be unique/),
    });
  });
});
