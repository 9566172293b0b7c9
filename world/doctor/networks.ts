/** Checks a world's network: a namespace held from outside, nft rules inside, and connections captured by the broker. */
import { dirname } from "node:path";
import type { Captured, NetworkRules } from "../model/network.ts";
import type { HostCheck, HostFinding } from "./face.ts";
import type { World, WorldBackend } from "../model/world.ts";
import { NetworkHelper } from "../network/helper.ts";
import { findNft } from "../network/nft.ts";
import { doctorSpec, runIn } from "./inside.ts";
import { MEND_ABOVE, missing, ok, type Trials, weaker, wordsOf } from "./trials.ts";

/** Host names on the TLS port, and an unassigned documentation range (RFC 5737). */
const RULES: NetworkRules = { ports: [443], ranges: [{ cidr: "203.0.113.0/24", ports: [443] }] };

/**
 * A captured destination (the address for the first host name), and two refused ones: another port, and an address without a host
 * name.
 */
const CAPTURED = ["198.18.0.1", "443"] as const;
const REFUSED = [
  ["198.18.0.1", "444"],
  ["192.0.2.1", "443"],
] as const;

/** Slower refusals make programs wait. */
const AT_ONCE_MS = 500;

/** Kernel modules used by the rules. */
const MODULES = "modprobe -a nf_tables nft_chain_nat nft_redir nft_ct nft_reject_inet";

export function networkChecks(trials: Trials, backend: WorldBackend, needed: boolean): readonly HostCheck[] {
  const check = (name: string, what: string, run: HostCheck["run"]): HostCheck => ({
    name,
    what,
    needed,
    run,
  });
  return [
    check("network", "network of a world, owned by a process outside the world", (signal) =>
      withHelper(trials, signal, () => Promise.resolve(ok("made one, with sockets for DNS inside"))),
    ),
    check("nftables", "nftables that redirect and reset in a world's network", (signal) =>
      withHelper(trials, signal, (helper) => rules(helper, trials.inits.uid)),
    ),
    check("capture", "connections of a world, redirected with their destination", (signal) =>
      capture(trials, backend, signal),
    ),
  ];
}

async function withHelper(
  { inits }: Trials,
  signal: AbortSignal,
  act: (helper: NetworkHelper) => Promise<HostFinding>,
): Promise<HostFinding> {
  let helper: NetworkHelper;
  try {
    helper = await NetworkHelper.start(inits.init, signal);
  } catch (error) {
    return missing(`${wordsOf(error)}; worlds have only their localhost`, ...NO_NAMESPACE);
  }
  try {
    return await act(helper);
  } finally {
    helper.end();
    await helper.ended;
  }
}

const NO_NAMESPACE = [
  "# The same as for user and network namespaces, above; user.max_net_namespaces counts these too",
];

async function rules(helper: NetworkHelper, uid: number): Promise<HostFinding> {
  try {
    await helper.allow(RULES);
  } catch (error) {
    return missing(wordsOf(error), MEND_ABOVE);
  }
  if (helper.word === "on") return ok("rules with redirect, ranges and reset were loaded in one step");
  const sudo = uid === 0 ? "" : "sudo ";
  const seen = helper.word.replace(/^degraded: /, "");
  return findNft() === undefined
    ? weaker(seen, `${sudo}apt-get install -y nftables`)
    : weaker(seen, `${sudo}${MODULES}`);
}

async function capture(trials: Trials, backend: WorldBackend, signal: AbortSignal): Promise<HostFinding> {
  const { init } = trials.inits;
  // Use the folder of init as the project: a world shows its project, wherever it lies.
  const spec = doctorSpec(dirname(init), { kind: "direct" }, RULES);
  let world: World;
  try {
    world = await backend.start("wld_doctor", spec, signal);
  } catch (error) {
    return missing(wordsOf(error), MEND_ABOVE);
  }
  const onAbort = (): void => void world.end("the doctor's time limit is over");
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return world.network === null ? missing(world.isolation.net, MEND_ABOVE) : await dialFrom(world, init);
  } finally {
    signal.removeEventListener("abort", onAbort);
    await world.end("the doctor has seen it");
  }
}

async function dialFrom(world: World, init: string): Promise<HostFinding> {
  const seen: string[] = [];
  world.network?.onConnection((captured) => void answer(world, captured).then((words) => seen.push(words)));
  const came = await runIn(world, [init, "dial", ...CAPTURED]);
  const wanted = `${CAPTURED.join(":")} of substrate-init`;
  if (came.code !== 0 || seen.join() !== wanted) {
    const what = seen.length === 0 ? "nothing" : `'${seen.join()}'`;
    return missing(`'${wanted}' was dialled: ${came.output.trim()}, and ${what} came`, ...NO_DESTINATION);
  }
  for (const place of REFUSED) {
    const { output } = await runIn(world, [init, "dial", ...place]);
    const [, errno, microseconds] = /^failed connect (\d+) (\d+)$/.exec(output.trim()) ?? [];
    if (errno === undefined || Number(microseconds) > AT_ONCE_MS * 1000)
      return weaker(`${place.join(":")} is not refused at once: ${output.trim()}`, MEND_ABOVE);
  }
  return ok("one arrived with its destination and process; others were refused at once");
}

const NO_DESTINATION = [
  "# This needs SO_ORIGINAL_DST and SOCK_DIAG: modprobe -a nf_conntrack inet_diag tcp_diag",
];

/** Closes the connection only after finding its owner: the dialling process must live until then. */
async function answer(world: World, { socket, address, port, inode }: Captured): Promise<string> {
  // The client is gone, ignoring: the check reads the client's own output.
  socket.on("error", () => {});
  const owner = await world.ownerOf(inode);
  socket.end();
  return `${address}:${port} of ${owner?.program ?? "nobody"}`;
}
