import { constants } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { DENIED_WRITES, pathsOf } from "../../../../broker/policy/files/default-denials.ts";
import { fileLists } from "../../../../broker/policy/files/file-lists.ts";
import { loadPolicy } from "../../../../broker/policy/index.ts";
import { coverOf } from "../../../../world/backend.ts";
import { isAutorun } from "../../../../world/overlay/autorun.ts";
import { RUN_LATER } from "../../../../world/overlay/run-later.ts";
import { parsePattern, pathOf } from "../../../../world/plan/globs.ts";

/** One path for each kind, as a command would write it. */
const KINDS: readonly string[] = [
  ".git/hooks/pre-commit",
  ".git/config",
  ".git/config.worktree",
  ".git/commondir",
  ".git/modules/lib/hooks/post-checkout",
  ".git/modules/lib/config",
  ".git/modules/a/modules/b/config",
  ".git/worktrees/w/config.worktree",
  ".git/worktrees/w/commondir",
  ".git/info/attributes",
  ".git/rebase-merge/git-rebase-todo",
  "sub/.git",
  "sub/.git/config",
  "bare.git/config",
  "bare.git/hooks/post-update",
  "bare/HEAD",
  "bare/config",
  "bare/hooks/post-checkout",
  "tools/hooks/post-commit",
  ".gitmodules",
  ".gitattributes",
  ".gitconfig",
  ".githooks/pre-push",
  ".husky/pre-commit",
  ".husky/_/h",
  ".pre-commit-config.yaml",
  "lefthook.yml",
  ".lefthook.yaml",
  ".lefthook/pre-commit/x.sh",
  ".overcommit.yml",
  "captainhook.json",
  "grumphp.yml",
  ".huskyrc",
  ".huskyrc.js",
  "prek.toml",
  "hk.pkl",
  ".trunk/trunk.yaml",
  ".rvmrc",
  ".autoenv.zsh",
  ".autoenv_leave.zsh",
  ".ycm_extra_conf.py",
  ".lazy.lua",
  ".nfnl.fnl",
  ".luacheckrc",
  "tmuxp.yaml",
  ".tmuxp.yaml",
  ".openhands/setup.sh",
  ".storybook/main.js",
  ".storybook/main.ts",
  "config.nims",
  "docs/conf.py",
  ".sbtopts",
  ".jvmopts",
  ".lintstagedrc.json",
  ".hg/hgrc",
  ".envrc",
  ".direnv/bin/x",
  "mise.toml",
  ".mise.toml",
  ".config/mise/config.toml",
  ".tool-versions",
  ".bashrc",
  ".zshenv",
  ".tmux.conf",
  ".vscode/tasks.json",
  ".vscode/settings.json",
  ".vscode/launch.json",
  ".vscode/extensions.json",
  "all.code-workspace",
  ".idea/workspace.xml",
  ".devcontainer/devcontainer.json",
  ".devcontainer.json",
  ".zed/tasks.json",
  ".exrc",
  ".nvimrc",
  ".nvim.lua",
  ".dir-locals.el",
  ".lldbinit",
  ".gdbinit",
  ".mcp.json",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".claude/hooks/x.sh",
  ".codex/config.toml",
  ".cursor/mcp.json",
  ".gemini/settings.json",
  ".opencode/plugin/x.ts",
  "opencode.json",
  ".windsurf/hooks.json",
  ".github/hooks/x.json",
  ".github/agents/x.md",
  ".github/copilot/settings.json",
  ".github/mcp.json",
  ".github/lsp.json",
  ".github/extensions/x/extension.mjs",
  ".github/plugin/plugin.json",
  ".substrate-profile",
  "package.json",
  ".npmrc",
  ".yarnrc.yml",
  ".yarnrc",
  ".yarn/releases/yarn-4.0.0.cjs",
  ".yarn/plugins/x.cjs",
  ".pnpmfile.cjs",
  ".pnp.cjs",
  "bunfig.toml",
  "deno.json",
  "node_modules/.bin/tool",
  "binding.gyp",
  ".eslintrc.js",
  "eslint.config.mjs",
  "vite.config.ts",
  ".prettierrc.cjs",
  "gulpfile.js",
  ".cargo/config.toml",
  ".cargo/config",
  "build.rs",
  "rust-toolchain.toml",
  ".venv/bin/python",
  ".venv/bin/activate",
  ".venv/lib/python3.12/site-packages/x.pth",
  "sitecustomize.py",
  "conftest.py",
  "setup.py",
  "pyproject.toml",
  "tox.ini",
  "noxfile.py",
  ".Rprofile",
  ".irbrc",
  "Gemfile",
  "Rakefile",
  "Vagrantfile",
  ".mvn/jvm.config",
  ".mvn/wrapper/maven-wrapper.properties",
  "mvnw",
  "gradlew",
  "build.gradle.kts",
  "gradle/wrapper/gradle-wrapper.properties",
  "pom.xml",
  "build.sbt",
  "mix.exs",
  "composer.json",
  "Directory.Build.props",
  "build.zig",
  "Makefile",
  "justfile",
  "Taskfile.yml",
  "CMakeLists.txt",
  "BUILD.bazel",
  "Dockerfile",
  "docker-compose.yml",
  "flake.nix",
  "shell.nix",
  "main.tf",
  "ansible.cfg",
  ".github/workflows/ci.yml",
  ".github/actions/x/action.yml",
  ".gitlab-ci.yml",
  ".circleci/config.yml",
  ".travis.yml",
  "azure-pipelines.yml",
  "Jenkinsfile",
  ".ssh/config",
];

/** Names that only look like those, and ordinary work. */
const PLAIN: readonly string[] = [
  "README.md",
  "AGENTS.md",
  "src/index.ts",
  "src/config.ts",
  "src/config/database.yaml",
  "src/gitconfig",
  "src/hooks/useState.ts",
  "src/hooks/index.ts",
  "src/venv.md",
  "src/bin/tool.rs",
  "docs/husky.md",
  ".bashrc.md",
  ".envrc-example",
  ".env.example.md",
  ".gitignore",
  ".gitkeep",
  ".git/objects/ab/cd",
  ".git/refs/heads/config-change",
  ".git/COMMIT_EDITMSG",
  ".git/index",
  ".git/modules/lib/index",
  ".vscode-notes",
  ".github/copilot-instructions.md",
  ".github/instructions/x.instructions.md",
  ".github/ISSUE_TEMPLATE/bug.md",
  ".github/lsp.json.md",
  "src/lsp.json",
  "src/extensions/x/extension.mjs",
  ".editorconfig",
  "Makefile.txt",
  "my-package.json",
  "package-lock.json",
  "yarn.lock",
  "Cargo.lock",
  "main.rs",
  "test/conftest.md",
  "path.python",
  "dist/app.js",
  "HEADER",
  "public/.well-known/x",
];

test("a file of each kind that some tool runs or loads by itself is told, at every depth", () => {
  expect(KINDS.length).toBeGreaterThan(64);
  expect(KINDS.filter((path) => !isAutorun(path))).toEqual([]);
  expect(KINDS.filter((path) => !isAutorun(`packages/deep/${path}`))).toEqual([]);
});

test("its twin: ordinary files, and names that only look alike, are not", () =>
  expect(PLAIN.filter((path) => isAutorun(path))).toEqual([]));

test("a link in the place of a folder of such files is told, and neither a folder there nor another link", () => {
  const folders = [
    ".hg",
    ".github",
    ".config",
    ".jj",
    ".jj/repo",
    ".cargo",
    "node_modules",
    ".venv",
    ".yarn",
  ];
  const told = (mode: number) =>
    [...folders, ...folders.map((path) => `packages/deep/${path}`)].filter((path) => isAutorun(path, mode));
  expect(told(constants.S_IFLNK | 0o777)).toHaveLength(2 * folders.length);
  expect(told(constants.S_IFDIR | 0o755)).toEqual([]);
  expect(told(0)).toEqual([]);
  const others = ["src", "repo", "my.hg", ".github2", "node_modules/react", ".git/modules/lib", ...PLAIN];
  expect(others.filter((path) => isAutorun(path, constants.S_IFLNK | 0o777))).toEqual([]);
});

test("the table has at least 64 rows, each pattern once, each row with a reason", () => {
  expect(RUN_LATER.length).toBeGreaterThanOrEqual(64);
  const paths = RUN_LATER.flatMap((row) => row.paths);
  expect(new Set(paths).size).toBe(paths.length);
  expect(RUN_LATER.filter(({ reason }) => reason.length < 10)).toEqual([]);
});

test("each pattern means in a listing what it means in a deny list, and holds below it only where it says so", () => {
  const rows = RUN_LATER.flatMap(({ paths }) => paths).map((pattern) => ({
    cover: coverOf(`/p/${pattern}`),
    below: pattern.endsWith("/**"),
  }));
  for (const path of [...KINDS, ...PLAIN]) {
    const covered = rows.some(
      ({ cover, below }) => cover.covers(`/p/${path}`) && (below || !cover.covers(dirname(`/p/${path}`))),
    );
    expect([path, covered]).toEqual([path, isAutorun(path)]);
  }
});

/** Every path in the project's folder that a row's patterns stand for, each `*` as a name. */
function inProject(patterns: readonly string[]): readonly string[] {
  return patterns.flatMap((pattern) =>
    parsePattern(pattern.replace("**/", "/p/"))
      .map((segments) =>
        segments.map((each) =>
          each.kind === "glob"
            ? ({ kind: "literal", name: each.pattern.replaceAll("*", "x") } as const)
            : each,
        ),
      )
      .map((segments) => pathOf(segments.filter(({ kind }) => kind === "literal"))),
  );
}

function deniedBy(name: string): readonly string[] {
  const folder = join(import.meta.dirname, "../../../../policies");
  const load = loadPolicy(join(folder, `${name}.yaml`), folder);
  if ("problems" in load) throw new Error(load.problems.map((problem) => problem.text).join("\n"));
  return fileLists(load.ok.document).deny_write.filter((path) => path.startsWith("$PROJECT/"));
}

test("what runs code in the project's own repository is what no list leaves out", () => {
  const rows = RUN_LATER.filter(({ denied }) => denied === "repositories").flatMap(({ paths }) => paths);
  const own = rows.map((path) => path.replace(/^\*\*\//, "$PROJECT/").replace(/\/\*\*$/, ""));
  expect(own).toEqual(expect.arrayContaining([...pathsOf(DENIED_WRITES)]));
});

describe.each(["aider", "claude-code", "codex", "copilot", "cursor", "gemini", "opencode", "strict"])(
  "%s",
  (policy) => {
    const denied = deniedBy(policy).map((path) => path.replace("$PROJECT", "/p"));

    test("denies what the table says that the agents' policies deny", () => {
      const covers = denied.map((path) => coverOf(path));
      const open = RUN_LATER.filter(({ denied: by }) => by === "agents")
        .flatMap(({ paths }) => inProject(paths))
        .filter((path) => !covers.some((cover) => cover.covers(path)));
      expect(open).toEqual([]);
    });

    test("denies nothing in the project that the table does not know", () => {
      const spelled = inProject(denied.map((path) => path.replace("/p/", "**/")));
      const unknown = spelled.filter((path) => !isAutorun(path.slice(3)) && !isAutorun(`${path.slice(3)}/x`));
      expect(unknown).toEqual([]);
    });
  },
);
