import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const fixture = fileURLToPath(new URL("../fixtures/changing-server.mjs", import.meta.url));

/** The definitions of a server; see the fixture. */
export interface Offered {
  readonly instructions?: string;
  readonly tools?: readonly object[];
  readonly prompts?: readonly object[];
  readonly resources?: readonly object[];
  readonly templates?: readonly object[];
}

/** A folder with a config and a lock, and servers whose definitions are files in it. */
export interface ChangingServers extends Disposable {
  readonly path: string;
  readonly config: string;
  readonly lock: string;
  /** Has a server list this from now on. */
  offer(server: string, offered: Offered): void;
  /** The entry of a server in a config. */
  entry(server: string, sharing?: "session"): object;
  /** Writes the config. */
  write(config: object): void;
}

export function makeChangingServers(): ChangingServers {
  const path = mkdtempSync(join(tmpdir(), "junctor-lock-"));
  const at = (name: string): string => join(path, name);
  return {
    path,
    config: at("mcp.json"),
    lock: at("junctor.lock"),
    offer: (server, offered) => writeFileSync(at(`${server}.json`), JSON.stringify(offered)),
    entry: (server, ...sharing) => ({
      command: process.execPath,
      args: [fixture, at(`${server}.json`), ...sharing],
    }),
    write: (config) => writeFileSync(at("mcp.json"), JSON.stringify(config)),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A tool that takes one text. */
export function toTool(name: string, description: string = `Does ${name}.`): object {
  return {
    name,
    description,
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  };
}
