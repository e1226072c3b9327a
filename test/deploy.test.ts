// The Dockerfile, compose.yaml and the manifests for Kubernetes say the same as the code.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { parseConfigValue } from "../packages/junctor/src/config/parse-config.ts";
import { healthPaths } from "../packages/server/src/http/handler.ts";
import { missingPrograms } from "./cluster/support/program.ts";
import { readSource, readSourceGraph, root } from "./source-graph.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Package {
  readonly version: string;
  readonly devDependencies: { readonly [name: string]: string };
}
const { version, devDependencies } = JSON.parse(read("package.json")) as Package;
const dockerfile = read("Dockerfile");
/** One instruction a line, without comments. */
const instructions = dockerfile
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n\s*/g, "")
  .split("\n")
  .filter(Boolean);
const instruction = (name: string): string =>
  instructions.findLast((line) => line.startsWith(`${name} `))?.slice(name.length + 1) ?? "";

interface Tree {
  readonly [key: string]: unknown;
}
/** What is at a path such as `spec.selector`. */
const at = (tree: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((inner, key) => (inner as Tree | undefined)?.[key], tree);
const compose = parse(read("compose.yaml"), { merge: true }) as Tree;
const manifests = ["deployment", "service", "disruption-budget", "network-policy"].flatMap((name) =>
  parseAllDocuments(read(`deploy/kubernetes/${name}.yaml`)).map((document) => document.toJS() as Tree),
);
const kustomization = parse(read("deploy/kubernetes/kustomization.yaml")) as Tree;
const manifest = (kind: string, name = "junctor"): Tree =>
  manifests.find((one) => one["kind"] === kind && at(one, "metadata.name") === name)!;
const pod = at(manifest("Deployment"), "spec.template");
const container = at(pod, "spec.containers.0");

/** Longer than the ten minutes that a replica keeps its parked calls while it leaves. */
const minGraceSeconds = 610;

describe("the Dockerfile", () => {
  test("copies only files that are in its context", () => {
    const ignored = read(".dockerignore");
    const copied = instructions
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from"))
      .flatMap((line) => line.split(" ").slice(1, -1))
      .filter((path) => path !== ".");
    const kept = [...ignored.matchAll(/^!(.+)$/gm)].map(([, path = ""]) => path);
    expect(copied.filter((path) => !kept.includes(path))).toEqual([]);
    expect(kept.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test("pins its base by version, and to one that the package runs on", () => {
    const bases = instructions.filter((line) => line.startsWith("FROM "));
    expect(new Set(bases.map((line) => line.split(" ")[1])).size).toBe(1);
    expect(bases[0]).toMatch(/^FROM node:(?:20|22|24)\.\d+\.\d+-bookworm-slim/);
  });

  test("installs the client of the engine that the tests use", () => {
    expect(dockerfile).toContain(`@redis/client@${devDependencies["@redis/client"]}`);
  });

  test("runs as a user that is not root, and gets its signals itself", () => {
    expect(instruction("USER")).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    for (const name of ["ENTRYPOINT", "CMD"]) expect(Array.isArray(JSON.parse(instruction(name)))).toBe(true);
    expect(instruction("ENTRYPOINT")).toContain("/app/packages/junctor/dist/cli/main.js");
  });

  test("asks for its health where the gateway tells it", () => {
    const path = /127\.0\.0\.1:7780(\/\w+)/.exec(instruction("HEALTHCHECK"))?.[1];
    expect(healthPaths).toContain(path);
    expect(instruction("CMD")).toContain('"--port", "7780"');
    expect(instruction("EXPOSE")).toBe("7780 7790");
  });
});

describe("compose.yaml", () => {
  const services = compose["services"] as { readonly [name: string]: Tree };
  const gateways = Object.keys(services).filter((name) => name.startsWith("gateway-"));

  test("has two replicas that share a secret and an engine, each with a trunk of its own", () => {
    expect(gateways).toHaveLength(2);
    for (const name of gateways) {
      const { environment, image } = services[name]!;
      expect(at(environment, "JUNCTOR_TRUNK")).toBe(`${name}:7790`);
      expect(at(environment, "JUNCTOR_STORE")).toMatch(
        /^redis:\/\/:\$\{STORE_PASSWORD:\?[^}]+\}@valkey:6379$/,
      );
      expect(at(environment, "JUNCTOR_SECRET")).toContain("${JUNCTOR_SECRET:?");
      expect(image).toBe(`junctor:${version}`);
      expect(read("deploy/compose/haproxy.cfg")).toContain(`server ${name} ${name}:7780`);
    }
  });

  test("gives the engine the password of the replicas, and no port of the machine", () => {
    const { command, environment, ports } = services["valkey"]!;
    expect((command as readonly string[]).join(" ")).toContain("--requirepass ${STORE_PASSWORD}");
    expect(environment).toEqual({ VALKEYCLI_AUTH: "${STORE_PASSWORD}", REDISCLI_AUTH: "${STORE_PASSWORD}" });
    expect(ports).toBeUndefined();
  });

  test("waits long enough for a replica that leaves", () => {
    for (const name of gateways) expect(services[name]!["stop_grace_period"]).toBe("11m");
    expect(11 * 60).toBeGreaterThan(minGraceSeconds);
  });

  test("mounts files that are there, and pins every image", () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) => volumes as readonly string[]);
    expect(mounted.length).toBeGreaterThan(0);
    for (const volume of mounted) expect(existsSync(join(root, volume.split(":")[0]!))).toBe(true);
    for (const { image } of Object.values(services)) expect(image).toMatch(/:\d+\.\d+\.\d+/);
  });

  test.skipIf(missingPrograms() !== undefined)("has a config that haproxy takes", () => {
    const { status, stderr } = spawnSync("haproxy", ["-c", "-f", join(root, "deploy/compose/haproxy.cfg")], {
      encoding: "utf8",
    });
    expect(status === 0 ? "" : stderr).toBe("");
  });
});

describe("the manifests for Kubernetes", () => {
  test("are all in the kustomization, with the version of the package", () => {
    const resources = kustomization["resources"] as readonly string[];
    expect(resources.filter((path) => !existsSync(join(root, "deploy/kubernetes", path)))).toEqual([]);
    expect(kustomization["images"]).toEqual([{ name: "junctor", newTag: version }]);
    expect(read("deploy/kubernetes/kustomization.yaml")).toContain(`version: ${version}`);
  });

  test("select the pods of the deployment", () => {
    const labels = at(pod, "metadata.labels");
    const selectors = [
      at(manifest("Deployment"), "spec.selector.matchLabels"),
      at(manifest("Service"), "spec.selector"),
      at(manifest("Service", "junctor-trunk"), "spec.selector"),
      at(manifest("PodDisruptionBudget"), "spec.selector.matchLabels"),
      at(manifest("NetworkPolicy"), "spec.podSelector.matchLabels"),
    ];
    for (const selector of selectors) expect(selector).toEqual(labels);
  });

  test("reach the ports that the image listens on, by their names", () => {
    expect(at(container, "ports")).toEqual([
      { name: "mcp", containerPort: 7780 },
      { name: "trunk", containerPort: 7790 },
    ]);
    const env = at(container, "env") as readonly { readonly name: string; readonly value?: string }[];
    expect(env.find(({ name }) => name === "JUNCTOR_TRUNK")?.value).toBe("$(POD_IP):7790");
    expect(manifest("Service", "junctor-trunk")["spec"]).toMatchObject({
      clusterIP: "None",
      publishNotReadyAddresses: true,
    });
  });

  test("probe paths of the gateway, with a Host that it serves", () => {
    for (const [probe, path] of [
      ["startupProbe", "/live"],
      ["livenessProbe", "/live"],
      ["readinessProbe", "/ready"],
    ] as const) {
      expect(at(container, `${probe}.httpGet`)).toEqual({
        path,
        port: "mcp",
        httpHeaders: [{ name: "Host", value: "localhost:7780" }],
      });
      expect(healthPaths).toContain(path);
    }
  });

  test("let only replicas reach the engine", () => {
    expect(at(manifest("NetworkPolicy", "junctor-store"), "spec.ingress")).toEqual([
      { ports: [{ port: 6379 }], from: [{ podSelector: { matchLabels: at(pod, "metadata.labels") } }] },
    ]);
    expect(read("deploy/kubernetes/kustomization.yaml")).toContain(
      "JUNCTOR_STORE=redis://:PASSWORD@valkey:6379",
    );
  });

  test("let a replica leave in its own time, and as a user that is not root", () => {
    const grace = at(pod, "spec.terminationGracePeriodSeconds");
    expect(grace).toBeGreaterThan(minGraceSeconds);
    expect(at(pod, "spec.securityContext")).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    expect(instruction("USER")).toBe("1000:1000");
  });
});

test.each(["deploy/compose/mcp.json", "deploy/kubernetes/mcp.json"])("%s is a config", (file) => {
  const env = { ADA_KEY: "0123456789-abcdefgh" };
  const config = parseConfigValue(JSON.parse(read(file)), { file, env });
  expect(config.keys).toHaveLength(1);
  expect(config.warnings).toEqual([]);
});

test("every variable that these files set is one that the gateway reads", () => {
  const files = ["compose.yaml", "deploy/kubernetes/deployment.yaml", "deploy/kubernetes/kustomization.yaml"];
  const named = new Set(files.flatMap((file) => read(file).match(/JUNCTOR_[A-Z]+/g) ?? []));
  const source = [...readSourceGraph().keys()].map(readSource).join("\n");
  expect([...named].filter((name) => !source.includes(`"${name}"`))).toEqual([]);
});
