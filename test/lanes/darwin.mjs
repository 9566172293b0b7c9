// npm run test:darwin: the host side where `process.platform` is darwin, without /proc, unshare, nft and a compiler.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "../../api/setup/programs.mjs";
import { journey } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { MacPlace } from "./darwin/place.mjs";

/** Folders that make worlds: a host without them loads none. The codec of frames is pure. */
const LINUX_ONLY = /^world\/(linux\/(?!frame-codec)|cgroup|container|seccomp|network|native)\//;

const NEEDS_VM = /Substrate needs a Linux VM here: /;

/** What holds, in order: each claim goes on with the home that the one before left. @type {Record<string, (mac: MacPlace) => void>} */
const CLAIMS = {
  "set-up builds without a compiler, and nothing native"(mac) {
    const { code, out, err } = mac.run("node api/setup/build.mjs", mac.checkout);
    assert.equal(code, 0, err);
    assert.match(out, /built \.build\/substrate\.mjs/);
    assert.match(out, /copied \.build\/prebuilds\/darwin-/);
    for (const name of ["substrate-init", "substrate", "substrate-shim"])
      assert.ok(!existsSync(join(mac.checkout, ".build", name)), name);
    assert.match(mac.run("node api/setup/build.mjs", mac.checkout).out, /nothing to do/);
  },

  "the broker starts, tells its status, and a second start finds it"(mac) {
    const { code, err } = mac.run("substrate broker start");
    assert.equal(code, 0, err);
    assert.match(mac.run("substrate broker start").out, /is already running/);
    assert.match(mac.run("substrate broker status").out, /agent\.sock/);
  },

  "check answers as on Linux"(mac) {
    assert.equal(mac.run("substrate check -- 'ls -l'").code, 0);
    assert.match(mac.run("substrate check -- 'sudo ls'").out, /deny.*[^]*sudo \*/);
  },

  "a command is refused with the reason and what to do, it does not run, and its span says so"(mac) {
    const { code, err } = mac.run("substrate exec -- 'touch made'");
    assert.equal(code, 125);
    assert.match(err, NEEDS_VM);
    assert.match(err, /virtual machine/);
    assert.ok(!existsSync(join(mac.project, "made")));
    const shell = mac.run(`${join(mac.checkout, "api/bin/substrate-sh.mjs")} -c 'touch made'`);
    assert.match(shell.err, NEEDS_VM);
    assert.ok(!existsSync(join(mac.project, "made")));
    assert.match(mac.run("substrate trace list").out, /touch made/);
  },

  "the doctor says what is missing"(mac) {
    const { code, out } = mac.run("substrate world doctor");
    assert.equal(code, 1);
    assert.match(out, /^missing +lima .*\n +Substrate needs a Linux VM here: Lima.* is not installed$/m);
    assert.match(out, /^weaker +agent .*\n +Not asked, because no machine runs$/m);
    assert.match(mac.run("substrate world status").err, NEEDS_VM);
  },

  "shims are refused with the reason"(mac) {
    const { code, err } = mac.run("substrate shim install");
    assert.equal(code, 125);
    assert.match(err, /Shims are not built on this system/);
  },

  "an agent's settings name a program that is there, and its hook blocks a denied command"(mac) {
    const made = mac.run("substrate init claude-code --yes");
    assert.equal(made.code, 0, made.out + made.err);
    const settings = readFileSync(join(mac.account.home, ".claude/settings.json"), "utf8");
    const [, program = ""] = /'([^']+)' hook claude-code/.exec(settings) ?? [];
    assert.ok(existsSync(program), settings);
    const event = {
      hook_event_name: "PreToolUse",
      tool_name: "Bash",
      tool_input: { command: "sudo ls" },
      cwd: mac.project,
      session_id: "s",
    };
    const answer = mac.run(`echo '${JSON.stringify(event)}' | '${program}' hook claude-code`);
    assert.match(answer.out + answer.err, /deny|denied/);
  },

  "the service is a property list of launchd that names the launcher"(mac) {
    mac.run("substrate broker stop");
    const { code, out, err } = mac.run("substrate service install --yes");
    assert.match(mac.told("launchctl"), /^bootstrap gui\/\d+ /m, out + err + String(code));
    const plist = join(mac.account.home, "Library/LaunchAgents/dev.substrate.broker.plist");
    assert.match(readFileSync(plist, "utf8"), /api\/bin\/substrate\.mjs<\/string>/);
    mac.run("substrate service remove --yes");
    assert.ok(!existsSync(plist));
  },

  "the broker stops"(mac) {
    assert.equal(mac.run("substrate broker start").code, 0);
    const { out, err } = mac.run("substrate broker stop");
    assert.match(out, /has stopped/, err);
    assert.match(mac.told("started"), /broker start --foreground/);
  },

  "the place itself tells a reach for /proc and for a Linux program, and hides both"(mac) {
    const before = mac.told("reaches");
    const script = "require('fs').readFileSync('/proc/self/status')";
    assert.notEqual(mac.run(`node -e "${script}"`).code, 0);
    assert.match(mac.told("reaches").slice(before.length), /readFileSync\('\/proc\/self\/status'\)/);
    mac.run(`node -e "require('child_process').spawnSync('unshare')"; date -d now`);
    assert.match(mac.told("reaches").slice(before.length), /spawnSync\('unshare'\)[^]*date -d now/);
    mac.forget("reaches", before);
  },

  "what only Linux has was neither reached for nor loaded"(mac) {
    assert.equal(mac.told("reaches"), "");
    const loaded = [...mac.loaded()];
    assert.ok(loaded.includes("api/serve/serve.ts"), "the broker's own sources were not seen");
    assert.deepEqual(
      loaded.filter((path) => LINUX_ONLY.test(path)),
      [],
    );
  },
};

await journey(async () => {
  if (process.getuid?.() !== 0 || findProgram("unshare") === undefined) {
    console.log("SKIP lane: the host side of macOS — hiding /proc takes root and unshare(1)");
    return 0;
  }
  await setUp(EVERYTHING);
  const mac = MacPlace.make();
  let failed = 0;
  try {
    for (const [claim, prove] of Object.entries(CLAIMS)) {
      try {
        prove(mac);
        console.log(`lane: ok ${claim}`);
      } catch (error) {
        failed += 1;
        console.log(`FAIL lane: ${claim} — ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  } finally {
    mac.run("substrate broker stop");
    mac.remove();
  }
  return failed === 0 ? 0 : 1;
});
