import { expect, test } from "vitest";
import { describeEngine, parseStoreUrl } from "./redis-store.ts";

test.each([
  ["redis://10.0.0.5", { host: "10.0.0.5", port: 6379, tls: false }, 0],
  ["redis://cache:6380/2", { host: "cache", port: 6380, tls: false }, 2],
  ["rediss://cache:6380/", { host: "cache", port: 6380, tls: true }, 0],
  ["valkey://[::1]:7000", { host: "::1", port: 7000, tls: false }, 0],
  ["valkeys://cache", { host: "cache", port: 6379, tls: true }, 0],
  ["unix:///run/redis.sock?db=4", { path: "/run/redis.sock", tls: false }, 4],
])("%s says where the engine is", (url, socket, database) => {
  expect(parseStoreUrl(url)).toEqual({ socket, database, username: undefined, password: undefined });
});

test("user and password are unescaped, and are not in the description", () => {
  const address = parseStoreUrl("rediss://jun%40ctor:p%3Ass@[fd00::1]:6380");
  expect(address).toMatchObject({ username: "jun@ctor", password: "p:ss" });
  expect(describeEngine(address)).toBe("[fd00::1]:6380");
});

test.each([
  ["", "such as redis://host:6379"],
  ["localhost:6379", "such as redis://host:6379"],
  ["http://:secret@host", "such as redis://host:6379"],
  ["redis://:secret@host#x", "such as redis://host:6379"],
  ["redis://:secret@", "such as redis://host:6379"],
  ["redis:///0", "names no host"],
  ["redis://:secret@host/zero", "number of a database"],
  ["redis://:secret@host/123456", "number of a database"],
  ["redis://:secret@host?db=1", "no part after ?"],
  ["redis://:sec%ret@host", "write %25"],
  ["unix:///", "path of a socket"],
])("%s is refused, and not repeated", (url, why) => {
  expect(() => parseStoreUrl(url)).toThrow(why);
  expect(() => parseStoreUrl(url)).not.toThrow(/secret|sec%ret/u);
});
