import { describe, expect, test } from "vitest";
import type { WorldSpec } from "../../world/backend.ts";
import { type HostFacts, mountPlan, type PathKind } from "../../world/plan/mounts.ts";
import { type MountOperation, operationWords } from "../../world/plan/operations.ts";

const PROJECT = "/home/ann/work";

function spec(change: Partial<WorldSpec> = {}): WorldSpec {
  const files = { read: ["/**"], denyRead: [], write: [`${PROJECT}/**`], denyWrite: [] };
  return {
    project: PROJECT,
    identity: "1:2",
    access: { kind: "direct" },
    files,
    hidden: [],
    limits: {},
    seccomp: "enforce",
    sealed: [],
    ...change,
  };
}

/** A host where everything is a folder but what is named. */
function host(
  kinds: Readonly<Record<string, PathKind>> = {},
  links: Readonly<Record<string, string>> = {},
): HostFacts {
  return {
    kind: (path) => kinds[path] ?? (path in links ? "symlinked" : "folder"),
    real: (path) => (kinds[path] === "missing" ? undefined : (links[path] ?? path)),
    userxattr: false,
  };
}

function lines(plan: readonly MountOperation[]): readonly string[] {
  return plan.map((operation) => operationWords(operation).join(" "));
}

describe("the mount plan", () => {
  test("starts with the whole host read-only and opens only the project", () => {
    const plan = lines(mountPlan(spec(), host()));
    expect(plan[0]).toBe("root");
    expect(plan.filter((line) => line.endsWith(" rw"))).toEqual([`bind ${PROJECT} ${PROJECT} rw`]);
  });

  test("a project that the policy does not let write is bound read-only", () => {
    const files = { ...spec().files, write: [] };
    expect(lines(mountPlan(spec({ files }), host()))).toContain(`bind ${PROJECT} ${PROJECT} ro`);
  });

  test("a project below a private folder is bound in place after the private folder is made", () => {
    const project = "/tmp/work";
    const plan = lines(
      mountPlan(spec({ project, files: { ...spec().files, write: [`${project}/**`] } }), host()),
    );
    const order = ["tmpfs /tmp mode=1777,size=50%", "dir /tmp/work 755", "bind /tmp/work /tmp/work rw"].map(
      (line) => plan.indexOf(line),
    );
    expect(order).not.toContain(-1);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  test("what takes away comes after everything that opens", () => {
    const files = {
      read: ["/**"],
      denyRead: [`${PROJECT}/.env`],
      write: [`${PROJECT}/**`, "/home/ann/.cache/**"],
      denyWrite: [`${PROJECT}/.git/hooks`],
    };
    const plan = lines(
      mountPlan(
        spec({ files, hidden: ["/home/ann/.substrate"], sealed: [`${PROJECT}/node_modules`] }),
        host(),
      ),
    );
    const lastOpen = plan.findLastIndex((line) => line.endsWith(" rw"));
    const taken = [
      `readonly ${PROJECT}/node_modules`,
      `readonly ${PROJECT}/.git/hooks`,
      `mask ${PROJECT}/.env`,
      "mask /home/ann/.substrate",
    ];
    for (const line of taken) expect(plan.indexOf(line)).toBeGreaterThan(lastOpen);
  });

  test("an installation below a private folder is not there, so nothing is done about it", () => {
    const files = { ...spec().files, write: [`${PROJECT}/**`, "/tmp/**"] };
    const plan = lines(mountPlan(spec({ files, sealed: ["/tmp/checkout/node_modules"] }), host()));
    expect(plan.join("\n")).not.toContain("/tmp/checkout");
  });

  test("an installation below a private folder that is itself the project is read-only", () => {
    const project = "/tmp/checkout";
    const files = { ...spec().files, write: [`${project}/**`] };
    const plan = lines(mountPlan(spec({ project, files, sealed: [`${project}/node_modules`] }), host()));
    expect(plan).toContain(`readonly ${project}/node_modules`);
  });

  test("a writable path with a link on its way is not bound", () => {
    const files = { ...spec().files, write: [`${PROJECT}/**`, "/home/ann/.cache/**"] };
    const plan = lines(mountPlan(spec({ files }), host({}, { "/home/ann/.cache": "/etc" })));
    expect(plan.join("\n")).not.toContain("/home/ann/.cache");
    expect(plan.join("\n")).not.toContain("/etc");
  });

  test("a bare folder among the writable paths opens nothing, and a bare file opens that file", () => {
    const files = { ...spec().files, write: ["/data/folder", "/data/file"] };
    const plan = lines(mountPlan(spec({ files }), host({ "/data/file": "file" })));
    expect(plan).toContain("bind /data/file /data/file rw");
    expect(plan.join("\n")).not.toContain("/data/folder");
  });

  test("a denied read that is a link masks the place the link leads to", () => {
    const files = { ...spec().files, denyRead: ["/home/ann/.ssh"] };
    expect(lines(mountPlan(spec({ files }), host({}, { "/home/ann/.ssh": "/data/ssh" })))).toContain(
      "mask /data/ssh",
    );
  });

  test("an overlay project has its layers outside and marks in user xattrs where the kernel asks for it", () => {
    const access = { kind: "overlay", layers: "/var/lib/substrate/overlay/spn_1" } as const;
    const words = `overlay ${PROJECT} ${access.layers}/upper ${access.layers}/work ${PROJECT}`;
    expect(lines(mountPlan(spec({ access }), host()))).toContain(words);
    expect(lines(mountPlan(spec({ access }), { ...host(), userxattr: true }))).toContain(
      `${words} userxattr`,
    );
  });

  test("a policy that reads a part of the host shows only that part", () => {
    const files = { ...spec().files, read: ["/usr/**", "/bin/**"] };
    const plan = lines(mountPlan(spec({ files }), host({}, { "/bin": "/usr/bin" })));
    expect(plan[0]).toBe("tmpfs / mode=755");
    expect(plan).toContain("bind /usr /usr ro");
    expect(plan).toContain("symlink /usr/bin /bin");
    expect(plan).not.toContain("root");
  });

  test("a project outside what may be read and written is not there, and a bare folder gives nothing to read", () => {
    const files = { ...spec().files, read: ["/usr/**", "/srv"], write: [] };
    const plan = lines(mountPlan(spec({ files }), host())).join("\n");
    expect(plan).not.toContain(PROJECT);
    expect(plan).not.toContain("/srv");
  });

  test("the machine-wide switches of procfs are sealed after procfs is mounted", () => {
    const plan = lines(mountPlan(spec(), host()));
    const proc = plan.indexOf("proc /proc");
    for (const name of ["sys", "sysrq-trigger", "irq", "bus"])
      expect(plan.indexOf(`readonly /proc/${name}`)).toBeGreaterThan(proc);
  });
});
