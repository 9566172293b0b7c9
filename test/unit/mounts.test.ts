import { describe, expect, test } from "vitest";
import { denialWords } from "../../world/plan/denials.ts";
import type { HostFacts } from "../../world/plan/host-facts.ts";
import { mountPlan } from "../../world/plan/mounts.ts";
import { host, lines, PROJECT, spec } from "./planned.ts";

describe("the mount plan", () => {
  test("starts with the whole host read-only and opens only the project", () => {
    const plan = lines(mountPlan(spec(), host()));
    expect(plan[0]).toBe("root");
    expect(plan.filter((line) => line.endsWith(" rw"))).toEqual([`bind ${PROJECT} ${PROJECT} rw`]);
  });

  test("a project that the policy does not let write is seen as every host tree is, and bound read-only below /tmp", () => {
    const files = { ...spec().files, write: [] };
    expect(lines(mountPlan(spec({ files }), host())).filter((line) => line.startsWith("bind"))).toEqual([]);
    expect(lines(mountPlan(spec({ files, project: "/tmp/work" }), host()))).toContain(
      "bind /tmp/work /tmp/work ro",
    );
  });

  test("a git folder outside the project is bound once, with its denials, also below a private folder", () => {
    const gitFolder = "/tmp/main/.git";
    const write = [...spec().files.write, `${gitFolder}/**`];
    const files = { ...spec().files, write, denyWrite: [`${gitFolder}/hooks`] };
    const plan = lines(mountPlan(spec({ gitFolder, files }), host()));
    expect(plan.filter((line) => line.includes(gitFolder))).toEqual([
      `dir ${gitFolder} 755`,
      `bind ${gitFolder} ${gitFolder} rw`,
    ]);
    const { zones } = mountPlan(spec({ gitFolder, files }), host());
    expect(zones).toContainEqual({ kind: "watch", path: gitFolder });
    const overlay = mountPlan(spec({ gitFolder, files, access: { kind: "overlay", layers: "/l" } }), host());
    expect(lines(overlay)).toContain(`bind ${gitFolder} ${gitFolder} ro`);
    const swapped = lines(mountPlan(spec({ gitFolder, files }), host({}, { [gitFolder]: "/victim/.git" })));
    expect(swapped.filter((line) => line.startsWith("bind") && line.includes(".git"))).toEqual([]);
  });

  test("a project below a private folder is bound in place after the private folder is made", () => {
    const project = "/tmp/work";
    const plan = lines(
      mountPlan(spec({ project, files: { ...spec().files, write: [`${project}/**`] } }), host()),
    );
    const order = [
      "tmpfs /tmp mode=1777,size=12%,nr_inodes=262144",
      "dir /tmp/work 755",
      "bind /tmp/work /tmp/work rw",
    ].map((line) => plan.indexOf(line));
    expect(order).not.toContain(-1);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  test("what takes away comes after everything that opens", () => {
    const files = {
      read: ["/**"],
      denyRead: [`${PROJECT}/.env`],
      write: [`${PROJECT}/**`, "/home/ann/.cache/**"],
      denyWrite: [`${PROJECT}/.git/hooks`],
      seal: [],
    };
    const plan = lines(
      mountPlan(
        spec({ files, hidden: ["/home/ann/.substrate"], sealed: [`${PROJECT}/node_modules`] }),
        host(),
      ),
    );
    const mountsOf = plan.findLastIndex((line) => line.endsWith(" rw"));
    expect(plan.indexOf(`readonly ${PROJECT}/node_modules`)).toBeGreaterThan(mountsOf);
  });

  test("names denied in the project are init's to guard, and names denied elsewhere are hidden below a veil", () => {
    const files = {
      read: ["/**"],
      denyRead: [`${PROJECT}/**/.env`, "/home/ann/.ssh", "/etc/shadow"],
      write: [`${PROJECT}/**`],
      denyWrite: [`${PROJECT}/.git/hooks`],
      seal: [],
    };
    const plan = mountPlan(spec({ files, hidden: ["/home/ann/.substrate"] }), {
      ...host(),
      folders: () => ["home", "etc"],
    });
    expect(lines(plan).slice(0, 6)).toEqual([
      "root",
      "hide /etc/shadow",
      "hide /home/ann/.ssh",
      "hide /home/ann/.substrate",
      "veil /home /home",
      "veil /etc /etc",
    ]);
    const guarded = plan.denied.map((name) => denialWords(name).join(" "));
    expect(guarded).toContain("r Lhome Lann Lwork D L.env");
    expect(guarded).toContain("w Lhome Lann Lwork L.git Lhooks");
    expect(guarded.filter((words) => words.startsWith("h"))).toEqual([]);
    expect(plan.zones[0]).toEqual({ kind: "watch", path: PROJECT });
  });

  test("a tree with a mount point below it is veiled in parts, and one that refused a veil is masked instead", () => {
    const folders: Record<string, readonly string[]> = { "/": ["var", "home"], "/var": ["lib", "log"] };
    const facts: HostFacts = {
      ...host(),
      folders: (path) => folders[path] ?? [],
      mountPoints: ["/", "/var/lib/docker"],
      unveilable: new Set(["/home"]),
    };
    const files = { ...spec().files, denyRead: ["/home/ann/.ssh"] };
    const plan = lines(mountPlan(spec({ files }), facts));
    expect(plan.filter((line) => line.startsWith("veil"))).toEqual([
      "veil /var/lib/docker /var/lib/docker",
      "veil /var/log /var/log",
    ]);
    expect(plan).toContain("mask /home/ann/.ssh");
    expect(mountPlan(spec({ files }), facts).unhidden).toBe(1);
    expect(mountPlan(spec({ files }), { ...facts, unveilable: new Set() }).unhidden).toBe(0);
    expect(plan.join("\n")).not.toContain("hide");
  });

  test("a denied name whose folder is missing is hidden with the topmost missing folder", () => {
    const files = { ...spec().files, denyRead: ["/home/ann/.config/gh/hosts"] };
    const missing = { "/home/ann/.config": "missing", "/home/ann/.config/gh": "missing" } as const;
    expect(lines(mountPlan(spec({ files }), host(missing)))).toContain("hide /home/ann/.config");
  });

  test("sockets of the host are masked where a bind would let them connect, and only there", () => {
    const sockets = [`${PROJECT}/dev.sock`, "/home/ann/agent.sock", "/run/docker.sock"];
    const plan = lines(mountPlan(spec(), { ...host(), sockets }));
    expect(plan).toContain(`mask ${PROJECT}/dev.sock`);
    expect(plan.filter((line) => line.endsWith("agent.sock") || line.endsWith("docker.sock"))).toEqual([]);
  });

  test("stray writes have an upper layer each, and a user namespace gets none for system folders", () => {
    const facts = { ...host(), strays: "/layers/wld_1" };
    const plan = lines(mountPlan(spec({ strays: "kept" }), facts));
    expect(plan).toContain("veil /usr /usr /layers/wld_1/1/upper /layers/wld_1/1/work");
    const user = lines(mountPlan(spec({ strays: "kept" }), { ...facts, userNamespace: true }));
    expect(user.filter((line) => line.startsWith("veil /usr"))).toEqual([]);
    expect(user).toContain("veil /home /home /layers/wld_1/0/upper /layers/wld_1/0/work userxattr");
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
    expect(lines(mountPlan(spec({ access }), { ...host(), userNamespace: true }))).toContain(
      `${words} userxattr`,
    );
  });

  test("a policy that reads a part of the host shows only that part", () => {
    const files = { ...spec().files, read: ["/usr/**", "/bin/**"] };
    const plan = lines(mountPlan(spec({ files }), host({}, { "/bin": "/usr/bin" })));
    expect(plan[0]).toBe("tmpfs / mode=755,size=16m,nr_inodes=64k");
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
