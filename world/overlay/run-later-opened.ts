import type { RunLater } from "./run-later.ts";

/** Files run when a person enters the folder, opens an editor there, or starts an agent. */
export const OPENED: readonly RunLater[] = [
  {
    paths: ["**/.envrc{,.local,.private}"],
    reason: "direnv runs it on entering the folder",
    denied: "agents",
  },
  { paths: ["**/.direnv/**"], reason: "direnv puts its programs on PATH" },
  {
    paths: [
      "**/{mise,.mise}{,.local}.toml",
      "**/{mise,.mise}/config{,.local}.toml",
      "**/.config/{mise.toml,mise/**}",
    ],
    reason: "mise sets variables and runs hooks on entering the folder",
    denied: "agents",
  },
  {
    paths: ["**/.mise/{tasks,hooks}/**", "**/{.mise-tasks,mise-tasks}/**"],
    reason: "mise runs these programs",
  },
  {
    paths: ["**/{.tool-versions,.rtx.toml,.prototools}"],
    reason: "says which program, in which folder, a bare name starts",
  },
  {
    paths: ["**/{.autoenv,.autoenv.zsh,.in,.out,.env.zsh}"],
    reason: "autoenv runs it on entering the folder",
  },
  {
    paths: [
      "**/.{bashrc,bash_profile,bash_login,bash_logout,bash_aliases,profile,inputrc}",
      "**/.{zshrc,zshenv,zprofile,zlogin,zlogout,zimrc,p10k.zsh}",
      "**/.{kshrc,mkshrc,cshrc,tcshrc,login,logout}",
      "**/{config.fish,.config/fish/**,config.nu,env.nu}",
    ],
    reason: "shells run them at start",
  },
  {
    paths: ["**/.tmux.conf", "**/{.tmuxinator,.smug}.{yml,yaml}", "**/.screenrc"],
    reason: "tmux and screen run its commands",
  },
  {
    paths: ["**/.vscode/**"],
    reason: "VS Code runs tasks and programs that its settings name",
    denied: "agents",
  },
  { paths: ["**/*.code-workspace"], reason: "names tasks and programs that VS Code runs", denied: "agents" },
  { paths: ["**/.idea/**"], reason: "JetBrains IDEs run its configurations", denied: "agents" },
  { paths: ["**/*.{iml,ipr,iws}"], reason: "a project file of JetBrains IDEs" },
  {
    paths: ["**/.devcontainer/**", "**/.devcontainer.json"],
    reason: "editors build and start its container, and run its commands on the host too",
    denied: "agents",
  },
  {
    paths: ["**/{.zed,.fleet,.nova,.helix}/**"],
    reason: "an editor's tasks and language servers",
    denied: "agents",
  },
  {
    paths: ["**/*.sublime-{project,build,settings}", "**/.{vs,settings}/**"],
    reason: "an editor's build programs",
  },
  {
    paths: ["**/.{exrc,nvimrc,nvim.lua,lvimrc,vimrc,gvimrc,local.vimrc}", "**/.vim/**"],
    reason: "Vim and Neovim run it in the folder where they start",
    denied: "agents",
  },
  { paths: ["**/.dir-locals{,-2}.el"], reason: "Emacs evaluates its values", denied: "agents" },
  {
    paths: ["**/.{emacs,emacs.d/init.el,spacemacs}", "**/.kakrc/**"],
    reason: "an editor's start-up file",
  },
  {
    paths: ["**/.{gdbinit,lldbinit,gdbearlyinit}", "**/.lldbinit-*", "**/*-gdb.{py,gdb,scm}"],
    reason: "debuggers run it in the folder where they start, or beside the program",
  },
  {
    paths: ["**/{.mcp,mcp}.json", "**/.mcp/**"],
    reason: "agents start the servers it names",
    denied: "agents",
  },
  {
    paths: [
      "**/.claude/{settings.json,settings.local.json,scheduled_tasks.json}",
      "**/.claude/{hooks,commands,agents,plugins}/**",
    ],
    reason: "permissions, hooks, programs and timed prompts of Claude Code",
    denied: "agents",
  },
  {
    paths: ["**/.claude/skills/**"],
    reason: "Claude Code starts the commands in it, also where it lies beside a file that it has read",
    denied: "agents",
    anywhere: true,
  },
  {
    paths: ["**/.agents/skills/*/agents/**"],
    reason: "Codex starts the servers that a skill's manifest names",
    denied: "agents",
  },
  {
    paths: ["**/.claude/**", "**/.claude-plugin/**"],
    reason: "Claude Code reads its settings and instructions from this folder",
  },
  { paths: ["**/.codex/**"], reason: "sandbox, approvals, hooks and servers of Codex", denied: "agents" },
  { paths: ["**/.cursor/**"], reason: "hooks, servers and permissions of Cursor", denied: "agents" },
  {
    paths: ["**/.cursor{rules,ignore}"],
    reason: "instructions for Cursor, and the files that Cursor may not read",
  },
  { paths: ["**/.gemini/**"], reason: "hooks, servers and extensions of Gemini CLI", denied: "agents" },
  {
    paths: ["**/.opencode/**", "**/opencode.{json,jsonc}"],
    reason: "permissions, servers and plugins of OpenCode",
    denied: "agents",
  },
  {
    paths: [
      "**/.{windsurf,kiro,amazonq,qwen,roo,cline,kilocode,continue,factory,augment,trae,junie,crush,amp,goose}/**",
      "**/{.crush,crush}.json",
      "**/.aider{.conf,.model.settings}.yml",
      "**/.aider.tags.cache.v*/**",
    ],
    reason: "hooks, servers and permissions of another agent, and a cache that runs code when it is read",
    denied: "agents",
  },
  {
    paths: ["**/.github/{hooks,agents,copilot,extensions,plugin}/**", "**/.github/{lsp,mcp}.json"],
    reason:
      "Copilot's hooks, servers, language servers, extensions, plugins and agents: it starts them by itself",
    denied: "agents",
  },
  {
    paths: ["**/.substrate-profile"],
    reason: "names the policy for commands in this folder",
    denied: "repositories",
  },
  {
    paths: ["**/.rvmrc", "**/{.autoenv_leave.zsh,.autoenv.leave,.env.leave}"],
    reason: "rvm and autoenv run it on entering or leaving the folder",
  },
  {
    paths: ["**/.{lazy.lua,nfnl.fnl,ycm_extra_conf.py,luacheckrc}"],
    reason: "editor plugins run it when a file beside it is opened",
  },
  {
    paths: ["**/{tmuxp,.tmuxp}.{yaml,yml,json}"],
    reason: "tmuxp runs its commands",
  },
  {
    paths: ["**/.openhands/{setup.sh,pre-commit.sh}"],
    reason: "OpenHands runs it when it starts or commits",
    denied: "agents",
  },
];
