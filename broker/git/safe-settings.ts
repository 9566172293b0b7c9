/**
 * Settings of a repository that a command may write: their values never are or name a program, and never lead git to
 * more settings or to hooks (git-config(1), Git 2.52). An allow list, because each release of git adds settings that
 * run code: an unlisted setting counts as code.
 *
 * Left out on purpose, despite their harmless look:
 * - `merge.tool`, `diff.tool`: git reads a shell script of that name, and a name may hold `../`.
 * - `pull.octopus`, `pull.twohead`, `branch.*.mergeOptions`, `rebase.strategy`: a merge strategy is a program
 *   `git-merge-NAME`.
 * - `init.templateDir`, `core.attributesFile`, `core.worktree`, `commit.template`: lead to files elsewhere.
 * - `core.sharedRepository`, `core.protectNTFS`, `core.protectHFS`, `http.sslVerify`: weaken protections.
 * - `remote.*.promisor`, `remote.*.partialCloneFilter`: even a read-only git command fetches missing objects from that
 *   remote.
 * - `remote.*.mirror`, `remote.*.push`, `remote.pushDefault`, `fetch.all`, values of `push.default` but `nothing`, `simple` and
 *   `current`: send or fetch more than a person typed, or to another branch.
 * - `extensions.*`: change which settings and objects count. `extensions.worktreeConfig` is judged by the settings it
 *   activates (settings.ts).
 * - `help.autoCorrect`: runs a command nobody typed. `log.showSignature`: runs `gpg.program`.
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

/** Sections where every key is a colour, or switches a hint. */
const WHOLE = new Set(["color", "advice"]);

type Value = (value: string) => boolean;

const any: Value = () => true;

/**
 * An address that git reaches by itself. `ext::`, any other `NAME::` and `NAME://` start the program `git-remote-NAME`,
 * and a word starting with `-` would be an option of ssh.
 */
export const isPlainAddress: Value = (value) =>
  !/^[A-Za-z0-9.+_-]+::/.test(value) &&
  !/^\s*-|:\/\/(?:[^/]*@)?-|^[^/]*@-/.test(value) &&
  (!value.includes("://") || /^(?:https?|ssh|git|file):\/\//.test(value)) &&
  !/\p{Cc}/u.test(value);

/** A branch's upstream remote: a plain name, or `.` meaning the repository itself. */
const remoteName: Value = (value) => value === "." || PLAIN_NAME.test(value);

/**
 * A sub-section becomes an argument of programs that git starts: a remote named `--upload-pack=…` would be an option of
 * the fetch that `git status` starts for a missing object.
 */
const PLAIN_NAME = /^[A-Za-z0-9_][\w.+@/#-]*$/;

/** `section.key` with a sub-section, which only limits the scope. */
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
  // Exactly the text of `git lfs install`: starts the host's git-lfs, if installed.
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
  // `[remote.origin]`, an old spelling of a sub-section.
  if (keys.length !== 1) return false;
  if (WHOLE.has(section)) return true;
  if (name === "push.default" && !/^(?:nothing|simple|current)$/i.test(value)) return false;
  if (subsection === undefined) return PLAIN.has(name);
  const isNamed = isOpenName(section) || PLAIN_NAME.test(subsection);
  return isNamed && (NAMED.get(name)?.(value) ?? false);
}

/** Whether sub-sections of a section name only a place or a file, never passed to a program. */
function isOpenName(section: string): boolean {
  return section === "lfs";
}
