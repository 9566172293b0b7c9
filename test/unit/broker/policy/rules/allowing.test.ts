/** Which variables a rule that allows covers, and which it does not. */
import { describe, expect, test } from "vitest";
import {
  type Where,
  decide,
  parsePolicy,
  readShell,
  withVariables,
} from "../../../../../broker/policy/index.ts";
import { isHarmless } from "../../../../../broker/policy/rules/harmless-variables.ts";

// Two policies that allow the same in both ways, and what they say of a command.

const WHERE: Where = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

const AUTO = policyOf(
  'approval: { require: true, auto_approve: ["make", "git *", "cd *", "export *", "ls *"] }',
);
const LIST = policyOf('commands: { allowed: ["make", "git *", "cd *", "export *", "ls *"] }');

const COVERED = ["allow", "allow"];
const NOT_COVERED = ["ask", "deny"];

describe("a variable", () => {
  /** Of the 40 tools that agents use most: each makes its tool run or load something. */
  const LOADING: readonly (readonly [tool: string, names: string])[] = [
    ["make", "MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS MAKEOVERRIDES"],
    [
      "git",
      `GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_EXEC_PATH GIT_TEMPLATE_DIR
      GIT_OBJECT_DIRECTORY GIT_SSH GIT_SSH_COMMAND GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_EXTERNAL_DIFF
      GIT_ASKPASS GIT_PROXY_COMMAND GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM
      GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GIT_ALLOW_PROTOCOL
      GIT_ATTR_SOURCE GIT_DISCOVERY_ACROSS_FILESYSTEM GIT_PAGER`,
    ],
    ["XDG folders", "XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR"],
    [
      "npm, pnpm, yarn",
      `NPM_CONFIG_SCRIPT_SHELL npm_config_script_shell Npm_Config_Script_Shell NPM_CONFIG_USERCONFIG
      npm_config_node_options NPM_CONFIG_GIT PNPM_HOME YARN_RC_FILENAME YARN_YARN_PATH npm_execpath`,
    ],
    ["node", "NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE NODE_EXTRA_CA_CERTS TS_NODE_PROJECT"],
    ["bun, deno", "BUN_CONFIG_PRELOAD BUN_OPTIONS DENO_DIR"],
    [
      "python",
      `PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONUSERBASE
      PYTHONWARNINGS`,
    ],
    [
      "pip, uv, poetry, pytest",
      "PIP_CONFIG_FILE PIP_INDEX_URL UV_PYTHON POETRY_HOME PYTEST_ADDOPTS PYTEST_PLUGINS VIRTUAL_ENV",
    ],
    ["perl", "PERL5OPT PERL5LIB PERL5DB PERLLIB"],
    ["ruby", "RUBYOPT RUBYLIB BUNDLE_GEMFILE GEM_HOME GEM_PATH"],
    [
      "java",
      `JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH JAVA_HOME MAVEN_OPTS GRADLE_OPTS
      ANT_OPTS`,
    ],
    ["the loader", "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT GCONV_PATH LOCPATH DYLD_INSERT_LIBRARIES NLSPATH"],
    [
      "shells",
      "ENV BASH_ENV PS4 PROMPT_COMMAND IFS CDPATH SHELLOPTS BASHOPTS ZDOTDIR FPATH SHELL GLOBIGNORE",
    ],
    [
      "folders of programs and settings",
      "PATH HOME TMPDIR EDITOR VISUAL BROWSER PAGER MANPAGER SSH_ASKPASS SUDO_ASKPASS",
    ],
    ["less", "LESSOPEN LESSCLOSE LESS LESSKEY LESSKEYIN"],
    [
      "cargo",
      `CARGO_HOME CARGO_BUILD_RUSTC_WRAPPER CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER RUSTC_WRAPPER
      RUSTC RUSTFLAGS RUSTUP_TOOLCHAIN`,
    ],
    ["go", "GOFLAGS GOROOT GOPATH GOENV GOPROXY CGO_CFLAGS GOTOOLCHAIN"],
    [
      "compilers",
      `CC CXX LD AR CFLAGS CPPFLAGS LDFLAGS COMPILER_PATH GCC_EXEC_PREFIX CMAKE_TOOLCHAIN_FILE
      PKG_CONFIG_PATH`,
    ],
    [
      "lua, R, php",
      "LUA_INIT LUA_PATH LUA_CPATH R_PROFILE R_ENVIRON R_LIBS PHPRC PHP_INI_SCAN_DIR COMPOSER_HOME",
    ],
    ["curl, ssh, rsync, tar", "CURL_HOME WGETRC SSH_AUTH_SOCK RSYNC_RSH TAR_OPTIONS HTTPS_PROXY http_proxy"],
    [
      "docker, kubectl, terraform, aws",
      "DOCKER_HOST DOCKER_CONFIG KUBECONFIG TF_CLI_CONFIG_FILE AWS_CONFIG_FILE AWS_PAGER",
    ],
    ["terminals", "TERMINFO TERMCAP INPUTRC LS_COLORS GREP_COLORS COLORFGBG"],
    ["nobody's", "X FOO_BAR lower"],
  ];

  test.each(LOADING.flatMap(([tool, names]) => names.split(/\s+/).map((name) => [tool, name] as const)))(
    "of %s is covered by no rule that allows: %s",
    (_tool, name) => {
      for (const value of ["./x", "$(id)", "-x"]) {
        expect(verdicts("make", { [name]: value }), value).toEqual(NOT_COVERED);
        expect(verdicts(`${name}='${value}' make`), value).toEqual(NOT_COVERED);
      }
      expect(verdicts(`export ${name}=./x; make`)).toEqual(NOT_COVERED);
    },
  );

  test("with a name that is none is covered by none", () => {
    expect(verdicts("make", { "BASH_FUNC_ls%%": "() { id; }" })).toEqual(NOT_COVERED);
  });

  test.each([
    ["LANG", "C.UTF-8"],
    ["LC_ALL", "de_DE.UTF-8@euro"],
    ["LANGUAGE", "de:en"],
    ["TZ", "Europe/Berlin"],
    ["TERM", "xterm-256color"],
    ["COLORTERM", "truecolor"],
    ["NO_COLOR", "1"],
    ["FORCE_COLOR", "0"],
    ["CI", "true"],
    ["COLUMNS", "120"],
    ["LINES", "40"],
    ["GIT_TERMINAL_PROMPT", "0"],
    ["GIT_OPTIONAL_LOCKS", "0"],
    ["PYTHONUNBUFFERED", "1"],
    ["SOURCE_DATE_EPOCH", "1700000000"],
  ])("of language, terminal or colours is no matter: %s=%s", (name, value) => {
    expect(verdicts("make", { [name]: value })).toEqual(COVERED);
    expect(verdicts(`${name}=${value} make`)).toEqual(COVERED);
    expect(verdicts(`export ${name}=${value}; make`)).toEqual(COVERED);
  });

  test.each([
    ["LANG", "$(id)"],
    ["LANGUAGE", "../../projects/app/x"],
    ["LC_ALL", "/projects/app/x"],
    ["TERM", "../x"],
    ["CI", "`id`"],
    ["COLUMNS", "$(id)"],
    ["TZ", "a;id"],
    ["PAGER", "less"],
    ["LC_", "C"],
    ["lang", "C"],
  ])("of that name is not harmless with any value: %s=%s", (name, value) => {
    expect(isHarmless(name, value)).toBe(false);
    expect(verdicts("make", { [name]: value })).toEqual(NOT_COVERED);
  });

  test("is harmless when every command starts with the same value, and not with another", () => {
    const given = { PATH: "/usr/bin:/bin", NODE_EXTRA_CA_CERTS: "/etc/own.pem" };
    expect(verdicts("make", given, { given })).toEqual(COVERED);
    expect(verdicts("make", { ...given, PATH: "/usr/bin" }, { given })).toEqual(NOT_COVERED);
  });

  test.each([
    "PATH=.:$PATH; make",
    "LD_PRELOAD=./x.so; make",
    "HOME=.; git status",
    "cd x; PATH=./bin make",
    "for PATH in ./bin; do make; done",
    "export $x; make",
    'export "$name"=1; make',
    "export MAKEFLAGS; make",
    "LANG=$(cat x) make",
  ])("that another part of the line sets for it counts: %s", (line) => {
    expect(verdicts(line)).toEqual(NOT_COVERED);
  });

  test.each(["files=a; make", "x=1; ls $x", "for f in a b; do ls $f; done"])(
    "that no program gets is no matter: %s",
    (line) => {
      expect(verdicts(line)).toEqual(COVERED);
    },
  );
});

describe("a file that the shell writes the output to", () => {
  const AUTO = "ask";
  test.each([
    "git log --format=x > Makefile",
    "git log >> Makefile",
    "git log >| x",
    "git log &> x",
    "git log >& x",
    "git log 2> x",
    "git log <> x",
    'git log > "$x"',
    "for i in a; do make; done > x",
    "> Makefile",
    "make 1>&2 > x",
  ])("is no matter of auto_approve: %s", (command) => {
    expect(verdicts(command)[0]).toBe(AUTO);
  });

  test.each([
    "git log > /dev/null",
    "make 2>&1",
    "make >&2",
    "make 2>/dev/null 1>&2",
    "make < x",
    "make <<E\nx\nE",
    "make 2>&-",
  ])("twin: nothing is written: %s", (command) => {
    expect(verdicts(command)).toEqual(COVERED);
  });
});

// What a rule that says `git *` covers, and `make *`.

describe("git *", () => {
  test.each([
    "git -C nested status",
    "git -Cnested status",
    "git --git-dir=n/.git status",
    "git --git-dir n/.git status",
    "git --work-tree=n status",
    "git -c core.pager=x log",
    "git --config-env=core.pager=X log",
    "git --exec-path=. status",
    "git --bare log",
    "git --namespace=x log",
    "git $x status",
    "git $x",
    "git config alias.z '!id'",
    "git config --global core.editor id",
    "git config set core.pager id",
    "git config --unset core.pager",
    "git config -e",
    "git config user.name get",
    "git config --get user.name --unset",
    "git remote add x ext::id",
    "git remote -v add x y",
    "git remote set-url origin x",
    "git submodule add ./n",
    "git submodule update --init",
    "git submodule foreach id",
    "git clone -c core.fsmonitor=id x",
    "git clone x",
    "git init n",
    "git worktree add list",
    "git push ./n",
    "git bisect run id",
    "git difftool -x id",
    "git filter-branch x",
    "git update-index --cacheinfo 160000,x,n",
    "git maintenance start",
    "git hook run x",
    "git grep -Oid x",
    "git grep --open-files=id x",
    "git log --outp=x",
    "git fetch --upload-pack=id .",
    "cd $x && git status",
    "cd - && git status",
  ])("does not cover what loads or writes other settings: %s", (line) => {
    expect(verdicts(line)).toEqual(NOT_COVERED);
  });

  test.each([
    "git status",
    "git --no-pager log -n 3",
    "git log -C --stat",
    "git rev-parse --git-dir",
    "git commit -m 'a: b'",
    "git add .",
    "git fetch origin",
    "git rebase main",
    "git config --get user.name",
    "git config --global user.name",
    "git config --list --show-origin",
    "git remote",
    "git remote -v",
    "git remote get-url origin",
    "git submodule status",
    "git worktree list",
    "cd src && git diff",
  ])("covers %s", (line) => {
    expect(verdicts(line)).toEqual(COVERED);
  });

  test("holds in no folder where another repository's settings do", () => {
    const where = { isForeignGit: (folder: string) => folder.startsWith("/projects/app/n") };
    expect(verdicts("git status", {}, where)).toEqual(COVERED);
    expect(verdicts("cd n && git status", {}, where)).toEqual(NOT_COVERED);
    expect(verdicts("git status", {}, { ...where, cwd: "/projects/app/n" })).toEqual(NOT_COVERED);
    expect(verdicts("cd n && ls -l", {}, where)).toEqual(COVERED);
  });

  test("is not covered by a pattern for one setting that stands beside another", () => {
    const policy = policyOf('commands: { allowed: ["git -c color.ui=never *"] }');
    const line = "git -c core.fsmonitor=id -c color.ui=never status";
    expect(decide(policy, readShell(line), WHERE).verdict).toBe("deny");
  });

  test.each([
    ["git -C *", "git -C nested status"],
    ["git clone *", "git clone x"],
    ["git config *", "git config user.name x"],
    ["git -c color.ui=never *", "git -c color.ui=never log"],
    ["*", "FOO=1 git -C nested config x.y z"],
  ])("leaves to a pattern that spells them: %s", (pattern, line) => {
    const policy = policyOf(`commands: { allowed: ["${pattern}"] }`);
    expect(decide(policy, readShell(line), WHERE).verdict).toBe("allow");
  });
});

test("make * covers no beginning of an option that loads code", () => {
  const policy = policyOf('commands: { allowed: ["make *"] }');
  for (const line of ["make --ev='$(shell id)'", "make --eval=x", "make -f x", "make --dir=n"])
    expect(decide(policy, readShell(line), WHERE).verdict, line).toBe("deny");
  expect(decide(policy, readShell("make -j4 --keep-going all"), WHERE).verdict).toBe("allow");
});

function policyOf(more: string) {
  const loaded = parsePolicy(`id: p\nname: P\nmode: enforce\n${more}`, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

/** Under `approval.require`, and under a list of all that may run. */
function verdicts(command: string, env: Readonly<Record<string, string>> = {}, where: Partial<Where> = {}) {
  const read = withVariables(readShell(command, "bash"), env);
  return [AUTO, LIST].map((policy) => decide(policy, read, { ...WHERE, ...where }).verdict);
}
