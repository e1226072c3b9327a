import { Buffer } from "node:buffer";
import { duplexPair } from "node:stream";
import { describe, expect, test } from "vitest";
import { greetDaemon, greetFront, pickVersion, spoken } from "./hello.ts";

const key = Buffer.alloc(32, 1);
const introduction = { build: "1.2.3", pid: 7, id: "abc", client: "zed" };

describe("a hello", () => {
  test("gives the daemon the values it asks for, and nothing else", async () => {
    const [front, daemon] = duplexPair();
    const greeted = greetDaemon(front, { key, introduction, env: { A: "1", B: "2" } });
    const side = await greetFront(daemon, { key, build: "1.2.3" });
    expect(side.introduction).toEqual(introduction);
    expect(await side.askFor(["A", "C"])).toEqual({ A: "1" });
    side.ready();
    daemon.write("first line\n");
    expect(await greeted).toMatchObject({ daemon: { build: "1.2.3", version: spoken.newest } });
    expect(String(front.read())).toBe("first line\n");
  });

  test("ends when the daemon does not know the key", async () => {
    const [front, daemon] = duplexPair();
    void greetFront(daemon, { key: Buffer.alloc(32, 2), build: "1" }).catch(() => {});
    await expect(greetDaemon(front, { key, introduction, env: { A: "1" } })).rejects.toMatchObject({
      reason: "proof",
    });
    expect(String(front.read())).not.toContain("1.2.3");
  });

  test("ends when the front does not know the key, before it is asked or told anything", async () => {
    const [front, daemon] = duplexPair();
    const greeted = greetFront(daemon, { key, build: "1" });
    front.write('{"junctor":1,"oldest":1,"nonce":"n"}\n{"proof":"00","pid":1}\n');
    await expect(greeted).rejects.toMatchObject({ reason: "proof" });
  });

  test("of a web page, or of anything else that is not a hello, ends at the first byte", async () => {
    const [front, daemon] = duplexPair();
    const greeted = greetFront(daemon, { key, build: "1" });
    front.write("POST /mcp HTTP/1.1\r\n");
    await expect(greeted).rejects.toMatchObject({ reason: "silent" });
  });

  test("of a version that is too old is refused with advice", async () => {
    const [front, daemon] = duplexPair();
    void greetFront(daemon, { key, build: "9.0.0", versions: { newest: 9, oldest: 8 } }).catch(() => {});
    const greeted = greetDaemon(front, { key, introduction, env: {} });
    await expect(greeted).rejects.toThrow('run "junctor restart"');
  });
});

test.each([
  [{ newest: 3, oldest: 2 }, { newest: 2, oldest: 1 }, 2],
  [{ newest: 3, oldest: 2 }, { newest: 5, oldest: 3 }, 3],
  [{ newest: 3, oldest: 2 }, { newest: 1, oldest: 1 }, undefined],
  [{ newest: 1, oldest: 1 }, { newest: NaN, oldest: NaN }, undefined],
])("%j and %j speak %s", (ours, theirs, version) => {
  expect(pickVersion(ours, theirs)).toBe(version);
});
