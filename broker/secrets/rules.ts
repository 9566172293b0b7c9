/** Credentials recognised only by their context: a name, a header, a program's option. */
import { SECRET_NAME } from "./kinds.ts";
import { isReference, looksMadeUp, standsForAnother, VALUE } from "./values.ts";

/** The first group of a pattern is the kept text before the secret. */
export type SecretRule = {
  readonly kind: string;
  /** A necessary condition for a match: tested in a tenth of the time, and false for most commands. */
  readonly hint: RegExp;
  readonly pattern: RegExp;
  /** Whether a value is no secret: a variable's name, a number, a keyword of a syntax. */
  readonly isInnocent?: (value: string, kept: string) => boolean;
};

const BEFORE_NAME = "(?:^|[\\s'\";&|(?{,=:\\[])";

/** For JSON inside a quoted word. */
const SLASHES = "\\\\{0,2}";

/** Options without a value: the next word is another option or operand. */
const NO_VALUE =
  /--?(?:with|ask|no|prompt|show|use|force|reset|change|generate|save|remember|skip)-[a-z-]{1,40}\s+$/i;

/** Names of references to secrets stored elsewhere. */
const ELSEWHERE = /existing[_-]?secret\W*$/i;

/** Names of a folder or a result when alone; before `=`, or as an option, names of a password. */
const MAYBE_INNOCENT = /(?:^|[^A-Za-z0-9_.-])(?:pwd|oldpwd|pw)\W*$|(?:^|[^A-Za-z0-9_.-])pass['"]?\s*:\s*$/i;

function isNoSecret(value: string, kept: string): boolean {
  const isNamed = MAYBE_INNOCENT.test(kept) || NO_VALUE.test(kept) || ELSEWHERE.test(kept);
  return isNamed || standsForAnother(value);
}

const NAMED = /pass|pw|secret|token|credential|key|_auth|_session|_pat/i;

export const RULES: readonly SecretRule[] = [
  {
    kind: "private-key",
    hint: /PRIVATE KEY/,
    pattern:
      /()-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]{0,16384}?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  {
    kind: "webhook",
    hint: /https:\/\//,
    pattern:
      /(https:\/\/(?:hooks\.slack\.com\/(?:services|workflows)|discord(?:app)?\.com\/api\/webhooks|[a-z0-9-]{1,63}\.webhook\.office\.com\/webhookb2)\/)[A-Za-z0-9_@/-]{20,300}/g,
  },
  {
    kind: "authorization",
    hint: /authorization/i,
    pattern:
      /(\b(?:proxy-)?authorization['"]?\s{0,8}[:=]\s{0,8}['"]?(?:bearer|basic|token|bot|apikey|digest|negotiate)\s{1,8})[^\s'"]{1,8192}/gi,
    isInnocent: isReference,
  },
  {
    kind: "authorization",
    hint: /authorization/i,
    // Without a scheme, the whole value is secret.
    pattern:
      /(\b(?:proxy-)?authorization\s{0,8}:\s{0,8})(?!['"\s]|(?:bearer|basic|token|bot|apikey|digest|negotiate|aws4-hmac-sha256)\s)[^\s'"]{6,8192}/gi,
    isInnocent: isReference,
  },
  {
    kind: "cookie",
    hint: /cookie:/i,
    pattern: /(\b(?:set-)?cookie:\s{0,8})[^\s'"][^'"\n]{0,8192}/gi,
    isInnocent: isReference,
  },
  {
    kind: "url-password",
    hint: /:\/\//,
    pattern: /(\b[a-z][a-z0-9+.-]{0,31}:\/\/[^\s/:@'"]{0,128}:)[^\s/@'"]{1,512}(?=@)/gi,
    isInnocent: isReference,
  },
  {
    kind: "url-password",
    hint: /https?:\/\//i,
    // `https://TOKEN@host`, `https://TOKEN:x-oauth-basic@host`: no user has such a name.
    pattern:
      /(\bhttps?:\/\/)[A-Za-z0-9_.~%+-]{12,255}(?=(?::(?:x-oauth-basic|\[redacted:url-password\])?)?@)/gi,
    isInnocent: (value) => !looksMadeUp(value),
  },
  {
    kind: "named-secret",
    hint: NAMED,
    pattern: new RegExp(
      `(${BEFORE_NAME}(?:--?)?${SECRET_NAME}\\]?${SLASHES}['"]?\\s{0,8}(?:=|:(?=[\\s'"\\\\]))\\s{0,8}${SLASHES})${VALUE}`,
      "gi",
    ),
    isInnocent: isNoSecret,
  },
  {
    kind: "named-secret",
    hint: NAMED,
    pattern: new RegExp(`((?:^|\\s)--?${SECRET_NAME}\\s{1,8})(?![-<>|&])${VALUE}`, "gi"),
    isInnocent: isNoSecret,
  },
  {
    kind: "named-secret",
    hint: /\bx-/i,
    pattern: /(\bx-[a-z-]{0,40}(?:token|key|secret|password|auth)\s{0,8}:\s{0,8})[^\s'"]{1,4096}/gi,
    isInnocent: isReference,
  },
  // Programs with secret values behind unspecific options.
  {
    kind: "program-password",
    hint: /\bcurl\s/,
    pattern:
      /(\bcurl\s(?:[^\n|;&]{0,512}?\s)?(?:-u|--user|-U|--proxy-user)[\s=]{0,4}['"]?[^\s:'"$]{1,128}:)[^\s'"]{1,512}/g,
    isInnocent: isReference,
  },
  {
    kind: "program-password",
    hint: /sshpass|mysql|mariadb|redis-cli|login/,
    pattern:
      /(\b(?:sshpass\s{1,4}-p|(?:mysql|mysqldump|mysqladmin|mariadb)\s(?:[^\n|;&]{0,256}?\s)?-p(?=\S)|redis-cli\s(?:[^\n|;&]{0,256}?\s)?-a|(?:docker|podman|helm|skopeo|buildah)\s(?:[^\n|;&]{0,256}?\s)?login\s(?:[^\n|;&]{0,256}?\s)?-p)\s{0,4}['"]?)[^\s'"]{1,512}/g,
    isInnocent: isReference,
  },
  {
    kind: "program-password",
    hint: /pass:/,
    pattern: /(-pass(?:in|out)?\s{1,4}['"]?pass:)[^\s'"]{1,512}/g,
    isInnocent: isReference,
  },
  {
    kind: "program-password",
    hint: /\bmachine\s/,
    pattern: /(\bmachine\s{1,8}\S{1,255}\s{1,8}login\s{1,8}\S{1,255}\s{1,8}password\s{1,8})\S{1,512}/g,
    isInnocent: isReference,
  },
  {
    kind: "signature",
    hint: /(?:sig|Signature)=/,
    pattern: /([?&](?:sig|X-Amz-Signature|X-Goog-Signature)=)[A-Za-z0-9%+/=_-]{20,512}/g,
  },
];
