/**
 * Tries a command out before a person is asked: in a fresh world, on an overlay of the project, all discarded afterwards. Only
 * the overlay is writable and the world has no network, so the command has no effect outside; its output is discarded too, so
 * only its ending and its changes become known.
 */
import { isRefusal } from "../model/refusal.ts";
import { join } from "node:path";
import type { ApprovalPreview, FsDiff } from "../../schemas/generated/types.ts";
import { type ProgramGate, timeLimit, type World, WorldUnavailable } from "../../world/backend.ts";
import { asRequired } from "./borrow-world.ts";
import type { Broker } from "../broker.ts";
import { commandEnvironment } from "../settings/environment.ts";
import { previewGate } from "../exec-gate/job-gate.ts";
import { type Job, heldByPolicies } from "../model/job.ts";
import { OutputRoom } from "../worlds/output-room.ts";
import { NO_PROJECT } from "../project/projects.ts";
import { type Ran, runInWorld } from "../worlds/run.ts";
import { worldSpec } from "../worlds/world-spec.ts";
import type { Wanted } from "../worlds/world-spec.ts";
import type { Lease } from "../worlds/worlds.ts";
import { noPreview } from "../approvals/preview-words.ts";

/** Time-outs in milliseconds: for running the command, and for listing its changes. */
const RUN_MS = 10_000;
const DIFF_MS = 5_000;

const MAX_NAMES = 20;

/** Returns the preview. When the host lacks an ability, the preview says why instead of throwing. */
export async function previewCommand(broker: Broker, job: Job, layers: string): Promise<ApprovalPreview> {
  if (job.place.project === NO_PROJECT)
    return noPreview("The command's folder is not in a project, and only a project has an overlay");
  if (job.ownHome !== undefined) return noPreview("The command has a home of its own, which has no overlay");
  const lease = await overlayWorld(broker, job, layers);
  if (typeof lease === "string") return noPreview(lease);
  try {
    return await tryOut(job, lease.world, previewGate(broker, job).programs);
  } finally {
    lease.release(false);
  }
}

/** Leases a world for the preview, or returns the reason for having no world. */
async function overlayWorld(broker: Broker, job: Job, layers: string): Promise<Lease | string> {
  try {
    const lease = asRequired(job.effective, await broker.worlds.leaseFresh(previewed(broker, job, layers)));
    if (isRefusal(lease)) return lease.message;
    return emptied(lease);
  } catch (error) {
    if (error instanceof WorldUnavailable) return error.message;
    throw error;
  }
}

/** Returns the lease if its world has an overlay; otherwise releases the lease. */
function emptied(lease: Lease): Lease | string {
  const { overlay } = lease.world.isolation;
  try {
    serveNobody(lease.world);
    if (overlay === "on") return lease;
  } catch (error) {
    lease.release(false);
    throw error;
  }
  lease.release(false);
  return `This host cannot make an overlay of the project: ${overlay}`;
}

/**
 * Describes the preview's world: like that of an isolated command, with no write outside the overlay, even where stray writes
 * would be kept. No network is served, not the host's either, and no network rules apply.
 */
function previewed(broker: Broker, job: Job, layers: string): Wanted {
  const { effective, site } = job;
  const access = { kind: "overlay", layers: join(broker.home.overlay, layers) } as const;
  const { hostNetwork: _host, ...spec } = worldSpec(
    effective.policies,
    site,
    access,
    broker.around,
    heldByPolicies(job),
  );
  return {
    spec,
    network: { ports: [], ranges: [] },
    under: "preview",
    hash: effective.hash,
    settings: [],
  };
}

/**
 * Closes the DNS sockets so that lookups fail at once; on open sockets without a server, a program would wait for its time-out.
 */
function serveNobody({ network }: World): void {
  const dns = network?.takeDns();
  dns?.udp.close();
  dns?.tcp.close();
}

async function tryOut(job: Job, world: World, gate: ProgramGate): Promise<ApprovalPreview> {
  const { argv, place, environment, request, agent, span } = job;
  const ran = await runInWorld(
    world,
    {
      argv,
      cwd: place.cwd,
      env: commandEnvironment(environment.variables, request.env, agent, span),
      stdin: request.stdin_b64 === undefined ? undefined : Buffer.from(request.stdin_b64, "base64"),
      background: "kill",
      timeoutMs: Math.min(RUN_MS, request.timeout_ms ?? RUN_MS),
      maxOutputBytes: 0,
      room: new OutputRoom().share(0),
      gate,
      onViolation: () => {},
    },
    new AbortController().signal,
  );
  if (ran.ending.kind === "not_started") {
    const { step, path, errno } = ran.ending;
    return noPreview(`The command could not be started: ${step} on '${path}' failed with ${errno}`);
  }
  if (ran.ending.kind === "world_lost") return noPreview(`The command's world ended: ${ran.ending.cause}`);
  const changes = await changesOf(world);
  return typeof changes === "string" ? noPreview(changes) : outcome(ran, changes);
}

/** Lists the changes, or says why they cannot be listed: there may be too many. */
async function changesOf(world: World): Promise<FsDiff | string> {
  const patience = timeLimit(DIFF_MS);
  try {
    return await world.fsDiff(patience);
  } catch (error) {
    if (patience.aborted)
      return `The command ran, but listing its changes took longer than ${DIFF_MS / 1000} s`;
    throw error;
  }
}

function outcome(ran: Ran, { writes, mods, deletes, dirs, autorun, truncated }: FsDiff): ApprovalPreview {
  const { ending } = ran;
  return {
    state: "done",
    why: null,
    writes: writes.length,
    mods: mods.length,
    deletes: deletes.length,
    dirs: dirs.length,
    names: [...deletes, ...mods, ...writes, ...dirs].slice(0, MAX_NAMES),
    autorun: autorun.slice(0, MAX_NAMES),
    truncated,
    exit: ending.kind === "exited" ? ending.code : null,
    signal: ending.kind === "signalled" ? ending.signal : null,
    timed_out: ran.timedOut,
    duration_ms: Math.round(ran.durationMs * 1000) / 1000,
  };
}
