import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const fixture = fileURLToPath(new URL("../fixtures/cli-server.mjs", import.meta.url));

/** The entry of a config for a server that does as it is told; see the fixture. */
export function cliServer(told: object = {}): { readonly command: string; readonly args: readonly string[] } {
  return { command: process.execPath, args: [fixture, JSON.stringify(told)] };
}

/** A folder that is removed when it is disposed. */
export interface ConfigFolder extends AsyncDisposable {
  readonly path: string;
  /** Writes a config there and resolves with its path. */
  write(config: object): Promise<string>;
}

export async function makeConfigFolder(): Promise<ConfigFolder> {
  const path = await mkdtemp(join(tmpdir(), "junctor-cli-"));
  const file = join(path, "mcp.json");
  return {
    path,
    write: async (config) => {
      await writeFile(file, JSON.stringify(config));
      return file;
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}
