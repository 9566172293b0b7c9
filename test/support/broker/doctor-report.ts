/** What a test reads out of the doctor's report, and where a broker's layers lie. */
import { homeLayout } from "../../../broker/settings/home.ts";
import type { DoctorCheck, DoctorReport } from "../../../schemas/generated/types.ts";
import { validateDoctorReport } from "../../../schemas/generated/validators.js";
import type { TestBroker } from "./broker.ts";
import type { Ended } from "../users/users.ts";

/** The report of `world doctor --json`; throws when it is none. */
export function reportOf({ stdout }: Ended): DoctorReport {
  const report: unknown = JSON.parse(stdout);
  if (!validateDoctorReport(report)) throw new Error(`Expected a report, received ${stdout}`);
  return report;
}

export function checkOf(report: DoctorReport, name: string): DoctorCheck {
  const found = report.checks.find((check) => check.name === name);
  if (found === undefined) throw new Error(`Expected a check called '${name}'`);
  return found;
}

export function overlayOf({ home, actor }: TestBroker): string {
  return homeLayout(home, actor.uid === 0 ? "/var/lib/substrate/overlay" : undefined).overlay;
}
