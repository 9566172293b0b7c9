import type { HostCheck, HostFinding } from "../../broker/broker.ts";
import type { DoctorCheck } from "../../schemas/generated/types.ts";

/** Time limit of a check. A check makes a few worlds of some 20 ms each; a host under load may take a hundred times as long. */
const PATIENCE_MS = 15_000;

/** Time for an aborted check to clean up. */
const CLEAN_UP_MS = 5000;

/** Runs the checks in order, one at a time, and reports each finding at once. Never throws. */
export async function runChecks(
  checks: readonly HostCheck[],
  onFinding: (found: DoctorCheck) => void,
): Promise<void> {
  for (const check of checks) {
    const { name, what, needed } = check;
    const { verdict, seen, mend } = await runOne(check);
    onFinding({ name, what, needed, verdict, seen, mend: [...mend] });
  }
}

async function runOne(check: HostCheck): Promise<HostFinding> {
  const patience = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<HostFinding>((resolve) => {
    timer = setTimeout(() => {
      patience.abort(new Error(`the test took longer than ${PATIENCE_MS / 1000} s`));
      timer = setTimeout(() => resolve(broken("the test does not end")), CLEAN_UP_MS);
    }, PATIENCE_MS);
  });
  try {
    return await Promise.race([check.run(patience.signal), overdue]);
  } catch (error) {
    return broken(error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
  }
}

function broken(why: string): HostFinding {
  return {
    verdict: "missing",
    seen: `cannot be tested: ${why}`,
    mend: ["# Try again when the host is less busy"],
  };
}
