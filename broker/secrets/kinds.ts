/**
 * Shapes of credentials with an issuer's prefix. Left out on purpose: merely long and random text (also the shape of commits,
 * checksums and image digests), and public identifiers (AWS account numbers, Twilio's AC…, public keys pk_…).
 */

/** A kind and the pattern of its tokens, after an implied `\b`. Every repetition is bounded, or cannot be entered twice. */
export type TokenKind = { readonly kind: string; readonly shape: string };

const W = "[A-Za-z0-9_-]";
const A = "[A-Za-z0-9]";

export const TOKEN_KINDS: readonly TokenKind[] = [
  { kind: "aws-access-key", shape: "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\\b" },
  { kind: "github-token", shape: `gh[pousr]_${A}{36,255}|github_pat_[A-Za-z0-9_]{50,255}` },
  { kind: "gitlab-token", shape: `gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-${W}{20,300}` },
  { kind: "npm-token", shape: `npm_${A}{36}\\b` },
  { kind: "pypi-token", shape: `pypi-${W}{50,500}` },
  { kind: "rubygems-token", shape: "rubygems_[0-9a-f]{48}\\b" },
  { kind: "crates-token", shape: `cio${A}{32}\\b` },
  { kind: "docker-token", shape: `dckr_(?:pat|oat)_${W}{20,64}` },
  { kind: "slack-token", shape: "xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-\\d-[A-Za-z0-9-]{10,255}" },
  { kind: "stripe-key", shape: `(?:sk|rk)_(?:live|test)_${A}{16,255}|whsec_[A-Za-z0-9+/=]{24,128}` },
  // OpenAI, Anthropic, OpenRouter and others with the same prefix.
  { kind: "api-key", shape: `sk-${W}{20,255}` },
  { kind: "google-key", shape: `AIza${W}{35}|GOCSPX-${W}{28}|ya29\\.${W}{20,1024}` },
  { kind: "sendgrid-key", shape: `SG\\.${W}{16,32}\\.${W}{30,64}` },
  { kind: "mailgun-key", shape: "key-[0-9a-f]{32}\\b" },
  { kind: "mailchimp-key", shape: "[0-9a-f]{32}-us\\d{1,2}\\b" },
  { kind: "twilio-key", shape: "SK[0-9a-f]{32}\\b" },
  { kind: "shopify-token", shape: "shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\\b" },
  { kind: "square-token", shape: `sq0(?:atp|csp|idp)-${W}{22,43}` },
  { kind: "digitalocean-token", shape: "do[por]_v1_[0-9a-f]{64}\\b" },
  { kind: "heroku-key", shape: `HRKU-${W}{36,70}` },
  { kind: "linear-key", shape: `lin_(?:api|oauth)_${A}{32,64}\\b` },
  { kind: "notion-token", shape: `(?:ntn_|secret_)${A}{40,50}\\b` },
  { kind: "huggingface-token", shape: `(?:hf|api_org)_${A}{34}\\b` },
  { kind: "replicate-token", shape: `r8_${A}{37}\\b` },
  { kind: "vault-token", shape: `hv[sbr]\\.${W}{24,300}` },
  { kind: "terraform-token", shape: `${A}{14}\\.atlasv1\\.${W}{60,70}` },
  { kind: "databricks-token", shape: "dapi[0-9a-f]{32}(?:-\\d)?\\b" },
  {
    kind: "doppler-token",
    shape: `dp\\.(?:pt|st|ct|sa|scim|audit)\\.(?:[a-z0-9_-]{2,35}\\.)?${A}{40,44}\\b`,
  },
  { kind: "postman-key", shape: "PMAK-[0-9a-f]{24}-[0-9a-f]{34}\\b" },
  { kind: "newrelic-key", shape: "NRAK-[A-Z0-9]{27}\\b" },
  { kind: "sentry-token", shape: `sntry[su]_[A-Za-z0-9+/=_-]{40,300}` },
  { kind: "grafana-token", shape: `gl(?:c|sa)_[A-Za-z0-9+/=_]{32,400}` },
  { kind: "age-key", shape: "AGE-SECRET-KEY-1[0-9A-Z]{58}\\b" },
  { kind: "supabase-token", shape: "sbp_[0-9a-f]{40}\\b|sb_secret_[A-Za-z0-9_-]{20,64}" },
  { kind: "planetscale-token", shape: `pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}` },
  { kind: "netlify-token", shape: `nfp_${A}{36}\\b` },
  { kind: "figma-token", shape: `figd_${W}{38,64}` },
  { kind: "airtable-token", shape: `pat${A}{14}\\.[0-9a-f]{64}\\b` },
  { kind: "atlassian-token", shape: `ATATT3${W}{40,400}(?:=[0-9A-F]{8})?|ATBB${A}{32}\\b` },
  { kind: "pulumi-token", shape: "pul-[0-9a-f]{40}\\b" },
  { kind: "tailscale-key", shape: `tskey-[a-z]{3,10}-${W}{16,80}` },
  { kind: "telegram-token", shape: `(?:bot)?\\d{8,10}:AA${W}{33}\\b` },
  { kind: "discord-token", shape: `[MNO]${W}{23,25}\\.${W}{6}\\.${W}{27,38}` },
  { kind: "flyio-token", shape: `fo1_${W}{43}|fm2_[A-Za-z0-9+/=]{100,600}` },
  { kind: "1password-token", shape: "ops_eyJ[A-Za-z0-9+/=_-]{100,1024}" },
  { kind: "scope-token", shape: `scp_${W}{43}` },
  { kind: "jwt", shape: `eyJ${W}{8,1024}\\.eyJ${W}{8,4096}\\.${W}{8,1024}` },
];

/** Words that mark a name as secret at the end of any name: `authToken`, `DB_PASSWORD`. */
const LONG_WORDS =
  "passwords?|passwd|passphrase|passcode|secrets?|tokens?|credentials?|" +
  "sshpass|rediscli_auth|bw_session|(?:gh|github|gitlab|ado|azure_devops_ext|bitbucket|npm)_pat|" +
  "(?:api|access|secret|private|signing|encryption|master|account|auth|license|deploy|service|client|storage|shared)[_-]?keys?";

/** Words that mark a name as secret only behind a separator: `DB_PASS`, and not `bypass`. */
const SHORT_WORDS = "pass|pwd|pw";

/**
 * Secret names, by the last word: `DB_PASSWORD`, `github.token`, `x-api-key`, `TOKEN_2`. Not `token_file`, `password-stdin` or
 * `tokenizer`.
 */
export const SECRET_NAME =
  `(?:[A-Za-z0-9_.-]{0,64}(?:${LONG_WORDS})|(?:[A-Za-z0-9_.-]{0,64}[_.-])?(?:${SHORT_WORDS}))` +
  "(?:[_-]?\\d{1,3}|[_-](?:value|string|b64|base64))?";

/** Alone, these names hold folders, results and lists of names. */
const INNOCENT_NAMES: ReadonlySet<string> = new Set(["pwd", "oldpwd", "pw", "pass"]);

const WHOLE_NAME = new RegExp(`^${SECRET_NAME}$`, "i");

/** Whether a variable with this name holds a secret. */
export function isSecretName(name: string): boolean {
  return !INNOCENT_NAMES.has(name.toLowerCase()) && WHOLE_NAME.test(name);
}
