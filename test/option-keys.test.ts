import { describe, expect, test } from "vitest";
import {
  compose,
  connect,
  createGateway,
  createRegistry,
  createServer,
  listenHttp,
  serveStdio,
} from "../packages/junctor/src/index.ts";

// Each mistake twice: the compiler refuses it (an unused @ts-expect-error is an error of its own), and so does the call.

const registry = createRegistry();
const server = createServer(registry, { name: "test", version: "1.0.0" });

describe("an option that does not exist is refused, with the one that is likely meant:", () => {
  test("createServer", () => {
    // @ts-expect-error -- it is "pageSize"
    const create = (): unknown => createServer(registry, { name: "x", version: "1" }, { pagesize: 3 });
    expect(create).toThrow('createServer has no option "pagesize"; did you mean "pageSize"?');
  });

  test("compose", () => {
    // @ts-expect-error -- it is "separator"
    expect(() => compose({ registry }, { seperator: "." })).toThrow(
      'compose has no option "seperator"; did you mean "separator"?',
    );
  });

  test("serveStdio, before it takes the standard output", () => {
    const { write } = process.stdout;
    // @ts-expect-error -- it is "graceMs"
    expect(() => serveStdio(server, { gracems: 1 })).toThrow('serveStdio has no option "gracems"');
    expect(process.stdout.write).toBe(write);
  });

  test("listenHttp", async () => {
    // @ts-expect-error -- it is "port"
    const listening = listenHttp(server, { prot: 0 });
    await expect(listening).rejects.toThrow('listenHttp has no option "prot"; did you mean "port"?');
  });

  test("connect", async () => {
    // @ts-expect-error -- it is "timeoutMs"
    const connecting = connect({ server }, { timeoutMS: 3 });
    await expect(connecting).rejects.toThrow('connect has no option "timeoutMS"; did you mean "timeoutMs"?');
  });

  test("createGateway", async () => {
    // @ts-expect-error -- it is "firstListMs"
    const starting = createGateway({ mcpServers: {} }, { firstListMS: 3 });
    await expect(starting).rejects.toThrow(
      'createGateway has no option "firstListMS"; did you mean "firstListMs"?',
    );
  });
});
