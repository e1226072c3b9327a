import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createFileStore } from "../../packages/junctor/src/credentials/file-store.ts";

const secret = "a secret of more than thirty-two characters";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "junctor-credentials-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "credentials");
}

function recordsIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => join(folder, name));
}

test("a record is read back, also by another process that has the secret", async () => {
  const folder = newFolder();
  await createFileStore({ folder, secrets: [secret] }).write("a", { token: "secret-token" });
  expect(await createFileStore({ folder, secrets: [secret] }).read("a")).toEqual({ token: "secret-token" });
  expect(createFileStore({ folder, secrets: [secret] }).all()).toEqual(
    new Map([["a", { token: "secret-token" }]]),
  );
});

test("only this user may read the files, and they hold no token in the clear", async () => {
  const folder = newFolder();
  await createFileStore({ folder }).write("a", { token: "secret-token" });
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (const file of readdirSync(folder)) {
    expect(statSync(join(folder, file)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, file), "utf8")).not.toContain("secret-token");
  }
});

test("a record put in the place of another is not used", async () => {
  const folder = newFolder();
  const store = createFileStore({ folder });
  await store.write("alice", { token: "of alice" });
  const [alice = ""] = recordsIn(folder);
  await store.write("bob", { token: "of bob" });
  const bob = recordsIn(folder).find((file) => file !== alice) ?? "";
  copyFileSync(alice, bob);
  expect(await store.read("bob")).toBeUndefined();
  const renamed = readFileSync(bob, "utf8").replace('"alice"', '"bob"');
  writeFileSync(bob, renamed);
  expect(await store.read("bob")).toBeUndefined();
  expect(await store.read("alice")).toEqual({ token: "of alice" });
});

test("a record of another secret is not used, and one of an earlier secret is", async () => {
  const folder = newFolder();
  await createFileStore({ folder, secrets: [secret] }).write("a", { token: "x" });
  const other = "another secret of more than thirty-two characters";
  expect(await createFileStore({ folder, secrets: [other] }).read("a")).toBeUndefined();
  expect(await createFileStore({ folder, secrets: [other, secret] }).read("a")).toEqual({ token: "x" });
});

test("a record that others may write is not used", async () => {
  const folder = newFolder();
  const store = createFileStore({ folder });
  await store.write("a", { token: "x" });
  const [file = ""] = recordsIn(folder);
  const { chmodSync } = await import("node:fs");
  chmodSync(file, 0o666);
  expect(await store.read("a")).toBeUndefined();
});

test("work under one id is done by one at a time, in all processes", async () => {
  const folder = newFolder();
  const stores = Array.from({ length: 5 }, () => createFileStore({ folder }));
  let running = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
  };
  await Promise.all(stores.flatMap((store) => [1, 2, 3, 4].map(() => store.alone("a", work))));
  expect(most).toBe(1);
  expect(readdirSync(folder).filter((name) => name.includes("lock"))).toEqual([]);
});

test("the lock of a process that was killed is taken over", async () => {
  const folder = newFolder();
  const store = createFileStore({ folder });
  const { spawnSync } = await import("node:child_process");
  const { pid } = spawnSync(process.execPath, ["-e", ""]);
  await store.alone("a", async () => {});
  const { createHash } = await import("node:crypto");
  const name = `${createHash("sha256").update("a").digest("hex")}.json.lock`;
  writeFileSync(join(folder, name), `${pid} left`);
  expect(await store.alone("a", () => Promise.resolve("done"))).toBe("done");
});
