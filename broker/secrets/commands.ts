/**
 * Secrets in the words of single programs, without a telling name before: `vault login V`, `zip -P V`, `tool <<< V`. Data: the
 * programs, and the words before the secret. Source: manuals.
 */
import { isReference, standsForAnother, VALUE } from "./values.ts";

/** The first group of a pattern is the kept text before the secret. */
export type CommandRule = {
  readonly kind: string;
  /** A text without any of these words cannot match. */
  readonly words: readonly string[];
  readonly pattern: RegExp;
  readonly isInnocent: (value: string, kept: string) => boolean;
};

/** Words of the same command, in between. */
const GAP = "(?:[^\\n|;&]{0,256}?\\s)?";
/** Before a subcommand: global options and their values. */
const SHORT_GAP = "(?:[^\\n|;&]{0,64}?\\s)?";
const S = "\\s{1,8}";
/** A word other than an option or a redirect. */
const OWN_WORD = `(?![-<>|&])${VALUE}`;
/** Nor `name=value`. */
const OPERAND = `(?!['"]?[A-Za-z_]{1,32}=)${OWN_WORD}`;
/** Endings of secret settings' names. */
const SETTING =
  "(?:password|passwd|passphrase|secret|token|credentials?|auth|requirepass|masterauth|(?:api|access|secret|private|account|license)[_-]?key)";

/** Programs; further words; the option with the secret as value. */
const OPTIONS: readonly (readonly [programs: string, words: string, option: string])[] = [
  ["az oc cf crane", "login", "-p"],
  ["twine poetry vsce ovsx", "(?:upload|publish)", "-p"],
  ["mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat", "", "-p"],
  ["cqlsh rabbitmqadmin useradd usermod", "", "-p"],
  ["dotnet", "nuget", "-[pk]"],
  ["security", "unlock-keychain", "-p"],
  ["security", "add-(?:generic|internet)-password", "-w"],
  ["supabase", "(?:link|db)", "-p"],
  ["ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapmodrdn ldapcompare", "", "-w"],
  ["ldappasswd", "", "-[as]"],
  ["sqlcmd bcp ipmitool zip unzip zipcloak", "", "-P"],
  ["ssh-keygen", "", "-[NP]"],
  ["hatch", "publish", "-a"],
  ["doctl", "auth", "-t"],
  ["glab", "auth", "-t"],
  ["uv", "publish", "-t"],
  ["vercel codecov influx", "", "-t"],
  ["openssl", "enc", "-[kK]"],
  ["openssl", "dgst", "-hmac"],
  ["netlify", "", "--auth"],
  ["gh", "secret", "(?:-b|--body)"],
  ["az", "secret", "--value"],
  ["aws", "put-parameter(?=[^\\n|;&]{0,512}SecureString)", "--value"],
  ["npm pnpm yarn gem", "", "--otp"],
  ["curl", "", "--oauth2-bearer"],
];

/** A program, and the text before a secret operand. */
const OPERANDS: readonly (readonly [program: string, before: string])[] = [
  ["vault", `login${S}(?:-(?!method)[a-z-]{1,32}${S}){0,4}`],
  ["vault", `operator${S}(?:unseal|rekey|generate-root)${S}`],
  ["cargo", `login${S}(?:--registry(?:${S}|=)\\S{1,64}${S})?`],
  ["snyk", `auth${S}`],
  ["ngrok", `(?:config${S}add-)?authtoken${S}`],
  ["nuget", `setapikey${S}`],
  ["bw", `unlock${S}`],
  ["bw", `login${S}[^\\s-]\\S{0,128}${S}`],
  ["cf", `auth${S}\\S{1,128}${S}`],
  ["travis", `encrypt${S}`],
  ["rclone", `obscure${S}`],
  ["rclone", `config${S}(?:create|update)\\s${GAP}[a-z_]{0,64}${SETTING}${S}`],
  ["ansible-vault", `encrypt_string${S}`],
  ["rabbitmqctl", `(?:add_user|change_password|authenticate_user)${S}\\S{1,128}${S}`],
  ["wpa_passphrase", `\\S{1,128}${S}`],
  ["redis-cli", `${GAP}(?:auth|AUTH)${S}`],
  ["mysqladmin", `${GAP}password${S}`],
  ["mc", `alias${S}set${S}\\S{1,64}${S}\\S{1,256}${S}\\S{1,128}${S}`],
  ["openssl", `passwd${S}(?:-(?:[156]|apr1|crypt|noverify)${S}){0,3}`],
  ["poetry", `config${S}pypi-token\\.\\S{1,64}${S}`],
  ["poetry", `config${S}http-basic\\.\\S{1,64}${S}\\S{1,128}${S}`],
  [
    "composer",
    `config${S}(?:-\\S{1,16}${S}){0,3}(?:github-oauth|gitlab-oauth|gitlab-token|bearer)\\.\\S{1,128}${S}`,
  ],
  ["composer", `config${S}(?:-\\S{1,16}${S}){0,3}http-basic\\.\\S{1,128}${S}\\S{1,128}${S}`],
  [
    "bundle",
    `config${S}(?:set${S})?(?:--(?:global|local)${S})?(?!mirror\\.|build\\.|local\\.)[a-z0-9-]{1,63}(?:\\.[a-z0-9-]{1,63}){1,8}${S}(?!https?:)`,
  ],
  ["nmcli", `${GAP}password${S}`],
  ["git", `config${S}(?:--[a-z-]{1,20}${S}){0,3}[A-Za-z0-9.-]{1,128}${SETTING}${S}`],
  ["consul", `kv${S}put${S}\\S{0,255}${SETTING}${S}`],
  ["etcdctl", `put${S}\\S{0,255}${SETTING}${S}`],
  ["doppler", `secrets${S}set${S}[A-Z][A-Z0-9_]{0,63}${S}`],
];

/** Options and words with which a program reads a secret from standard input. */
const INPUT_OPTIONS = "--(?:password-stdin|with-token|passphrase-fd|passwd-on-stdin|stdin|data-file=-)";
const TAKES_INPUT =
  `\\s${INPUT_OPTIONS}|\\bsudo\\s[^\\n|;&]{0,64}?-S\\b|\\b(?:chpasswd|cryptsetup)\\b|` +
  "\\bsecrets?\\s(?:create|set|put|add|versions\\sadd)\\b";
const WRITES = "(?:-[neE]{1,3}\\s{1,8}|['\"]?%s(?:\\\\n)?['\"]?\\s{1,8}){0,2}";
/** Names of public values in commands that store secrets. */
const OPEN = "(?!(?:user|username|level|host|port|url|region|mode|debug|name|env|mount|cas)=)";

function rule(words: string, source: string, kind = "program-password", flags = "g"): CommandRule {
  return { kind, words: words.split(" "), pattern: new RegExp(source, flags), isInnocent: standsForAnother };
}

export const COMMAND_RULES: readonly CommandRule[] = [
  ...OPTIONS.map(([programs, words, option]) => {
    const names = programs.replaceAll(" ", "|");
    const more = words === "" ? "" : `${SHORT_GAP}${words}\\s`;
    return rule(programs, `(\\b(?:${names})\\s${more}${GAP}${option}(?:${S}|=))${OWN_WORD}`);
  }),
  ...OPERANDS.map(([program, before]) => rule(program, `(\\b${program}${S}${before})${OPERAND}`)),
  // `npm config set //r/:_authToken V`, `aws configure set aws_secret_access_key V`.
  rule(
    "config configure CONFIG",
    `(\\bconfig(?:ure)?${S}(?:--)?set${S}(?:--?[a-z-]{1,20}${S}){0,3}['"]?[^\\s=]{0,128}?${SETTING}['"]?${S})${OPERAND}`,
    "program-password",
    "gi",
  ),
  // keytool and jarsigner accept several password options.
  rule("keytool jarsigner", `(\\s-(?:src|dest|new)?(?:store|key)pass${S})${OWN_WORD}`),
  rule(
    "htpasswd",
    `(\\bhtpasswd${S}-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}${S}(?:\\S{1,128}${S}){1,2})${VALUE}(?=\\s{0,8}(?:$|[\\n|;&]))`,
  ),
  rule("7z 7za 7zr 7zz rar unrar", `(\\b(?:7z[arz]?|rar|unrar)\\s${GAP}-h?p)(?=\\S)${VALUE}`),
  rule("xfreerdp freerdp wfreerdp", `(freerdp\\s${GAP}/p:)${VALUE}`),
  // A user, a separator, and the password.
  rule(
    "smbclient rpcclient rpc",
    `(\\b(?:smbclient|rpcclient|net\\srpc)\\s${GAP}-U${S}['"]?[^\\s%'"]{1,128}%)[^\\s'"]{1,512}`,
  ),
  rule(
    "sqlplus",
    `(\\bsqlplus\\s(?:-\\S{1,16}\\s){0,4}['"]?[A-Za-z0-9_]{1,64}/)[^\\s/@'"]{1,512}(?=@|['"\\s]|$)`,
  ),
  rule("lftp", `(\\blftp\\s${GAP}-u${S}['"]?[^\\s,'"]{1,128},)[^\\s'"]{1,512}`),
  rule(
    "http https xh",
    `(\\b(?:https?|xh)\\s${GAP}(?:-a|--auth)[\\s=]{1,4}['"]?[^\\s:'"$-][^\\s:'"]{0,127}:)[^\\s'"]{1,512}`,
  ),
  rule("etcdctl", `(\\betcdctl\\s${GAP}--user[\\s=]{1,4}['"]?[^\\s:'"$]{1,128}:)[^\\s'"]{1,512}`),
  rule("skopeo buildah podman", `(--(?:src-|dest-)?creds[\\s=]{1,4}['"]?[^\\s:'"$]{1,128}:)[^\\s'"]{1,512}`),
  rule("sonar-scanner mvn gradle", `(-Dsonar\\.login=)${VALUE}`),
  // Commands that store secrets under arbitrary names.
  rule(
    "kubectl oc",
    `(--from-literal[\\s=]{1,4}['"]?${OPEN}[A-Za-z0-9_.-]{1,128}=)(?<=\\bsecret\\s[^\\n|;&]{0,512})${VALUE}`,
  ),
  rule(
    "doppler fly flyctl supabase vault",
    `(\\b${OPEN}[A-Za-z][A-Za-z0-9_]{0,63}=)(?<=\\b(?:secrets\\s{1,8}set|vault\\s{1,8}kv\\s{1,8}(?:put|patch))\\s[^\\n|;&]{0,512})${VALUE}`,
  ),
  {
    ...rule(
      "curl",
      `(\\bcurl\\s${GAP}(?:-b|--cookie)[\\s=]{1,4}['"]?(?=[^\\s=;'"]{1,64}=))[^'"\\n]{1,8192}?(?=['"]|\\s{1,8}(?:-|https?:)|$)`,
      "cookie",
    ),
    isInnocent: isReference,
  },
  // Text piped by echo and printf.
  rule(
    "echo printf",
    `((?:^|[\\s;&|(])(?:echo|printf)\\s{1,8}${WRITES})${VALUE}(?=\\s{0,8}\\|[^\\n|;&]{0,200}?(?:${TAKES_INPUT}))`,
    "input",
  ),
  // SQL in a shell's quotes.
  rule(
    "identified IDENTIFIED password PASSWORD",
    "(\\b(?:identified\\s{1,8}(?:with\\s{1,8}\\S{1,64}\\s{1,8})?by|password)\\s{1,8})(?:\\\\?'[^']{1,512}'|\\\\?\"[^\"]{1,512}\")",
    "sql-password",
    "gi",
  ),
];

/** Here-strings are rare, and no word of the command indexes the rule. */
export const HERE_STRING_RULE: CommandRule = rule(
  "",
  `(<<<\\s{0,4})(?<=(?:${TAKES_INPUT})[^\\n|;&]{0,200})${VALUE}`,
  "input",
);

const BY_WORD: ReadonlyMap<string, readonly CommandRule[]> = byWord();

function byWord(): ReadonlyMap<string, readonly CommandRule[]> {
  const found = new Map<string, CommandRule[]>();
  for (const one of COMMAND_RULES)
    for (const word of one.words) found.set(word, [...(found.get(word) ?? []), one]);
  return found;
}

const WORDS = /[A-Za-z7][\w-]+/g;

/** Returns the rules for programs named in a text: word lookups cost less than a pattern of all programs. */
export function commandRulesFor(text: string): Iterable<CommandRule> {
  const rules = new Set<CommandRule>();
  for (const word of text.match(WORDS) ?? []) for (const one of BY_WORD.get(word) ?? []) rules.add(one);
  if (text.includes("<<<")) rules.add(HERE_STRING_RULE);
  return rules;
}
