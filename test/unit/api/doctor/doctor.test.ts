import { describe, expect, test } from "vitest";
import { nodeVersion } from "../../../../api/doctor/home.ts";
import { runChecks } from "../../../../api/doctor/run.ts";
import type { DoctorCheck } from "../../../../schemas/generated/types.ts";
import { kernel } from "../../../../world/doctor/host.ts";
import type { KernelSettings } from "../../../../world/doctor/kernel-settings.ts";
import { type HostProcess, orphanedWorlds } from "../../../../world/doctor/processes.ts";
import { whyNoUserNamespace } from "../../../../world/doctor/user-namespaces.ts";

function settings(
  sysctls: Readonly<Record<string, string>>,
  more: Partial<KernelSettings> = {},
): KernelSettings {
  const plain = {
    filtered: false,
    sandboxed: false,
    mayAdminister: true,
    container: undefined,
    chrooted: false,
    mapped: true,
  };
  return { ...plain, sysctl: (name) => sysctls[name], ...more };
}

const EPERM = { step: "unshare user", errno: "EPERM" };

function why(failure: { step: string; errno: string }, kernelSays: KernelSettings, uid = 1000) {
  const { cause, mend } = whyNoUserNamespace(failure, kernelSays, uid, "/opt/substrate-init");
  return { cause, mend: mend.join("\n") };
}

describe("why there is no user namespace", () => {
  test("a limit of none is told by its sysctl, and set with sudo only by who needs it", () => {
    const found = why(
      { step: "unshare user", errno: "ENOSPC" },
      settings({ "user.max_user_namespaces": "0" }),
    );
    expect(found.mend).toMatch(/^sudo sysctl -w user\.max_user_namespaces=\d+$/m);
    const root = why(
      { step: "unshare user", errno: "ENOSPC" },
      settings({ "user.max_user_namespaces": "0" }),
      0,
    );
    expect(root.mend).toMatch(/^sysctl -w user\.max_user_namespaces=\d+$/m);
  });

  test("the same errno with a limit that is not none says that they are used up", () => {
    const found = why(
      { step: "unshare user", errno: "ENOSPC" },
      settings({ "user.max_user_namespaces": "96365" }),
    );
    expect(found.cause).toContain("96365");
  });

  test("Debian's switch, AppArmor's switch, a chroot and a container are told apart", () => {
    const debian = why(EPERM, settings({ "kernel.unprivileged_userns_clone": "0" }));
    expect(debian.mend).toContain("sudo sysctl -w kernel.unprivileged_userns_clone=1");
    const armor = why(EPERM, settings({ "kernel.apparmor_restrict_unprivileged_userns": "1" }));
    expect(armor.mend).toContain("apparmor_parser -r /etc/apparmor.d/substrate-init");
    expect(armor.mend).toContain('"/opt/substrate-init"');
    expect(why(EPERM, settings({}, { chrooted: true })).cause).toContain("chroot");
    const sandbox = why(EPERM, settings({}, { filtered: true, sandboxed: true }));
    expect(sandbox.cause).toBe("another sandbox is around this process");
    expect(sandbox.mend).toContain('sandbox_mode = "danger-full-access"');
    const container = why(EPERM, settings({}, { filtered: true, mayAdminister: false }));
    expect(container.cause).toContain("CAP_SYS_ADMIN");
    expect(container.mend).toMatch(/docker run .*seccomp=unconfined/);
    const unknown = why(EPERM, settings({}));
    expect(unknown.cause).toContain("no known setting");
    expect(unknown.mend).toContain("journalctl");
  });

  test("AppArmor lets the namespace be made and refuses what is done in it: the mend is the same", () => {
    const kernelSays = settings({ "kernel.apparmor_restrict_unprivileged_userns": "1" });
    expect(why({ step: "unshare", errno: "EPERM" }, kernelSays)).toEqual(why(EPERM, kernelSays));
  });

  test("a switch that allows is not blamed", () => {
    const allowed = settings({
      "kernel.unprivileged_userns_clone": "1",
      "kernel.apparmor_restrict_unprivileged_userns": "0",
    });
    expect(why(EPERM, allowed).mend).not.toContain("sysctl");
  });

  test("a kernel without them needs another kernel", () => {
    expect(why({ step: "unshare user", errno: "EINVAL" }, settings({})).mend).toContain("CONFIG_USER_NS");
  });
});

describe("worlds of dead brokers", () => {
  const process = (pid: number, parent: number, name: string, uid = 1000): HostProcess => ({
    pid,
    parent,
    name,
    uid,
    begin: "1",
  });

  test("are those that the first process or a service manager has adopted, and of this user alone", () => {
    const processes = [
      process(1, 0, "systemd", 0),
      process(10, 1, "node"),
      process(11, 10, "substrate-init"),
      process(12, 11, "substrate-init"),
      process(20, 1, "substrate-init"),
      process(21, 20, "substrate-init"),
      process(30, 1, "substrate-init", 1001),
    ];
    expect(orphanedWorlds(processes, 1000).map(({ pid }) => pid)).toEqual([20]);
  });

  test("one whose parent cannot be seen from here is left alone", () => {
    expect(orphanedWorlds([process(5, 0, "substrate-init")], 1000)).toEqual([]);
  });

  test("one that a shell or a debugger started is none", () => {
    for (const name of ["bash", "strace"])
      expect(orphanedWorlds([process(9, 1, name), process(10, 9, "substrate-init")], 1000)).toEqual([]);
  });

  test("a user's service manager counts as who adopts", () => {
    const processes = [process(7, 1, "systemd"), process(10, 7, "substrate-init")];
    expect(orphanedWorlds(processes, 1000).map(({ pid }) => pid)).toEqual([10]);
  });

  test("the names that Node gives its main thread all count as Node", () => {
    for (const name of ["node", "node (vitest 1)", "MainThread"])
      expect(orphanedWorlds([process(1, 0, name), process(10, 1, "substrate-init")], 1000)).toEqual([]);
  });
});

describe("versions", () => {
  test.each([
    ["5.11.22", "missing"],
    ["5.12.0", "ok"],
    ["6.1.0-18-amd64", "ok"],
    ["4.19.0", "missing"],
  ])("Linux %s is %s", (version, verdict) => {
    expect(kernel(version).verdict).toBe(verdict);
  });

  test.each([
    ["20.18.3", "missing"],
    ["20.19.0", "ok"],
    ["24.0.0", "ok"],
    ["18.20.0", "missing"],
  ])("Node %s is %s", (version, verdict) => {
    expect(nodeVersion(version).verdict).toBe(verdict);
  });
});

test("a check that breaks is missing with its reason, and the others are tried all the same", async () => {
  const found: DoctorCheck[] = [];
  const check = (name: string, run: () => Promise<{ verdict: "ok"; seen: string; mend: string[] }>) => ({
    name,
    what: name,
    needed: true,
    run,
  });
  await runChecks(
    [
      check("broken", () => Promise.reject(new Error("no such luck"))),
      check("fine", () => Promise.resolve({ verdict: "ok", seen: "it works", mend: [] })),
    ],
    (each) => found.push(each),
  );
  expect(found.map(({ verdict }) => verdict)).toEqual(["missing", "ok"]);
  expect(found[0]?.seen).toContain("no such luck");
});
