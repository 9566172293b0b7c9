/**
 * Fake secrets as they stand in commands. Each is put together here, so that no scanner takes this file for a leak: `§`
 * stands between two parts of a token and is taken out.
 */
export type FakeSecret = { readonly kind: string; readonly command: string; readonly secret: string };

const HEX = "0123456789abcdef".repeat(5);
const MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fX".repeat(10);
const UPPER = "A1B2C3D4E5F6G7H8J9K0L1M2N3P4Q5R6".repeat(3);
const PLAIN = "hunter2-correct-horse";

function hex(length: number): string {
  return HEX.slice(0, length);
}

function mixed(length: number): string {
  return MIXED.slice(0, length);
}

function upper(length: number): string {
  return UPPER.slice(0, length);
}

const JWT = `eyJ§${mixed(20)}.eyJ§${mixed(40)}.${mixed(43)}`;
const KEY = `-----BEGIN RSA PRI§VATE KEY-----\n${mixed(64)}\n${mixed(64)}\n-----END RSA PRI§VATE KEY-----`;

/** Kind, the command with `@` where the secret stands, and the secret. */
const ROWS: readonly (readonly [kind: string, command: string, secret: string])[] = [
  ["aws-access-key", "aws configure set aws_access_key_id @", `AK§IA${upper(16)}`],
  ["aws-session-key", "echo @ > key", `AS§IA${upper(16)}`],
  ["aws-secret", "AWS_SECRET_ACCESS_KEY=@ aws s3 ls", `${mixed(30)}/${mixed(9)}`],
  ["github", "git push https://@@github.com/a/b", `ghp§_${mixed(36)}`],
  ["github-fine", "gh auth login --with @", `github§_pat_${mixed(22)}_${mixed(59)}`],
  ["github-app", "curl -H 'Authorization: token @' https://api.github.com", `ghs§_${mixed(36)}`],
  ["gitlab", "git clone https://oauth2:@@gitlab.com/a/b", `glp§at-${mixed(20)}`],
  ["gitlab-runner", "gitlab-runner register --url x @", `glr§t-${mixed(20)}`],
  ["npm", "npm config set //registry.npmjs.org/:_authToken @", `npm§_${mixed(36)}`],
  ["npm-rc", "echo '//r.example/:_authToken=@' >> .npmrc", mixed(36)],
  ["pypi", "twine upload -u __token__ -p @ dist/*", `py§pi-AgEIcHlwaS5vcmc${mixed(80)}`],
  ["rubygems", "gem push x.gem --host @", `ruby§gems_${hex(48)}`],
  ["crates", "cargo login @", `ci§o${mixed(32)}`],
  ["docker", "docker login -u me --password-stdin <<< @", `dckr§_pat_${mixed(27)}`],
  ["docker-password", "docker login -u me -p @ registry.example", PLAIN],
  ["slack-bot", "curl -d token=@ https://slack.com/api/chat.postMessage", `xo§xb-123456789012-${mixed(24)}`],
  ["slack-app", "node bot.js @", `xa§pp-1-A012-${mixed(40)}`],
  [
    "slack-webhook",
    "curl -d '{}' https://hooks.slack.com/services/@",
    `T0§${upper(8)}/B0${upper(8)}/${mixed(24)}`,
  ],
  ["discord-webhook", "curl https://discord.com/api/webhooks/@", `1234§56789012345678/${mixed(68)}`],
  ["discord-bot", "DISCORD=1 node bot.js @", `M§${mixed(23)}.${mixed(6)}.${mixed(27)}`],
  ["telegram", "curl https://api.telegram.org/bot@/getMe", `12345§67890:AA${mixed(33)}`],
  ["stripe", "stripe charges list --api-key @", `sk§_live_${mixed(24)}`],
  ["stripe-restricted", "curl https://api.stripe.com/v1/charges -u @:", `rk§_live_${mixed(24)}`],
  ["stripe-webhook", "stripe listen --forward @", `whs§ec_${mixed(32)}`],
  ["openai", "OPENAI=@ python x.py", `s§k-proj-${mixed(48)}`],
  ["anthropic", "claude --key @", `s§k-ant-api03-${mixed(93)}`],
  ["google", "curl 'https://maps.googleapis.com/x?key=@'", `AI§za${mixed(35)}`],
  ["google-oauth", "gcloud x @", `ya29§.${mixed(60)}`],
  ["google-client", "echo @", `GOC§SPX-${mixed(28)}`],
  ["sendgrid", "curl -H 'x: @'", `S§G.${mixed(22)}.${mixed(43)}`],
  ["mailgun", "curl -s --user 'api:@' https://api.mailgun.net", `ke§y-${hex(32)}`],
  ["mailchimp", "mc lists @", `${hex(32)}§-us12`],
  ["twilio", "twilio login @", `S§K${hex(32)}`],
  ["shopify", "shopify app @", `shp§at_${hex(32)}`],
  ["square", "square x @", `sq0§atp-${mixed(22)}`],
  ["digitalocean", "doctl auth init -t @", `dop§_v1_${hex(64)}`],
  ["linear", "linear @", `lin§_api_${mixed(40)}`],
  ["notion", "notion @", `ntn§_${mixed(46)}`],
  ["huggingface", "huggingface-cli login --token @", `h§f_${mixed(34)}`],
  ["replicate", "replicate @", `r8§_${mixed(37)}`],
  ["vault", "vault login @", `hv§s.${mixed(90)}`],
  ["terraform", "terraform login @", `${mixed(14)}§.atlasv1.${mixed(64)}`],
  ["databricks", "databricks configure @", `da§pi${hex(32)}`],
  ["doppler", "doppler configure set @", `dp§.pt.${mixed(43)}`],
  ["postman", "newman run x @", `PM§AK-${hex(24)}-${hex(34)}`],
  ["newrelic", "newrelic @", `NR§AK-${upper(27)}`],
  ["sentry", "sentry-cli login @", `sntr§yu_${hex(64)}`],
  ["grafana", "grafana @", `gls§a_${mixed(32)}_${hex(8)}`],
  ["age", "age -d -i @", `AGE-SEC§RET-KEY-1${upper(58)}`],
  ["supabase", "supabase link @", `sb§p_${hex(40)}`],
  ["planetscale", "ps @", `pscale§_tkn_${mixed(43)}`],
  ["netlify", "netlify deploy --auth @", `nf§p_${mixed(36)}`],
  ["figma", "figma @", `fig§d_${mixed(40)}`],
  ["airtable", "airtable @", `pat§${mixed(14)}.${hex(64)}`],
  ["atlassian", "acli @", `ATA§TT3${mixed(180)}=${upper(8).replaceAll(/[G-Z]/g, "A")}`],
  ["pulumi", "pulumi login @", `pu§l-${hex(40)}`],
  ["tailscale", "tailscale up --authkey @", `tsk§ey-auth-${mixed(17)}-${mixed(32)}`],
  ["jwt", "curl x @", JWT],
  ["private-key", "echo '@' > id_rsa", KEY],
  ["bearer", "curl -H 'Authorization: Bearer @' x", mixed(32)],
  ["basic", 'curl -H "authorization: Basic @" x', "bWU6aHVudGVyMg=="],
  ["cookie", "curl -H 'Cookie: @' x", `session=${mixed(32)}`],
  ["api-header", "curl -H 'X-Api-Key: @' x", PLAIN],
  ["api-header-tight", "curl -H X-Auth-Token:@ x", PLAIN],
  ["url-password", "psql postgres://me:@@db.example/x", PLAIN],
  ["url-token", "git clone https://@@git.example/x", mixed(40)],
  ["query-token", "curl 'https://x.example/a?access_token=@&b=1'", PLAIN],
  ["azure-storage", "az x 'DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@;x=y'", `${mixed(86)}==`],
  ["azure-sas", "azcopy copy 'https://a.blob.core.windows.net/x?sv=1&sig=@'", `${mixed(43)}%3D`],
  ["aws-presigned", "curl 'https://b.s3.amazonaws.com/x?X-Amz-Signature=@'", hex(64)],
  ["variable", "API_KEY=@ ./deploy", PLAIN],
  ["variable-quoted", 'export DB_PASSWORD="@"', "two words and a $"],
  ["variable-short", "DB_PASS=@ ./run", "s3cr3t"],
  ["variable-literal", "export PGPASSWORD='@'", "$ecret"],
  ["docker-env", "docker run -e MYSQL_ROOT_PASSWORD=@ mysql", "toor"],
  ["option-space", "mysql --password @", "s3cr3tword"],
  ["option-equals", "tool --token=@", "s3cr3tword"],
  ["option-single-dash", "tool -token @", "s3cr3tword"],
  ["camel", 'curl -d \'{"clientSecret": "@"}\' x', PLAIN],
  ["json", 'curl -d \'{"password":"@"}\' x', PLAIN],
  ["json-escaped", 'curl -d "{\\"password\\": \\"@\\"}" x', PLAIN],
  ["yaml", "printf 'password: @\\n' > x.yaml", PLAIN],
  ["kubectl", "kubectl create secret generic db --from-literal=password=@", PLAIN],
  ["java", "mvn -Dsonar.token=@ sonar:sonar", PLAIN],
  ["form", "curl -d 'user=me&password=@' x", PLAIN],
  ["curl-user", "curl -s -u me:@ https://x.example", PLAIN],
  ["mysql-p", "mysql -u root -p@ db", PLAIN],
  ["sshpass", "sshpass -p @ ssh host", PLAIN],
  ["redis", "redis-cli -h x -a @ ping", PLAIN],
  ["openssl", "openssl rsa -in k -passin pass:@", PLAIN],
  ["netrc", "echo 'machine x.example login me password @' > ~/.netrc", PLAIN],
  ["gpg", "gpg --batch --passphrase @ -c x", PLAIN],
];

export const FAKE_SECRETS: readonly FakeSecret[] = ROWS.map(([kind, command, written]) => {
  const secret = written.replaceAll("§", "");
  // `@@` is the secret and the sign behind it.
  return { kind, secret, command: command.replace("@", () => secret) };
});
