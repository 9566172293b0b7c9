/**
 * Settings of a repository that a command made which run nothing: those that a command may write in any repository
 * (git-safe-settings.ts), and more, because nobody has worked with others there before (git-config(1), Git 2.52; git-svn(1),
 * git-lfs-config(5), git-flow, scalar(1), gh). What is not here counts as code: `hook.NAME.command` came with a release of git.
 *
 * Left out on purpose, although it looks harmless:
 * - `format.outputDirectory`, `format.suffix`: a `git format-patch` writes files of any name to any folder.
 * - `format.signatureFile`, `http.sslCert`, `http.sslKey`: files of a person's, sent to somebody else.
 * - `http.delegation`: it hands a person's ticket (Kerberos) to the server.
 * - `http.cookieFile`: with `http.saveCookies`, git writes what a server sends into that file.
 * - `init.templateDir`, `submodule.*.gitdir`, `gitflow.path.*`: they lead to other hooks.
 * - `svn.config-dir`: Subversion's own settings name tunnels, which are programs.
 * - `lfs.standaloneTransferAgent`, `lfs.customTransfer.*`, `lfs.extension.*`, `lfs.storage`: programs, and a folder elsewhere.
 * - `mergetool.vimdiff.layout`, `gui.diffOpts`: commands of vim, and options of `git diff` that write files.
 * - `gc.repackFilterTo`, `fsmonitor.socketDir`: git writes there.
 * - `help.*`, `man.*`, `browser.*`, `instaweb.*`, `imap.*`, `gitcvs.*`, `completion.*`, `trace2.*`: nobody sets them in a repository.
 */
import { isHarmlessCommand } from "./commands.ts";
import type { GitSetting } from "./config.ts";
import { isPlainAddress, isSafe } from "./safe-settings.ts";

/** `section.key`, also with a sub-section, which says only for what: `http.https://example.org/.extraHeader`. */
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
    rebase: "backend instructionformat maxlabellength",
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

/** Sections in which each key is a format of a log's lines, how bad a broken object is, or what a partial clone may leave out. */
const WHOLE = new Set(["pretty", "fsck", "uploadpackfilter"]);

/** `section.subsection`: any key below it. */
const WHOLE_BELOW = new Set([
  "gitflow.branch",
  "gitflow.prefix",
  "receive.fsck",
  "fetch.fsck",
  "notes.rewrite",
]);

/** Where git goes to by itself, for an object that a partial clone lacks: a `git log` there is enough. */
const ADDRESSES = new Set([
  ...["url", "pushurl", "pushdefault", "lfsurl", "lfspushurl"].map((key) => `remote.${key}`),
  ...["remote", "pushremote"].map((key) => `branch.${key}`),
  "submodule.url",
  "lfs.url",
  "lfs.pushurl",
  "bundle.uri",
  "fetch.bundleuri",
]);

/** They put another address in the place of one; theirs is the sub-section. */
const REWRITES = new Set(["url.insteadof", "url.pushinsteadof"]);

/** Tools whose name is a file that git's own scripts read. */
const TOOLS = new Set(["merge.tool", "merge.guitool", "diff.tool", "diff.guitool"]);

/** A command of git that only shows or records, with options that take no value: others start programs, write files or set settings. */
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
  // Each value is a group of remotes: words of the `git fetch` that a `git remote update` starts.
  ["remotes", words(/^[\w.][\w./@#-]*$/)],
  ["svn-remote.url", isSubversion],
  ["svn-remote.pushurl", isSubversion],
  ["svn-remote.commiturl", isSubversion],
]);

/** Whether git would run what whoever wrote the setting chose, or read it from elsewhere. What nobody knows counts as code. */
export function runsCode(setting: GitSetting): boolean {
  const { name, subsection, value } = setting;
  const [section = "", key, more] = name.split(".");
  // `[remote.origin]`, an old way to write a sub-section.
  if (key === undefined || more !== undefined) return true;
  // A remote's name is a word of the commands that git starts: `--upload-pack=…` is an option there.
  if (subsection?.startsWith("-") === true || /\p{Cc}/u.test(subsection ?? "")) return true;
  if (isSafe(setting) || HARMLESS.has(name) || WHOLE.has(section)) return false;
  if (WHOLE_BELOW.has(`${section}.${subsection ?? ""}`)) return false;
  if (ADDRESSES.has(name)) return !isPlainAddress(value);
  if (REWRITES.has(name)) return !isPlainAddress(subsection ?? "");
  if (TOOLS.has(name)) return value.includes("/");
  // A person's own alias of that name counts for less, and `-c core.pager=…` may stand in it.
  if (section === "alias") return !PLAIN_ALIAS.test(value);
  const isFine = VALUES.get(name) ?? VALUES.get(section);
  if (isFine !== undefined) return !isFine(value);
  // The name of a branch or a submodule may hold letters that isSafe does not know.
  const others = subsection === undefined ? [] : [undefined, "x"];
  if (others.some((other) => isSafe({ ...setting, subsection: other }))) return false;
  return !isHarmlessCommand(setting);
}

/** `svn+NAME://` starts the tunnel that Subversion's own settings name. */
function isSubversion(value: string): boolean {
  return /^(?:https?|svn|svn\+ssh|file):\/\/(?!(?:[^/]*@)?-)[^\p{Cc}]*$/u.test(value);
}
