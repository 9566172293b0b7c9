import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { actors, currentUser } from "../../../support/users/users.ts";
import { makeHome, removeHome, removeLeftOverHomes } from "../../../support/run/homes.ts";
import { thisRun } from "../../../support/run/runs.ts";

/** A person's home. */
let person: string;
beforeEach(() => {
  person = mkdtempSync(join(tmpdir(), "substrate-person-"));
});
afterEach(() => rmSync(person, { recursive: true }));

test("no actor has a person's home, and what tests call in their own process has the suite's too", () => {
  expect(homedir()).toBe(currentUser().home);
  expect(existsSync(join(homedir(), ".substrate-test-home"))).toBe(true);
  for (const { home } of actors()) expect(home).not.toBe(userInfo().homedir);
  expect(actors().find(({ uid }) => uid === process.getuid?.())?.home).toBe(homedir());
});

test("a home goes with all that is in it, and leaves what lies beside it", () => {
  const home = makeHome(person);
  mkdirSync(join(home, "closed/in"), { recursive: true });
  chmodSync(join(home, "closed"), 0o500);
  writeFileSync(join(person, "theirs"), "");
  expect(dirname(home)).toBe(person);
  removeHome(home);
  expect(readdirSync(person)).toEqual(["theirs"]);
});

test("a folder that no run made is not removed, whatever it is called", () => {
  const theirs = join(person, "substrate-test-notes");
  mkdirSync(theirs);
  expect(() => removeHome(theirs)).toThrow(/no run of the tests made it/);
  removeLeftOverHomes(person);
  expect(readdirSync(person)).toEqual(["substrate-test-notes"]);
});

test("a killed run's home goes at the start of the next, and one that is in use stays", () => {
  const [used, killed, elsewhere] = [makeHome(person), makeHome(person), makeHome(person)];
  const run = thisRun();
  // A process has a pid once: another start of the same pid is another process.
  writeFileSync(join(killed, ".substrate-test-home"), JSON.stringify({ ...run, start: "1" }));
  const other = { ...run, host: "another", start: "1" };
  writeFileSync(join(elsewhere, ".substrate-test-home"), JSON.stringify(other));
  removeLeftOverHomes(person);
  const left = readdirSync(person).map((name) => join(person, name));
  expect(left.sort()).toEqual([used, elsewhere].sort());
});

test("a home that cannot be made is refused with the folder's name and what to do", () => {
  const nowhere = join(person, "none");
  expect(() => makeHome(nowhere)).toThrow(`in '${nowhere}'`);
  expect(() => makeHome(nowhere)).toThrow(/Set HOME/);
});
