import { expect, test } from "vitest";
import { assertClusterSecret, readReplicaSettings } from "./serve-cluster.ts";

const none = { store: undefined, trunk: undefined };
const trunk = { host: "10.0.0.5", port: 7790, advertise: "gateway-1" };

test("the environment takes precedence over the config", () => {
  const config = { store: "redis://config", trunk };
  expect(readReplicaSettings(none, {})).toEqual(none);
  expect(readReplicaSettings(config, { JUNCTOR_STORE: "", JUNCTOR_TRUNK: " " })).toEqual(config);
  const env = { JUNCTOR_STORE: "redis://env", JUNCTOR_TRUNK: "[fd00::1]:0" };
  expect(readReplicaSettings(none, env)).toEqual({
    store: "redis://env",
    trunk: { host: "fd00::1", port: 0 },
  });
  expect(readReplicaSettings(config, { JUNCTOR_TRUNK: "0.0.0.0:7790" }).trunk).toEqual({
    host: "0.0.0.0",
    port: 7790,
    advertise: "gateway-1",
  });
});

test.each([
  [{ JUNCTOR_STORE: "http://:geheim@x" }, "JUNCTOR_STORE: The URL of the store must be"],
  [{ JUNCTOR_TRUNK: "7790" }, 'JUNCTOR_TRUNK needs HOST:PORT, such as 10.0.0.5:7790, not "7790"'],
  [{ JUNCTOR_TRUNK: "a:99999" }, "JUNCTOR_TRUNK needs HOST:PORT"],
  [{ JUNCTOR_TRUNK: "0.0.0.0:7790" }, "names no address that other replicas could use"],
])("%j is refused", (env, message) => {
  expect(() => readReplicaSettings(none, env)).toThrow(message);
  expect(() => readReplicaSettings(none, env)).not.toThrow(/geheim/u);
});

test("a store without a secret is refused", () => {
  const settings = { store: "redis://cache", trunk: undefined };
  expect(() => assertClusterSecret(settings, {})).toThrow(
    "set JUNCTOR_SECRET to the same text for all of them",
  );
  expect(() => assertClusterSecret(settings, { JUNCTOR_SECRET: "," })).toThrow("set JUNCTOR_SECRET");
  expect(() => assertClusterSecret(settings, { JUNCTOR_SECRET: "x".repeat(32) })).not.toThrow();
  expect(() => assertClusterSecret(none, {})).not.toThrow();
});
