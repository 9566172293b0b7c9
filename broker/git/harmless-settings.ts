/**
 * Settings that run no code in a repository made by a command: the settings writable in any repository
 * (safe-settings.ts), and more, since no person has worked in the new repository yet (git-config(1), Git 2.52;
 * git-svn(1), git-lfs-config(5), git-flow, scalar(1), gh). An unlisted setting counts as code: `hook.NAME.command` came
 * with a release of git.
 *
 * Left out on purpose, despite their harmless look:
 * - `format.outputDirectory`, `format.suffix`: `git format-patch` would write files of any name to any folder.
 * - `format.signatureFile`, `http.sslCert`, `http.sslKey`: a person's files, sent to another party.
 * - `http.delegation`: hands a person's Kerberos ticket to the server.
 * - `http.cookieFile`: with `http.saveCookies`, git writes the server's data into that file.
 * - `init.templateDir`, `submodule.*.gitdir`, `gitflow.path.*`: redirect to other hooks.
 * - `svn.config-dir`: Subversion's own settings name tunnels, which are programs.
 * - `lfs.standaloneTransferAgent`, `lfs.customTransfer.*`, `lfs.extension.*`, `lfs.storage`: programs, and a folder
 *   elsewhere.
 * - `mergetool.vimdiff.layout`, `gui.diffOpts`: commands of vim, and options of `git diff` that write files.
 * - `gc.repackFilterTo`, `fsmonitor.socketDir`: git writes there.
 * - `rebase.instructionFormat`: its text becomes lines of a rebase's to-do list, and `%nexec …` one that runs.
 * - `help.*`, `man.*`, `browser.*`, `instaweb.*`, `imap.*`, `gitcvs.*`, `completion.*`, `trace2.*`: never set in a
 *   repository.
 */
import { isHarmlessCommand } from "./commands.ts";
import type { GitSetting } from "./config.ts";
import { isPlainAddress, isSafe } from "./safe-settings.ts";

/** `section.key`. A sub-section only limits the scope: `http.https://example.org/.extraHeader`. */
const HARMLESS = new Set(
  Object.entries({
    add: "ignoreerrors usebuiltin",
    annex: "uuid version",
    blame:
      "blankboundary coloring date ignorerevsfile markignoredlines markunblamablelines showemail showroot",
    branch:
      "base gh-merge-base gk-associated-issues gk-last-accessed gk-last-modified gk-merge-base gk-merge-target gk-merge-target-user-defined github-pr-base-branch",
    bundle: "version mode heuristic creationtoken",
    checkout: "thresholdforparallelism",
    clean: "requireforce",
    clone: "filtersubmodules rejectshallow",
    column: "clean",
    commit: "template",
    commitgraph: "generationversion maxnewfilters readchangedpaths changedpaths changedpathsversion",
    core: "alternaterefsprefixes attributesfile checkroundtripencoding commitgraph createobject deltabasecachelimit excludesfile filesreflocktimeout fscache fsmonitorhookversion fsync fsyncmethod fsyncobjectfiles hidedotfiles ignorestat maxtreedepth multipackindex notesref packedgitlimit packedgitwindowsize packedrefstimeout prefersymlinkrefs sharedrepository splitindex usereplacerefs warnambiguousrefs worktree",
    credential: "interactive protectprotocol provider sanitizeprompt usehttppath username validate",
    credentialcache: "ignoresighup",
    credentialstore: "locktimeoutms",
    diff: "binary cachetextconv orderfile trustexitcode wordregex xfuncname",
    difftool: "guidefault trustexitcode",
    extensions:
      "compatobjectformat noop noop-v1 objectformat partialclone preciousobjects relativeworktrees worktreeconfig",
    fastimport: "unpacklimit",
    fetch: "all bundlecreationtoken negotiationalgorithm unpacklimit",
    format:
      "attach cc coverfromdescription coverletter encodeemailheaders filenamemaxlength forceinbodyfrom from headers mboxrd noprefix notes numbered pretty signature signoff subjectprefix thread to useautobase",
    gc: "aggressivedepth aggressivewindow logexpiry maxcruftsize repackfilter rerereresolved rerereunresolved",
    gerrit: "createchangeid",
    github: "user",
    gitreview: "branch host port project remote scheme username",
    gitweb: "category description owner url",
    gpg: "allowedsignersfile format mintrustlevel revocationfile",
    grep: "column extendedregexp fallbacktonoindex fullname linenumber patterntype threads",
    gui: "blamehistoryctx commitmsgwidth copyblamethreshold diffcontext displayuntracked encoding fastcopyblame fontdiff fontui gcwarning matchtrackingbranch maxfilesdisplayed maxrecentrepo newbranchtemplate pruneduringfetch recentrepo spellingdictionary stageuntracked tabsize trustmtime usettk warndetachedcommit",
    http: "curloptresolve emptyauth extraheader followredirects keepalivecount keepaliveidle keepaliveinterval lowspeedlimit lowspeedtime maxrequests maxretries maxretrytime minsessions noepsv pinnedpubkey postbuffer proactiveauth proxy proxyauthmethod retryafter savecookies schannelcheckrevoke schannelusesslcainfo sslbackend sslcainfo sslcapath sslcipherlist ssltry sslverify sslversion useragent version",
    hub: "host protocol",
    index: "recordendofindexentries recordoffsettable",
    init: "defaultobjectformat defaultrefformat",
    interactive: "singlekey",
    lfs: "activitytimeout basictransfersonly cachecredentials defaulttokenttl dialtimeout fetchrecentalways fetchrecentcommitsdays fetchrecentrefsdays fetchrecentremoterefs gitprotocol keepalive lockignoredfiles maxretries maxretrydelay maxverifies pruneoffsetdays pruneremotetocheck pruneverifyremotealways setlockablereadonly skipdownloaderrors sshtransfer tlstimeout tustransfers",
    log: "excludedecoration graphcolors initialdecorationset showsignature",
    lsrefs: "unborn",
    mailinfo: "scissors",
    mailmap: "blob file",
    maintenance: "auto autodetach",
    merge: "name recursive renormalize suppressdest verifysignatures",
    mergetool: "hasoutput hideresolved keeptemporaries trustexitcode useautomerge writetotemp",
    notes: "displayref mergestrategy rewritemode rewriteref",
    pack: "allowpackreuse compression deltacachelimit deltacachesize depth indexversion island islandcore packsizelimit preferbitmaptips readreverseindex threads usebitmapboundarytraversal usebitmaps usepathwalk usesparse window windowmemory writebitmaphashcache writebitmaplookuptable writebitmaps writereverseindex",
    promisor: "quiet",
    protocol: "version",
    push: "pushoption usebitmaps",
    rebase: "backend maxlabellength",
    receive:
      "advertiseatomic advertisepushoptions autogc certnonceseed certnonceslop denycurrentbranch denydeletecurrent denydeletes denynonfastforwards fsckobjects hiderefs keepalive maxinputsize shallowupdate unpacklimit updateserverinfo",
    remote:
      "annex-ignore annex-uuid mirror partialclonefilter projectname promisor proxy proxyauthmethod push review serveroption",
    repack:
      "cruftdepth cruftthreads cruftwindow cruftwindowmemory packkeptobjects updateserverinfo usedeltabaseoffset usedeltaislands writebitmaps",
    revert: "reference",
    safe: "barerepository directory",
    sendemail:
      "annotate assume8bitencoding bcc cc chainreplyto composeencoding confirm from identity multiedit signedoffbycc smtpauth smtpbatchsize smtpdomain smtpencryption smtprelogindelay smtpserverport smtpuser suppresscc suppressfrom thread to transferencoding validate xmailer",
    sparse: "expectfilesoutsideofpatterns",
    splitindex: "maxpercentchange sharedindexexpire",
    ssh: "variant",
    status: "renamelimit",
    submodule: "alternateerrorstrategy alternatelocation",
    svn: "addauthorfrom authorsfile brokensymlinkworkaround findcopiesharder followparent localtime nometadata pathnameencoding pushmergeinfo rewriteroot rewriteuuid rmdir uselogauthor usesvmprops usesvnsyncprops username",
    "svn-remote":
      "automkdirs branches branches-maxrev fetch ignore-paths ignore-refs include-paths nometadata rewriteroot rewriteuuid tags tags-maxrev usesvmprops usesvnsyncprops uuid",
    tar: "umask",
    trailer: "ifexists ifmissing key separators where",
    transfer: "advertisesid bundleuri credentialsinurl fsckobjects hiderefs unpacklimit",
    uploadarchive: "allowunreachable",
    uploadpack:
      "advertisebundleuris allowanysha1inwant allowfilter allowreachablesha1inwant allowrefinwant allowsidebandall allowtipsha1inwant hiderefs keepalive",
    versionsort: "prereleasesuffix suffix",
    worktree: "userelativepaths",
  }).flatMap(([section, keys]) => keys.split(" ").map((key) => `${section}.${key}`)),
);

/**
 * Sections where every key is a log line format, the severity of a broken object, or an allowed partial clone filter.
 */
const WHOLE = new Set(["pretty", "fsck", "uploadpackfilter"]);

/** `section.subsection` with any key. */
const WHOLE_BELOW = new Set([
  "gitflow.branch",
  "gitflow.prefix",
  "receive.fsck",
  "fetch.fsck",
  "notes.rewrite",
]);

/** Addresses that git contacts by itself for an object missing in a partial clone; `git log` is enough. */
const ADDRESSES = new Set([
  ...["url", "pushurl", "pushdefault", "lfsurl", "lfspushurl"].map((key) => `remote.${key}`),
  ...["remote", "pushremote"].map((key) => `branch.${key}`),
  "submodule.url",
  "lfs.url",
  "lfs.pushurl",
  "bundle.uri",
  "fetch.bundleuri",
]);

/** Keys that rewrite an address; the sub-section is the beginning of the new one. */
const REWRITES = new Set(["url.insteadof", "url.pushinsteadof"]);

/**
 * Beginnings that say by themselves how git reaches the address, whatever stands behind them: `e` before `xt::COMMAND` would not.
 */
const BEGINNING = /^(?:https?:\/\/|(?:ssh|git):\/\/[^/]+\/|file:\/\/\/|[\w.-]+@[\w.-]+:|\.{0,2}\/)/;

/** Tools whose name selects a script file read by git. */
const TOOLS = new Set(["merge.tool", "merge.guitool", "diff.tool", "diff.guitool"]);

/**
 * Git commands that only show or record, with options without values: other commands start programs, write files or
 * change settings.
 */
const PLAIN_ALIAS =
  /^(?:status|branch|commit|log|diff|show|checkout|switch|add|stash|remote|tag|shortlog|restore|reset)(?: (?:-[a-zA-Z]|--(?:oneline|graph|all|decorate|short|branch|cached|staged|stat|name-only|name-status|verbose|amend|no-edit|abbrev-commit|hard|soft)))*$/;

const MERGE_OPTION =
  /^--(?:no-)?(?:commit|edit|ff|ff-only|gpg-sign|log|overwrite-ignore|rerere-autoupdate|signoff|squash|stat|verify-signatures)$/;

type Value = (value: string) => boolean;

const words =
  (pattern: RegExp): Value =>
  (value) =>
    value.split(/\s+/).every((word) => pattern.test(word));

const VALUES: ReadonlyMap<string, Value> = new Map([
  ["branch.mergeoptions", words(MERGE_OPTION)],
  ["extensions.refstorage", (value) => value === "files" || value === "reftable"],
  ["http.cookiefile", (value) => value === ""],
  ["submodule.update", (value) => !value.startsWith("!")],
  // Each value is a group of remotes, and becomes words of the `git fetch` started by `git remote update`.
  ["remotes", words(/^[\w.][\w./@#-]*$/)],
  ["svn-remote.url", isSubversion],
  ["svn-remote.pushurl", isSubversion],
  ["svn-remote.commiturl", isSubversion],
]);

/**
 * Whether the setting makes git run a program, or read settings, chosen by the setting's author. An unknown setting
 * counts as code.
 */
export function runsCode(setting: GitSetting): boolean {
  const { name, subsection, value } = setting;
  const [section = "", key, more] = name.split(".");
  // `[remote.origin]`, an old spelling of a sub-section.
  if (key === undefined || more !== undefined) return true;
  // A remote's name becomes an argument of commands started by git: `--upload-pack=…` would be an option.
  if (subsection?.startsWith("-") === true || /\p{Cc}/u.test(subsection ?? "")) return true;
  if (isSafe(setting) || HARMLESS.has(name) || WHOLE.has(section)) return false;
  if (WHOLE_BELOW.has(`${section}.${subsection ?? ""}`)) return false;
  if (ADDRESSES.has(name)) return !isPlainAddress(value);
  if (REWRITES.has(name)) return !(BEGINNING.test(subsection ?? "") && isPlainAddress(subsection ?? ""));
  if (TOOLS.has(name)) return value.includes("/");
  // A repository's alias overrides a person's alias of the same name, and could contain `-c core.pager=…`.
  if (section === "alias") return !PLAIN_ALIAS.test(value);
  const isFine = VALUES.get(name) ?? VALUES.get(section);
  if (isFine !== undefined) return !isFine(value);
  // A branch or submodule name may hold characters that `isSafe` refuses.
  const others = subsection === undefined ? [] : [undefined, "x"];
  if (others.some((other) => isSafe({ ...setting, subsection: other }))) return false;
  return !isHarmlessCommand(setting);
}

/** Whether Subversion contacts the address itself: `svn+NAME://` starts a tunnel named in Subversion's own settings. */
function isSubversion(value: string): boolean {
  return /^(?:https?|svn|svn\+ssh|file):\/\/(?!(?:[^/]*@)?-)[^\p{Cc}]*$/u.test(value);
}
