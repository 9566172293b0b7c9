import type { RunLater } from "./run-later.ts";

/** All names of githooks(5). */
const HOOKS =
  "{applypatch-msg,pre-applypatch,post-applypatch,pre-commit,pre-merge-commit,prepare-commit-msg,commit-msg,post-commit,pre-rebase,post-checkout,post-merge,pre-push,pre-receive,update,proc-receive,post-receive,post-update,reference-transaction,push-to-checkout,pre-auto-gc,post-rewrite,sendemail-validate,fsmonitor-watchman,post-index-change}";

/** Files run when a person inspects a repository, commits or fetches. */
export const REPOSITORIES: readonly RunLater[] = [
  { paths: ["**/.git/hooks/**"], reason: "git runs these programs by itself", denied: "repositories" },
  {
    paths: ["**/.git/config"],
    reason: "names pagers, editors, filters, aliases, helpers and monitors, which git runs",
    denied: "repositories",
  },
  {
    paths: ["**/.git/config.worktree"],
    reason: "a second git config, which git reads after the first",
    denied: "repositories",
  },
  {
    paths: ["**/.git/commondir"],
    reason: "says in which other folder git finds hooks and config",
    denied: "repositories",
  },
  {
    paths: ["**/.git/modules/**/{config,config.worktree,commondir}", "**/.git/modules/**/hooks/**"],
    reason: "the git folder of a submodule has hooks and settings of its own",
    denied: "repositories",
  },
  {
    paths: ["**/.git/worktrees/*/{config,config.worktree,commondir}", "**/.git/worktrees/*/hooks/**"],
    reason: "the folder of a worktree leads git to hooks and settings",
    denied: "repositories",
  },
  {
    paths: ["**/.git"],
    reason: "a file or a link of that name leads git to another folder's hooks and config",
  },
  { paths: ["**/.git/worktrees/*/gitdir"], reason: "says which working tree belongs to the git folder" },
  {
    paths: ["**/.git/info/attributes"],
    reason: "switches on filters and diff programs, and no 'git diff' shows the file",
  },
  {
    paths: ["**/.git/{rebase-merge,rebase-apply,sequencer}/**"],
    reason: "lists the commands that an unfinished rebase runs when continued",
  },
  {
    paths: ["**/*.git/{config,config.worktree,commondir}", "**/*.git/hooks/**"],
    reason: "a bare repository: git takes its programs from there",
  },
  {
    paths: ["**/{HEAD,config,config.worktree,commondir}"],
    reason: "beside objects and refs, it makes its folder a git folder, whose settings git reads there",
  },
  { paths: [`**/hooks/${HOOKS}`], reason: "a git hook, in a bare repository or where core.hooksPath leads" },
  {
    paths: ["**/.gitconfig{,.local}", "**/.config/git/{config,attributes}"],
    reason: "git's settings, if the folder is a home folder or an include names the file",
  },
  {
    paths: ["**/.gitmodules"],
    reason: "names the repositories that git fetches into the working tree, and how git updates them",
  },
  { paths: ["**/.gitattributes"], reason: "switches on filters, diff and merge programs" },
  { paths: ["**/.husky/**"], reason: "husky points git's hooks here", denied: "agents" },
  {
    paths: ["**/{.githooks,.git-hooks,.git_hooks}/**"],
    reason: "core.hooksPath often names this folder",
    denied: "agents",
  },
  {
    paths: ["**/.pre-commit-config.{yaml,yml}"],
    reason: "names programs that pre-commit runs at every commit",
    denied: "agents",
  },
  {
    paths: ["**/.pre-commit-hooks.yaml"],
    reason: "names programs that pre-commit runs in the repositories that use this one",
  },
  {
    paths: ["**/{lefthook,.lefthook}{,-local}.{yml,yaml,json,jsonc,toml}"],
    reason: "names programs that lefthook runs at every commit",
    denied: "agents",
  },
  {
    paths: ["**/.lefthook{,-local}/**"],
    reason: "scripts that lefthook runs at every commit",
    denied: "agents",
  },
  {
    paths: ["**/.overcommit.yml"],
    reason: "names programs that overcommit runs at every commit",
    denied: "agents",
  },
  {
    paths: [
      "**/{.lintstagedrc,.simple-git-hooks}{,.json,.js,.cjs,.mjs,.ts,.yaml,.yml}",
      "**/lint-staged.config.{js,cjs,mjs,ts}",
      "**/simple-git-hooks.{js,cjs,json}",
    ],
    reason: "names programs that commit hooks run",
  },
  {
    paths: ["**/{commitlint.config,.commitlintrc}.{js,cjs,mjs,ts,cts}", "**/.czrc"],
    reason: "the commit-msg hook loads it as a program",
  },
  {
    paths: ["**/.hg/{hgrc,hgrc-not-shared,hgrc-local}"],
    reason: "Mercurial runs the hooks, aliases and extensions it names",
    denied: "agents",
  },
  {
    paths: ["**/{.sl,.git/sl}/config"],
    reason: "Sapling runs the hooks, aliases and programs that it names",
    denied: "agents",
  },
  {
    paths: ["**/.jj/repo/config.toml", "**/.jj/workspace-config.toml"],
    reason: "Jujutsu runs the editors, tools and monitors it names",
    denied: "agents",
  },
  {
    paths: ["**/.svn/{wc.db,hooks/**}", "**/.bzr/branch/branch.conf", "**/.fslckout"],
    reason: "says where another version control system finds hooks and settings",
  },
  {
    paths: [
      "**/.huskyrc{,.js,.json,.yaml,.yml}",
      "**/{captainhook.json,grumphp.yml,grumphp.yml.dist,prek.toml,hk.pkl}",
    ],
    reason: "names programs that commit hooks run",
    denied: "agents",
  },
  {
    paths: ["**/.trunk/**"],
    reason: "trunk runs the tools and actions it names at every commit",
    denied: "agents",
  },
];
