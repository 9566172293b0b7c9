import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sshIncludes } from "../../../../world/linux/ssh-includes.ts";
import { skip } from "../../../support/run/skips.ts";

describe("files that ssh's settings include", () => {
  let folder = "";
  const write = (name: string, text: string, mode = 0o644): void => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), mode);
  };
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sb-ssh-"));
    mkdirSync(join(folder, "d"));
    write("config", `Host x\n  include "d/*.conf" none/* missing\nInclude=${folder}/other\n`);
    write("d/a.conf", "Include d/deep\n");
    write("d/deep", "Include d/a.conf\nUser deep\n");
    write("d/unnamed", "");
    write("d/loose.conf", "User loose\n", 0o666);
    write("target", "User linked\n");
    symlinkSync("../target", join(folder, "d/linked.conf"));
    symlinkSync("nowhere", join(folder, "d/dangling.conf"));
    write("other", "User other\n");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("are found by pattern, from each other and behind links; those that others can write are left out", () => {
    if (process.getuid?.() !== 0) return skip("ssh's included files", "only root can make files of root's");
    const found = sshIncludes(join(folder, "config"));
    expect(Object.fromEntries(found.map(({ path, text }) => [path.slice(folder.length + 1), text]))).toEqual({
      "d/a.conf": "Include d/deep\n",
      "d/deep": "Include d/a.conf\nUser deep\n",
      "d/linked.conf": "User linked\n",
      other: "User other\n",
    });
  });

  test("are none where the settings are missing", () => {
    expect(sshIncludes(join(folder, "no-such-file"))).toEqual([]);
  });
});
