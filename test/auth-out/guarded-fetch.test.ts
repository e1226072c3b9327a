import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createGuardedFetch } from "../../packages/client/src/sign-in/guarded-fetch.ts";
import { createDeferred } from "../../packages/core/src/async/queue.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";

const remote = new URL("https://mcp.example.com/mcp");
const local = new URL("http://127.0.0.1:1/mcp");

async function listen(listener: RequestListener): Promise<URL> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

describe("metadata that a remote server names is not fetched", () => {
  test.each([
    ["this machine", "https://127.0.0.1/"],
    ["this machine in hex", "https://0x7f.1/"],
    ["this machine as a number", "https://2130706433/"],
    ["this machine by IPv6", "https://[::1]/"],
    ["this machine as IPv6 of IPv4", "https://[::ffff:127.0.0.1]/"],
    ["a private network", "https://10.0.0.1/"],
    ["the metadata service of a cloud", "https://169.254.169.254/latest/meta-data/"],
    ["a link-local address", "https://[fe80::1]/"],
    ["a unique local address", "https://[fd00::1]/"],
    ["an address through NAT64", "https://[64:ff9b::7f00:1]/"],
    ["an address through 6to4", "https://[2002:7f00:1::]/"],
    ["any address", "https://0.0.0.0/"],
    ["a network of a carrier", "https://100.64.0.1/"],
  ])("from %s", async (_, url) => {
    await expect(createGuardedFetch({ server: remote })(new URL(url))).rejects.toThrow("must not be asked");
  });

  test.each(["http://example.com/", "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)"])(
    "from %s, which is not HTTPS",
    async (url) => {
      await expect(createGuardedFetch({ server: remote })(new URL(url))).rejects.toThrow("is not https://");
    },
  );

  test.each(["127.0.0.1", "10.1.2.3", "::1", "fe80::1"])(
    "from a name that resolves to %s",
    async (address) => {
      const resolve = () => Promise.resolve([{ address, family: address.includes(":") ? 6 : 4 }]);
      const fetch = createGuardedFetch({ server: remote, resolve });
      await expect(fetch(new URL("https://innocent.example/"))).rejects.toThrow("must not be asked");
    },
  );

  test("from a name with one private address among public ones", async () => {
    const resolve = () =>
      Promise.resolve([
        { address: "93.184.216.34", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ]);
    const fetch = createGuardedFetch({ server: remote, resolve });
    await expect(fetch(new URL("https://innocent.example/"))).rejects.toThrow("must not be asked");
  });
});

test("a name is resolved once, and the socket goes to the address that was checked", async () => {
  const url = await listen((_, response) => response.end("{}"));
  let lookups = 0;
  const resolve = () => Promise.resolve([{ address: lookups++ === 0 ? "127.0.0.1" : "10.0.0.1", family: 4 }]);
  const server = new URL(`http://localhost:${url.port}/mcp`);
  const response = await createGuardedFetch({ server, resolve })(new URL(`http://localhost:${url.port}/`));
  expect(await response.text()).toBe("{}");
  expect(lookups).toBe(1);
});

test("a host that the user wrote down may be private", async () => {
  const url = await listen((_, response) => response.end("{}"));
  const server = new URL(`http://intern.example:${url.port}/mcp`);
  const resolve = () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
  const response = await createGuardedFetch({ server, resolve })(new URL("/x", server));
  expect(response.status).toBe(200);
});

test("a redirect is not followed", async () => {
  const url = await listen((_, response) =>
    response.writeHead(302, { location: "http://127.0.0.1:9/" }).end(),
  );
  const response = await createGuardedFetch({ server: local })(url);
  expect(response.status).toBe(302);
});

test("an endless answer is cut after 64 KiB", async () => {
  const url = await listen((_, response) => {
    const write = (): void => {
      if (!response.destroyed && response.write(Buffer.alloc(16 * 1024, 32))) setImmediate(write);
      else if (!response.destroyed) response.once("drain", write);
    };
    write();
  });
  await expect(createGuardedFetch({ server: local })(url)).rejects.toThrow("more than 65536 bytes");
});

test("a silent host is given up after five seconds", async () => {
  const clock = createVirtualClock();
  const asked = createDeferred<void>();
  const url = await listen(() => asked.resolve());
  const fetched = createGuardedFetch({ server: local, clock })(url).catch((error: unknown) => error);
  await asked.promise;
  await clock.advance(5000);
  expect(String(await fetched)).toContain("took more than 5000 ms");
});
