import { readdirSync } from "node:fs";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { timeLimit } from "../../../../api/cli/words/durations.ts";
import { withoutNpm } from "../../../../api/cli/commands/without-npm.ts";
import {
  BaseEnvironments,
  type CallerShell,
  ownPath,
  shellOf,
} from "../../../../broker/settings/environment.ts";
import { loadPolicy } from "../../../../broker/policy/index.ts";
import { PASSED_BY_DEFAULT, passes } from "../../../../broker/policy/rules/passed-variables.ts";
import { isCodeVariable } from "../../../../broker/policy/wrappers/variable-table.ts";

const POLICIES = join(import.meta.dirname, "../../../../policies");

describe("what world.env passes", () => {
  test("every shipped policy that says it lists what holds where none does", () => {
    const names = readdirSync(POLICIES).flatMap((file) => (/^(?!tour)(.*)\.yaml$/.exec(file) ?? []).slice(1));
    expect(names).toContain("strict");
    for (const name of names) {
      const loaded = loadPolicy(join(POLICIES, `${name}.yaml`), POLICIES);
      if (!("ok" in loaded)) throw new Error(`${name} does not load`);
      expect([...(loaded.ok.document.world?.env ?? [])].sort(), name).toEqual([...PASSED_BY_DEFAULT].sort());
    }
  });

  test.each([
    ..."NODE_OPTIONS NODE_PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT PYTHONPATH PYTHONHOME PYTHONSTARTUP".split(
      " ",
    ),
    ..."BASH_ENV ENV PS4 PROMPT_COMMAND SHELLOPTS IFS BASH_FUNC_ls%% PERL5LIB PERL5OPT RUBYLIB RUBYOPT".split(
      " ",
    ),
    ..."GEM_PATH GEM_HOME GIT_DIR GIT_SSH_COMMAND GIT_CONFIG_GLOBAL GIT_EXEC_PATH JAVA_TOOL_OPTIONS".split(
      " ",
    ),
    ..."RUSTC_WRAPPER GOFLAGS MAKEFLAGS npm_config_script_shell NPM_CONFIG_PREFIX EDITOR PAGER BROWSER".split(
      " ",
    ),
    ..."GITHUB_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK HOME PATH XDG_CONFIG_HOME SUBSTRATE_HOME".split(" "),
  ])("%s is in no shipped list", (name) => {
    expect(passes(PASSED_BY_DEFAULT, name)).toBe(false);
  });

  test.each(PASSED_BY_DEFAULT)("%s is no variable that programs run code by", (name) => {
    expect(isCodeVariable(name.replace("*", "X"))).toBe(false);
  });

  test("an entry with a value passes that value alone: an editor that edits nothing, and no other", () => {
    for (const name of ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR"]) {
      expect(passes(PASSED_BY_DEFAULT, name, "true")).toBe(true);
      for (const value of ["vim", "true; id", "", "true "])
        expect(passes(PASSED_BY_DEFAULT, name, value)).toBe(false);
    }
    expect(passes(["A=b"], "A=b")).toBe(true);
    expect(passes(["A=b"], "A")).toBe(false);
  });

  test("a glob stands for names, and never for our own", () => {
    expect(passes(["NODE_*"], "NODE_ENV")).toBe(true);
    expect(passes(["NODE_*"], "XNODE_ENV")).toBe(false);
    expect(passes(["ASDF_*_VERSION"], "ASDF_RUBY_VERSION")).toBe(true);
    expect(passes(["ASDF_*_VERSION"], "ASDF_RUBY_VERSIONS")).toBe(false);
    expect(passes(["*"], "ANYTHING")).toBe(true);
    expect(passes(["*", "SUB*"], "SUBSTRATE_HOME")).toBe(false);
    expect(passes(["SUBSTRATE_HOME"], "SUBSTRATE_HOME")).toBe(true);
    expect(passes([], "LANG")).toBe(false);
  });
});

describe("PATH of a shell", () => {
  test("keeps its folders and their order, but for those that no world shows", () => {
    expect(
      ownPath("/a:node_modules/.bin::/none:/h/.substrate/shims:/h/.substrate/shims/:/b", "/h/.substrate"),
    ).toBe("/a:node_modules/.bin::/none:/b");
  });

  test("names the folder behind a link that a version manager keeps below /tmp or /run", () => {
    const folder = mkdtempSync(join(tmpdir(), "path-"));
    try {
      mkdirSync(join(folder, "real"));
      symlinkSync("/usr/bin", join(folder, "shell"));
      symlinkSync(join(folder, "real"), join(folder, "near"));
      const all = ["shell", "near", "none"].map((name) => join(folder, name));
      expect(ownPath(all.join(":"), "/h")).toBe(["/usr/bin", ...all.slice(1)].join(":"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("a command's environment", () => {
  const host = {
    PATH: "/usr/bin:/bin",
    HOME: "/h",
    USER: "u",
    LOGNAME: "u",
    SHELL: "/bin/sh",
    CI: "1",
    LANG: "C",
  };
  const passing = { passes: (name: string) => passes(["CI", "LANG", "NODE_*"], name), added: () => ({}) };
  const shell = (variables: Record<string, string>, trusts = false): CallerShell => ({
    variables,
    key: String(trusts),
    isPersons: trusts,
    trusts: () => trusts,
  });

  test("has the caller's variables, and none of the broker's that the caller has not", () => {
    const environments = new BaseEnvironments(host, "/h/.substrate");
    const { variables, brought } = environments.ofShell(
      "p",
      passing,
      shell({ PATH: "/x:/bin", LANG: "C", NODE_ENV: "test", HOME: "/other", SECRET: "s", USER: "root" }),
    );
    expect(variables).toEqual({
      ...{ PATH: "/x:/bin", HOME: "/h", USER: "u", LOGNAME: "u", SHELL: "/bin/sh" },
      ...{ LANG: "C", NODE_ENV: "test" },
    });
    expect(brought).toEqual({ PATH: "/x:/bin", NODE_ENV: "test" });
    expect(environments.of("p", passing).variables).toMatchObject({ CI: "1", PATH: "/usr/bin:/bin" });
  });

  test("a caller without PATH has the broker's", () => {
    const environments = new BaseEnvironments(host, "/h/.substrate");
    for (const variables of [{}, { PATH: "" }, { PATH: "/h/.substrate/shims" }])
      expect(environments.ofShell("p", passing, shell(variables)).variables["PATH"]).toBe("/usr/bin:/bin");
  });

  test("what is trusted of one shell is not trusted of another with the same variables", () => {
    const environments = new BaseEnvironments(host, "/h/.substrate");
    const variables = { PATH: "/x", NODE_ENV: "test" };
    expect(environments.ofShell("p", passing, shell(variables, true)).trusted).toMatchObject(variables);
    expect(environments.ofShell("p", passing, shell(variables, false)).trusted).not.toHaveProperty("PATH");
  });
});

describe("what npm adds for a script", () => {
  const npm = { npm_lifecycle_event: "start", npm_config_cache: "/c", INIT_CWD: "/p", LANG: "C" };

  test("is gone, and what the person had stays", () => {
    const PATH =
      "/p/node_modules/.bin:/node_modules/.bin:/lib/node_modules/npm/node_modules/@npmcli/run-script/lib/node-gyp-bin:/usr/bin:/own/node_modules/.bin";
    expect(withoutNpm({ ...npm, PATH })).toEqual({ LANG: "C", PATH: "/usr/bin:/own/node_modules/.bin" });
  });

  test("a script that starts a script leaves nothing either, and what stood between stays", () => {
    const PATH =
      "/p/node_modules/.bin:/a/node-gyp-bin:/between:/q/node_modules/.bin:/a/node-gyp-bin:/usr/bin";
    expect(withoutNpm({ ...npm, PATH })["PATH"]).toBe("/between:/usr/bin");
  });

  test("without a package manager nothing changes", () => {
    const own = { PATH: "/p/node_modules/.bin:/usr/bin", npm_config_registry: "https://registry.example" };
    expect(withoutNpm(own)).toEqual(own);
  });
});

describe("--timeout", () => {
  test.each([
    ["500ms", 500],
    ["90s", 90_000],
    ["10m", 600_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1500", 1500],
  ])("%s is %i ms", (text, ms) => {
    expect(timeLimit(text)).toBe(ms);
  });

  test.each(["0", "0s", "-1s", "1.5s", "10 m", "m", "", "25h", "2d", "10min", "1e3", "999999999999999"])(
    "'%s' is refused with what is wanted",
    (text) => {
      expect(() => timeLimit(text)).toThrow(/500ms, 90s, 10m or 2h/);
    },
  );
});

test.each([
  ["/usr/sbin/nologin", "/bin/sh"],
  ["/bin/false", "/bin/sh"],
  ["", "/bin/sh"],
  [null, "/bin/sh"],
  ["/usr/bin/fish", "/usr/bin/fish"],
  ["/opt/falsework/bin/zsh", "/opt/falsework/bin/zsh"],
])("SHELL of a user whose shell is %j is %s", (login, shell) => {
  expect(shellOf(login)).toBe(shell);
});
