import { expect, test } from "vitest";
import { createFakeOpener, turn } from "../../../../test/support/fake-client.ts";
import { ClosedError, ConnectError, HttpError, UpstreamError } from "../../../core/src/errors/index.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { Connection } from "./connection.ts";
import { StartGate } from "./starts.ts";

const secret = "s3cret";

test.each([
  [
    "a missing program",
    new ConnectError(`/opt/${secret}/bin`, `there is no program "/opt/${secret}/bin" here`, {
      cause: Object.assign(new Error(`spawn /opt/${secret}/bin ENOENT`), { code: "ENOENT" }),
    }),
  ],
  [
    "a program that may not run",
    new ConnectError(`/opt/${secret}/bin`, `spawn /opt/${secret}/bin EACCES`, {
      cause: Object.assign(new Error(`spawn /opt/${secret}/bin EACCES`), { code: "EACCES" }),
    }),
  ],
  [
    "a refused socket",
    Object.assign(new Error(`connect ECONNREFUSED ${secret}.internal:80`), { code: "ECONNREFUSED" }),
  ],
  ["a status", new HttpError(401, `https://host/${secret}`, secret)],
  ["a lost child", new ClosedError("outcome_unknown", `node --token=${secret} is gone`)],
  ["what a child wrote", new ConnectError("cmd", "it exited with code 3", { stderr: secret })],
  ["a stack", new Error(`it failed\n    at ${secret}`)],
])("callers learn of %s without command and address", async (_, error) => {
  const clock = createVirtualClock(1_000_000);
  const opener = createFakeOpener();
  await using connection = new Connection({
    server: "files",
    open: opener.open,
    clock,
    gate: new StartGate({ clock }),
    keepsAlive: true,
    patienceMs: 2000,
    startPatienceMs: () => 30_000,
    report: () => {},
  });
  const failure = connection.whenUp(new AbortController().signal).catch((reason: unknown) => reason);
  await turn();
  opener.last.fail(error);
  expect(await failure).toBeInstanceOf(UpstreamError);
  expect(((await failure) as Error).message).not.toContain(secret);
  expect((connection.health as { reason?: string }).reason).not.toContain(secret);
});
