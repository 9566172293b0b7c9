/** The files of each lane: a file whose outcome depends on the user runs as root and as a plain user, any other file once. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT } from "../../api/setup/checkout.mjs";

/**
 * Files that `npm test` leaves to `npm run test:all`: kills, floods, full disks, races, random texts, time limits, and
 * most of what takes more than five seconds on two busy processors.
 */
const SLOW = {
  integration: `acp adapters approvals-cli approvals-kept backends budgets caller-shell changes-listed check-files
    cli client commits direct-changes direct-folders direct-random disabled doctor exec-gate exec-gate-stopped
    exec-stream exec-trees faults few-descriptors fronts full-disk held held-auto-apply held-changes held-cli
    held-contents held-faults held-first-look held-kill-points held-killed held-orphans held-recovered-edits hook hook-events hook-unanswered
    idempotency init init-refused left-overs life-cycle lima mcp mcp-clients network-npm-refused network-without-nft
    notices output-room own-home package policy policy-allow policy-corpus policy-fuzz policy-network policy-reload
    policy-show policy-tools program-starts project-made-anew publish publish-policy questions-terminal real-agents
    refused-writes replay run sandboxed scopes screens self service session-state shell shell-jobs shims-folder shims-isolated
    shims-long shims-quiet shims-terminal shims-unanswered small-disk stream stream-volume substrate-sh telemetry
    telemetry-harmless terminals test-internet time-limits told trace-cli trace-kills trace-network trace-programs
    trouble world-agent world-operate write-places`,
  security: `approvals approvals-allowing approvals-input approvals-scripts bypass clones-at-once
    commands-inner-programs commands-spelling control default-denials denied-names denied-names-host
    denied-names-races denied-projects denied-wholes descriptors direct-changes exec-gate files git-brought
    git-folders git-opened git-own-steps git-remotes git-separate git-settings groups held held-changes held-floods held-names host-trees
    host-trees-fresh host-trees-mounts host-trees-scratch installation isolated-worlds kept-repositories limits
    made-repositories missing-git-names missing-primitives nested-repositories network-addresses network-budget
    network-clients network-dns network-edits network-first-bytes network-floods network-full-disk network-last-bytes
    network-names network-of-host network-owners network-policy network-previews network-rebinding
    network-without-nft odd-names overlay-marks own-home own-namespaces pid-1 places replays request-floods
    scope-network scope-tokens seccomp-log shared-sockets shipped-caches shipped-policies sockets sockets-at-connect
    telemetry terminal-owner tools-ahead wide-writes words-expanded-late worktree-settings`,
};

/**
 * Files that one user's run stands for. Of integration: about the command line, rules, records, hooks, streams, terminals, shims and
 * screens, whose outcome is the same whoever runs the broker; about held changes, kills and starts of programs, whose walls
 * `test/security` tries as both. Of security: about what a command's words or a request's bytes make the broker decide, before any wall
 * is asked; and races, which take minutes and try the same code for both.
 */
const ANYBODY = {
  integration: `acp adapters approvals approvals-cli approvals-desktop approvals-kept bad-input budgets caller-shell
    changes-listed cli client commits completion direct-changes direct-random exec-gate exec-gate-stopped exec-stream
    exec-trees execute few-descriptors fronts held held-auto-apply held-changes held-cli held-contents
    held-faults held-kill-points held-killed hook hook-events hook-unanswered idempotency init init-refused
    left-overs life-cycle mcp mcp-clients network-npm-refused notices output-room policy policy-allow
    policy-corpus policy-fuzz policy-network policy-programs policy-reload policy-show policy-tools
    program-starts publish publish-policy questions-terminal replay run scopes screens self session-state shell shell-jobs
    shims-folder shims-long shims-quiet shims-terminal shims-unanswered stream stream-volume substrate-sh
    terminals test-internet time-limits told tour trace-cli trace-kills trace-network trace-programs trouble
    world-agent world-operate`,
  security: `approvals approvals-allowing approvals-binding approvals-input approvals-preview approvals-scripts
    approvals-starts bypass caller-shell clones-at-once commands-impostors commands-inner-programs
    commands-spelling denied-names-races request-floods request-shapes telemetry terminal-owner tools-ahead words-expanded-late`,
};

/** {@link ANYBODY} as paths. */
export const ANYBODYS = [
  ...paths("integration", ANYBODY.integration),
  ...paths("security", ANYBODY.security),
];

/**
 * Of {@link ANYBODYS}, files of minutes: much output, many programs and texts, races, kills at every moment, waiting, screens. `.ci/run`
 * has no time for them; run them after a change of the code that they test.
 */
export const NOT_AT_LANDING = [
  ...paths(
    "integration",
    `direct-random exec-trees held-changes held-faults held-kill-points held-killed hook-unanswered output-room policy-corpus policy-fuzz
    screens self shims-unanswered stream-volume time-limits trace-kills`,
  ),
  ...paths("security", "clones-at-once"),
];

/** Left out of `npm test`. */
export const SLOW_FILES = [
  ...paths("integration", SLOW.integration),
  ...paths("security", SLOW.security),
  "test/golden/golden.test.ts",
];

/** Files of which `npm test` runs a part (`atLength`, or rows `at length`), and `npm run test:slow` everything. */
export const AT_LENGTH = [
  ...["properties", "shell/read"].map((name) => `test/unit/broker/policy/${name}.test.ts`),
  "test/fidelity/fidelity.test.ts",
];

/** Files of `npm run test:slow` as root: slow files whose outcome depends on the user. */
export const SLOW_AS_ROOT = SLOW_FILES.filter((file) => !ANYBODYS.includes(file));

/**
 * Slow files about walls that `.ci/run` tries as root too: what a user namespace makes another for an ordinary user (mounts, groups,
 * names, sockets, limits). It has no time to try all of them as both; `npm run test:slow` does.
 */
const WALLS_AS_ROOT = paths(
  "security",
  `default-denials denied-names denied-names-host exec-gate files git-settings groups host-trees host-trees-mounts installation
  isolated-worlds limits own-home own-namespaces pid-1 places seccomp-log sockets sockets-at-connect telemetry`,
);

/** Of {@link SLOW_AS_ROOT}, what `.ci/run` runs; the plain user's lane runs the other walls there, and no slow file of integration that this does. */
export const AS_ROOT_AT_LANDING = SLOW_AS_ROOT.filter(
  (file) => !file.startsWith("test/security/") || WALLS_AS_ROOT.includes(file),
);

/** Whether `.ci/run` leaves a file of the plain user's lane out. */
export const isLeftToOthers = (/** @type {string} */ file) =>
  NOT_AT_LANDING.includes(file) || (SLOW_AS_ROOT.includes(file) && file.startsWith("test/integration/"));

/** Files of the plain user's lane: files whose outcome depends on the user, and the slow files that root leaves out. */
export const AS_PLAIN_USER = [
  ...["integration", "security", "golden", "fidelity"].flatMap(filesOf),
  ...["users", "homes"].map((name) => `test/unit/test/support/${name}.test.ts`),
].filter((file) => !ANYBODYS.includes(file) || SLOW_FILES.includes(file));

/** Every name in both lists, as a file: a test compares them with the tree. */
export const NAMED_FILES = [...SLOW_FILES, ...ANYBODYS, ...AT_LENGTH];

/** @param {string} folder @param {string} names @returns {string[]} */
function paths(folder, names) {
  return names.split(/\s+/).map((name) => `test/${folder}/${name}.test.ts`);
}

/** @param {string} folder @returns {string[]} */
function filesOf(folder) {
  return readdirSync(join(CHECKOUT, "test", folder))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `test/${folder}/${name}`);
}
