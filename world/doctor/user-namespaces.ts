/** Checks user namespaces; explains a failure by the likeliest of many causes. */
import type { HostCheck, HostFinding } from "./face.ts";
import { LaunchFailed } from "../linux/launch.ts";
import { OUTER_SANDBOX } from "../linux/outer-sandbox.ts";
import { type KernelSettings, kernelSettings, setKernel } from "./kernel-settings.ts";
import { missing, ok, type Trials, weaker, wordsOf } from "./trials.ts";

/** A failed user namespace: init's step and the kernel's error. */
export type Failure = { readonly step: string; readonly errno: string };

/** Container options that allow user namespaces, for any engine. */
const CONTAINER_FLAGS =
  "--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined";

const MANY = "15000";

export async function userNamespaceCheck(trials: Trials, signal: AbortSignal): Promise<HostCheck> {
  const needed = await trials.needsUserNamespace(signal).catch(() => true);
  return {
    name: "user-namespace",
    what: "user namespaces",
    needed,
    run: (until) => run(trials, needed, until),
  };
}

async function run(trials: Trials, needed: boolean, signal: AbortSignal): Promise<HostFinding> {
  try {
    await trials.launch(["user", "mount", "pid"], [], signal);
    return ok(needed ? "made one" : "made one, though worlds of this user need none");
  } catch (error) {
    if (!(error instanceof LaunchFailed)) return missing(wordsOf(error));
    const { uid, init } = trials.inits;
    const seen = `${error.step} failed with ${error.errno}`;
    const why = whyNoUserNamespace(error, kernelSettings(), uid, init);
    if (!needed) return weaker(`${seen}: ${why.cause}; worlds of this user do not need them`, ...why.mend);
    return missing(`${seen}: ${why.cause}`, ...why.mend);
  }
}

/** Returns the likeliest cause and its remedy. Pure: a test covers all kernels. */
export function whyNoUserNamespace(
  failure: Failure,
  settings: KernelSettings,
  uid: number,
  init: string,
): { readonly cause: string; readonly mend: readonly string[] } {
  const sudo = uid === 0 ? "" : "sudo ";
  if (failure.errno === "ENOSPC" || failure.errno === "EUSERS") return tooMany(settings, uid);
  if (failure.errno === "EINVAL" || failure.errno === "ENOSYS") {
    return { cause: "this kernel has no user namespaces", mend: ["# Use a kernel with CONFIG_USER_NS=y"] };
  }
  if (settings.sysctl("kernel.unprivileged_userns_clone") === "0") {
    return {
      cause: "kernel.unprivileged_userns_clone is 0",
      mend: setKernel("kernel.unprivileged_userns_clone", "1", uid),
    };
  }
  if (settings.sysctl("kernel.apparmor_restrict_unprivileged_userns") === "1") {
    return {
      cause:
        "AppArmor refuses them to programs without a profile (kernel.apparmor_restrict_unprivileged_userns is 1)",
      mend: appArmorProfile(init, sudo),
    };
  }
  if (settings.chrooted)
    return { cause: "this is a chroot", mend: ["# Run the broker outside of the chroot"] };
  if (!settings.mapped) {
    return {
      cause: "the user namespace around this process does not map its user",
      mend: ["# Map this user where that namespace is made: unshare --map-current-user"],
    };
  }
  return restricted(settings);
}

function tooMany(
  settings: KernelSettings,
  uid: number,
): { readonly cause: string; readonly mend: readonly string[] } {
  const limit = settings.sysctl("user.max_user_namespaces");
  if (limit !== undefined && Number(limit) === 0) {
    return { cause: "user.max_user_namespaces is 0", mend: setKernel("user.max_user_namespaces", MANY, uid) };
  }
  return {
    cause: `user.max_user_namespaces (${limit ?? "unknown here"}) are in use, an outer namespace allows fewer, or 32 levels are nested`,
    mend: [
      ...setKernel("user.max_user_namespaces", MANY, uid),
      "# or run the broker in fewer nested containers",
    ],
  };
}

/** Allows user namespaces to this one program only. */
function appArmorProfile(init: string, sudo: string): readonly string[] {
  const profile = `abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile substrate-init "${init}" flags=(unconfined) {\\n  userns,\\n}\\n`;
  return [
    `printf '${profile}' | ${sudo}tee /etc/apparmor.d/substrate-init`,
    `${sudo}apparmor_parser -r /etc/apparmor.d/substrate-init`,
    `# or for every program: ${setKernel("kernel.apparmor_restrict_unprivileged_userns", "0", sudo === "" ? 0 : 1).join(" && ")}`,
  ];
}

function restricted(settings: KernelSettings): { readonly cause: string; readonly mend: readonly string[] } {
  if (settings.sandboxed)
    return { cause: "another sandbox is around this process", mend: [`# ${OUTER_SANDBOX}`] };
  const signs = [
    ...(settings.container === undefined ? [] : [`'${settings.container}' is there`]),
    ...(settings.filtered ? ["a seccomp filter is on this process"] : []),
    ...(settings.mayAdminister ? [] : ["CAP_SYS_ADMIN is not in its bounding set"]),
  ];
  if (signs.length === 0) {
    return {
      cause: "no known setting forbids it; a security module may",
      mend: ["# Look for the refusal in the kernel's log: journalctl -k -g 'denied|userns'"],
    };
  }
  return {
    cause: `this container may not make them (${signs.join(", ")})`,
    mend: [
      `docker run ${CONTAINER_FLAGS} …`,
      `podman run ${CONTAINER_FLAGS.replace("systempaths=unconfined", "unmask=ALL")} …`,
    ],
  };
}
