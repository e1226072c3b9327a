import { homedir } from "node:os";
import {
  parseConfigFile,
  type DisabledServer,
  type GatewayConfig,
  type ServerConfig,
} from "../config/index.ts";

/** The facts about a front that the launch of a server may depend on. */
export interface FrontPlace {
  /** The values of the variables that the config names. */
  readonly env: { readonly [name: string]: string };
  /** The folder of the project; undefined when the client was not started in one. */
  readonly workspace: string | undefined;
}

/** Servers that look at the folder they are started in, as of November 2026. */
const lookAtFolder =
  /(?:^|[\s/@])(?:mcp-server-git|git-mcp-server|nx-mcp|serena|serena-mcp-server)(?:@|\s|$)/;
/** Whether a word of a command means another file in each folder. */
export const isRelativePath = (word: string): boolean => /^\.{1,2}(?:$|[/\\])/.test(word);
const otherProject = "/junctor-other-project";

/**
 * The config as it holds for one front. A server whose launch depends on the project runs in its folder, as a process for each
 * project; all others run in the home folder, wherever the daemon was started. Throws a `ConfigError`.
 */
export function parseForFront(file: string, text: string, { env, workspace }: FrontPlace): GatewayConfig {
  const config = parseConfigFile(file, text, env, workspace ?? false);
  const elsewhere = parseConfigFile(file, text, env, otherProject);
  const others = new Map(elsewhere.servers.map((server) => [server.name, server]));
  const disabled: DisabledServer[] = [...config.disabled];
  const servers = config.servers.flatMap((server): readonly ServerConfig[] => {
    const { launch, name, prefix, tools, audit } = server;
    if (launch.kind !== "command") return [server];
    const isOwn = isOfProject(server, others.get(name));
    const cwd = launch.cwd ?? (isOwn ? workspace : homedir());
    if (cwd !== undefined) return [{ ...server, launch: { ...launch, cwd } }];
    disabled.push({ name, prefix, tools, audit, reason: noProject });
    return [];
  });
  return { ...config, servers, disabled };
}

const noProject =
  "it works in the folder of a project, and the client was not started in one: " +
  'write --workspace FOLDER after attach, or "workspace": "shared" for this server';

/** Whether each project has a process of its own of a server. `other` is the same server as another project would have it. */
export function isOfProject(server: ServerConfig, other: ServerConfig | undefined): boolean {
  const { launch, workspace } = server;
  if (launch.kind !== "command" || workspace === "shared") return false;
  if (workspace === "each") return true;
  const words = [launch.command, ...launch.args];
  const isElsewhere = JSON.stringify(launch) !== JSON.stringify(other?.launch);
  return isElsewhere || words.some(isRelativePath) || lookAtFolder.test(words.join(" "));
}

/** The names of the variables that a config fills in. Those of a config that is wrong are found as far as it was read. */
export function variablesOf(file: string, text: string): readonly string[] {
  const names = new Set<string>();
  const env = new Proxy<{ [name: string]: string }>(
    {},
    {
      get: (_, name) => note(name),
      getOwnPropertyDescriptor: (_, name) => {
        note(name);
        return undefined;
      },
    },
  );
  const note = (name: string | symbol): undefined => {
    if (typeof name === "string") names.add(name);
  };
  try {
    parseConfigFile(file, text, env, otherProject);
  } catch {
    // A front that uses this config gets the error from `parseForFront`.
  }
  return [...names];
}
