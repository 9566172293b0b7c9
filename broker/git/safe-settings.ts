/**
 * Settings of a repository that a command may write: no value of theirs is a program, names one, or leads git to more settings or
 * to hooks (git-config(1), Git 2.52). A list of what is allowed, because what runs code is a list that grows with each release:
 * what is not here counts as code.
 *
 * Left out on purpose, although it looks harmless:
 * - `merge.tool`, `diff.tool`: git reads a shell script of that name, and a name may hold `../`.
 * - `pull.octopus`, `pull.twohead`, `branch.*.mergeOptions`, `rebase.strategy`: a merge strategy is a program `git-merge-NAME`.
 * - `init.templateDir`, `core.attributesFile`, `core.worktree`, `commit.template`: they lead to files elsewhere.
 * - `core.sharedRepository`, `core.protectNTFS`, `core.protectHFS`, `http.sslVerify`: they open what is closed.
 * - `remote.*.promisor`, `remote.*.partialCloneFilter`: a git that only looks fetches what is missing from there, by itself.
 * - `remote.*.mirror`, `remote.*.push`, `remote.pushDefault`, `fetch.all`: they send or fetch more than a person types.
 * - `extensions.*`: they change which settings and objects count. `extensions.worktreeConfig` is judged by the settings that it
 *   lets count (git-settings.ts).
 * - `help.autoCorrect`: it runs what was not typed. `log.showSignature`: it runs `gpg.program`.
 */
import type { GitSetting } from "./config.ts";

/** `section.key` without a sub-section. */
const PLAIN = new Set(
  Object.entries({
    user: "name email useconfigonly signingkey",
    author: "name email",
    committer: "name email",
    core: "filemode bare repositoryformatversion logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath abbrev compression loosecompression bigfilethreshold preloadindex untrackedcache sparsecheckout sparsecheckoutcone commentchar commentstring whitespace longpaths trustctime checkstat",
    branch: "autosetupmerge autosetuprebase sort",
    push: "default autosetupremote followtags gpgsign recursesubmodules useforceifincludes negotiate",
    pull: "rebase ff",
    fetch: "prune prunetags parallel recursesubmodules fsckobjects writecommitgraph output showforcedupdates",
    init: "defaultbranch",
    clone: "defaultremotename",
    commit: "gpgsign verbose cleanup status",
    tag: "gpgsign sort forcesignannotated",
    merge:
      "conflictstyle ff log renamelimit renames directoryrenames autostash stat verbosity branchdesc defaulttoupstream",
    rebase:
      "autosquash autostash stat updaterefs missingcommitscheck abbreviatecommands reschedulefailedexec forkpoint rebasemerges",
    diff: "algorithm renames renamelimit colormoved colormovedws context interhunkcontext mnemonicprefix noprefix submodule wserrorhighlight indentheuristic ignoresubmodules statgraphwidth relative dirstat suppressblankempty autorefreshindex",
    log: "date decorate follow abbrevcommit showroot mailmap diffmerges",
    status:
      "showuntrackedfiles short branch relativepaths showstash renames submodulesummary aheadbehind displaycommentprefix",
    stash: "showpatch showstat showincludeuntracked",
    submodule: "recurse active fetchjobs propagatebranches",
    rerere: "enabled autoupdate",
    gc: "auto autodetach autopacklimit bigpackthreshold packrefs pruneexpire reflogexpire reflogexpireunreachable worktreepruneexpire writecommitgraph cruftpacks",
    maintenance: "auto strategy",
    index: "version threads sparse skiphash",
    feature: "manyfiles experimental",
    apply: "whitespace ignorewhitespace",
    am: "keepcr threeway",
    checkout: "defaultremote guess workers",
    worktree: "guessremote",
    column: "ui branch status tag",
    i18n: "commitencoding logoutputencoding",
    http: "postbuffer version lowspeedlimit lowspeedtime",
    mergetool: "keepbackup prompt",
    difftool: "prompt",
    gui: "wmstate geometry",
    lfs: "repositoryformatversion fetchinclude fetchexclude concurrenttransfers locksverify batch allowincompletepush",
  }).flatMap(([section, keys]) => keys.split(" ").map((key) => `${section}.${key}`)),
);

/** Sections in which each key is a colour, or whether to give a hint. */
const WHOLE = new Set(["color", "advice"]);

type Value = (value: string) => boolean;

const any: Value = () => true;

/**
 * An address that git reaches by itself: `ext::`, every other `NAME::` and `NAME://` starts the program `git-remote-NAME`, and a word
 * that begins with `-` would be an option of ssh.
 */
export const isPlainAddress: Value = (value) =>
  !/^[A-Za-z0-9.+_-]+::/.test(value) &&
  !/^\s*-|:\/\/(?:[^/]*@)?-|^[^/]*@-/.test(value) &&
  (!value.includes("://") || /^(?:https?|ssh|git|file):\/\//.test(value)) &&
  !/\p{Cc}/u.test(value);

/** The remote that a branch follows: a name, or `.` for the repository itself. */
const remoteName: Value = (value) => value === "." || PLAIN_NAME.test(value);

/**
 * A sub-section is a word that git hands to programs of its own: a remote called `--upload-pack=…` is an option of the fetch that a
 * `git status` starts where an object is missing.
 */
const PLAIN_NAME = /^[A-Za-z0-9_][\w.+@/#-]*$/;

/** `section.key` with a sub-section between them, which says only for what. */
const NAMED: ReadonlyMap<string, Value> = new Map([
  ...["url", "pushurl"].map((key) => [`remote.${key}`, isPlainAddress] as const),
  ...words(
    "remote",
    "fetch tagopt prune prunetags skipdefaultupdate skipfetchall followremotehead gh-resolved",
  ),
  ...["remote", "pushremote"].map((key) => [`branch.${key}`, remoteName] as const),
  ...words("branch", "merge rebase description vscode-merge-base github-pr-owner-number"),
  ["submodule.url", isPlainAddress],
  ...words("submodule", "active branch ignore fetchrecursesubmodules shallow"),
  ["submodule.update", (value) => ["checkout", "rebase", "merge", "none"].includes(value)],
  ...words("lfs", "access locksverify"),
  ...words("maintenance", "enabled schedule"),
  // What `git lfs install` writes, word for word: it starts git-lfs, which the host has or has not.
  ["filter.clean", (value) => value === "git-lfs clean -- %f"],
  ["filter.smudge", (value) => /^git-lfs smudge (?:--skip )?-- %f$/.test(value)],
  ["filter.process", (value) => /^git-lfs filter-process(?: --skip)?$/.test(value)],
  ["filter.required", any],
]);

function words(section: string, keys: string): readonly (readonly [string, Value])[] {
  return keys.split(" ").map((key) => [`${section}.${key}`, any] as const);
}

/** Whether a command may write the setting. */
export function isSafe({ name, subsection, value }: GitSetting): boolean {
  const [section = "", ...keys] = name.split(".");
  // `[remote.origin]`, an old way to write a sub-section.
  if (keys.length !== 1) return false;
  if (WHOLE.has(section)) return true;
  if (subsection === undefined) return PLAIN.has(name);
  const isNamed = isOpenName(section) || PLAIN_NAME.test(subsection);
  return isNamed && (NAMED.get(name)?.(value) ?? false);
}

/** These name a place or a file, which git hands to no program. */
function isOpenName(section: string): boolean {
  return section === "lfs";
}
